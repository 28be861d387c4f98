"""The templates: everything is escaped, and a name that a template does not know is an error.

Their own words are English; each other language has a file `templates/languages/*.po` with the translation of
every one of them. There is an environment for each language, whose `trans` blocks speak it.
"""

from collections.abc import Mapping
from io import BytesIO

from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po
from babel.support import NullTranslations, Translations
from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape

from connector.pages import static
from connector.pages.display import plain
from connector.pages.languages import ENGLISH, LANGUAGES, Language

TRANSLATIONS = static.TEMPLATES / "languages"


def load_templates() -> Mapping[str, Environment]:
    """The templates of each language by its code."""
    files = {file.name: file.url for file in static.load()}
    return {language.code: _environment(language, files) for language in LANGUAGES}


def _environment(language: Language, files: Mapping[str, str]) -> Environment:
    templates = Environment(
        loader=FileSystemLoader(static.TEMPLATES),
        extensions=["jinja2.ext.i18n"],
        # Markdown is escaped by what renders it.
        autoescape=select_autoescape(enabled_extensions=("html",), default=True, disabled_extensions=("md",)),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    templates.policies["ext.i18n.trimmed"] = True
    # What the extension adds to an environment is invisible to mypy.
    vars(templates)["install_gettext_translations"](_translations(language), newstyle=True)
    templates.filters["plain"] = plain
    templates.globals["static"] = files
    templates.globals["language"] = language
    return templates


def _translations(language: Language) -> NullTranslations:
    """Compiled in memory: a compiled file beside the source would be one more thing to forget."""
    if language == ENGLISH:
        return NullTranslations()
    with (TRANSLATIONS / f"{language.code}.po").open("rb") as source:
        catalog = read_po(source, locale=language.code)
    compiled = BytesIO()
    write_mo(compiled, catalog)
    compiled.seek(0)
    return Translations(compiled)
