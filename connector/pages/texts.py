"""The texts that a directory or a careful person asks for: privacy, terms, support. Open to everybody.

Sensible ones in every language come with the program; whoever runs a server may put a text of their own in
the place of each. All are Markdown, in which HTML is shown and not obeyed.
"""

from dataclasses import dataclass

from markdown_it import MarkdownIt
from markupsafe import Markup
from starlette.responses import Response

from connector.pages.page import Visit
from connector.pages.public_texts import TextName


@dataclass(frozen=True)
class ShowText:
    """Shows one text."""

    name: TextName

    def __call__(self, visit: Visit) -> Response:
        """Public; the same for everybody."""
        texts = visit.context.public_texts
        own = texts.own.get(self.name)
        source = own if own is not None else self._default(visit)
        html = _markdown().render(source)
        values = {
            "name": self.name,
            # Markdown with HTML switched off is escaped, and its links lead to web and mail addresses only.
            "text": Markup(html),  # noqa: S704
            "text_language": texts.own_language if own is not None else visit.language.tag,
            "has_heading": "<h1>" in html,
        }
        return visit.render("text.html", values)

    def _default(self, visit: Visit) -> str:
        context = visit.context
        template = context.templates[visit.language.code].get_template(
            f"texts/{self.name}.{visit.language.code}.md"
        )
        return template.render(
            server=context.public_url.partition("://")[2],
            public_url=context.public_url,
            operator=_literal(context.public_texts.operator),
            contact=context.public_texts.contact,
            contact_name=_literal(context.public_texts.contact.removeprefix("mailto:")),
            services=[_literal(service) for service in context.public_texts.services],
            provider=context.provider.name,
        )


def _markdown() -> MarkdownIt:
    return MarkdownIt("commonmark", {"html": False}).enable("table")


def _literal(text: str) -> str:
    """A name as Markdown that shows it as it is."""
    return "".join(f"\\{each}" if each in r"\`*_{}[]<>()#+-.!|&~" else each for each in text)
