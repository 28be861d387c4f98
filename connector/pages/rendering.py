"""The templates: everything is escaped, and a name that a template does not know is an error."""

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from connector.pages import static
from connector.pages.display import plain


def load_templates() -> Environment:
    """The templates and what all of them may use."""
    templates = Environment(
        loader=FileSystemLoader(static.TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    templates.filters["plain"] = plain
    templates.globals["static"] = {file.name: file.url for file in static.load()}
    return templates
