"""In which language a person reads the pages: what they chose here, else what their browser asks for.

The switch is a link to the same page with `lang` in its query, so it works without a script; the answer sets
a cookie that holds nothing but the language.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import parse_qs, urlencode

from starlette.requests import Request
from starlette.responses import Response

from connector.pages.forms import Parameters

PARAMETER = "lang"
MAX_QUERY_BYTES = 4096
"""Longer queries are answered by an error page, whose switch then leads to the page without them."""
MAX_RANGES = 20
MAX_AGE_SECONDS = 365 * 24 * 3600


@dataclass(frozen=True)
class Language:
    """A language of the pages."""

    code: str
    """As in the query, the cookie and the name of the file of translations."""
    tag: str
    """As in the `lang` attribute (RFC 5646)."""
    name: str
    """In itself."""


ENGLISH = Language("en", "en", "English")
LANGUAGES = (
    ENGLISH,
    Language("pt", "pt", "Português"),
    Language("es", "es", "Español"),
    Language("zh", "zh-Hans", "简体中文"),
)
_BY_CODE: Mapping[str, Language] = {language.code: language for language in LANGUAGES}


@dataclass(frozen=True)
class LanguageCookie:
    """The choice, kept in the browser; nothing but the four codes is ever believed."""

    is_https: bool

    @property
    def name(self) -> str:
        """As the session's, with `__Host-` where there is TLS."""
        return "__Host-vademecum-language" if self.is_https else "vademecum-language"

    def write(self, response: Response, language: Language) -> None:
        """Adds it to the response's other cookies."""
        cookie = f"{self.name}={language.code}; Path=/; Max-Age={MAX_AGE_SECONDS}; HttpOnly; SameSite=Lax"
        response.headers.append("Set-Cookie", cookie + ("; Secure" if self.is_https else ""))


def chosen(request: Request) -> Language | None:
    """The language that this very request asks to switch to."""
    query: bytes = request.scope["query_string"]
    if len(query) > MAX_QUERY_BYTES:
        return None
    values = parse_qs(query.decode("latin-1"), errors="replace").get(PARAMETER, [])
    return next((_BY_CODE[value] for value in values if value in _BY_CODE), None)


def preferred(request: Request, cookie: LanguageCookie) -> Language:
    """The language to answer in."""
    kept = _BY_CODE.get(request.cookies.get(cookie.name, ""))
    return chosen(request) or kept or negotiate(request.headers.get("accept-language", ""))


def negotiate(accept_language: str) -> Language:
    """The best of ours by `Accept-Language` (RFC 9110 §12.5.4), matched by primary tag; English otherwise.

    Whoever asks for another variety of one of our languages is served ours: `pt-BR`, `es-419`, `zh-TW`.
    """
    ranges = []
    for part in accept_language.split(",")[:MAX_RANGES]:
        tag, _, parameters = part.partition(";")
        quality = _quality(parameters)
        language = _BY_CODE.get(tag.strip().split("-")[0].lower())
        if language is not None and quality > 0:
            ranges.append((quality, language))
    return max(ranges, key=lambda each: each[0], default=(0, ENGLISH))[1]


def _quality(parameters: str) -> float:
    name, _, value = parameters.strip().partition("=")
    if name.strip().lower() != "q":
        return 1.0
    try:
        return float(value)
    except ValueError:
        return 0.0


def switch(parameters: Parameters) -> Sequence[tuple[Language, str]]:
    """Each language with the reference to the same page in it, which is a query alone (RFC 3986 §5.2.2)."""
    kept = [(name, value) for name, value in parameters if name != PARAMETER]
    if len(urlencode(kept)) > MAX_QUERY_BYTES:
        kept = []
    return [(language, f"?{urlencode([*kept, (PARAMETER, language.code)])}") for language in LANGUAGES]
