"""Names that strangers chose, made safe to show: nothing that hides, reorders, overprints or runs on.

Escaping is Jinja's; this is about letters that lie (UTS 39, CVE-2021-42574).
"""

import re
import unicodedata
from dataclasses import dataclass
from urllib.parse import urlsplit

from oauth.redirect_uris import is_loopback

MAX_CHARACTERS = 80
MAX_HOST_CHARACTERS = 253
MAX_STACKED_MARKS = 2
_BLANK = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
"""Letters, marks and symbols that print as nothing; all other invisible ones have a category of their own."""


def plain(text: str, limit: int = MAX_CHARACTERS) -> str:
    """One line of visible characters: without control, format, private and unassigned ones; cut."""
    text = unicodedata.normalize("NFC", text)
    visible, marks = [], 0
    for character in text:
        category = unicodedata.category(character)
        if category[0] == "Z" or character in "\t\n\r\v\f":
            visible.append(" ")
        elif category[0] == "C" or character in _BLANK:
            continue
        else:
            marks = marks + 1 if category[0] == "M" else 0
            if marks <= MAX_STACKED_MARKS:
                visible.append(character)
    line = re.sub(" +", " ", "".join(visible)).strip()
    return line if len(line) <= limit else line[: limit - 1].rstrip() + "…"


@dataclass(frozen=True)
class Destination:
    """Where the browser, and with it the code, will be sent."""

    host: str
    kind: str
    """`web`, `loopback` (any program on this computer may listen there) or `app` (a link into an app)."""


def destination(redirect_uri: str) -> Destination:
    """What to show of a redirect URI: its host as the network knows it, in ASCII."""
    if is_loopback(redirect_uri):
        return Destination(urlsplit(redirect_uri).hostname or "", "loopback")
    if redirect_uri.startswith("https://"):
        return Destination(host_of(redirect_uri), "web")
    scheme, _, rest = redirect_uri.partition(":")
    return Destination(plain(f"{scheme}:{rest.split('?')[0]}"), "app")


def host_of(uri: str) -> str:
    """Host and port of an https URI; an international name in its ASCII form, where look-alikes differ."""
    host = urlsplit(uri).netloc.rpartition("@")[2].lower()
    if not host.isascii():
        host = host.encode("idna", "replace").decode("ascii", "replace")
    return plain(host.removesuffix(":443"), MAX_HOST_CHARACTERS)
