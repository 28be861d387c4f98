"""The cookie of sessions: 256 random bits that name this browser, and its session once somebody signed in.

Nothing is inside it; what it stands for is kept on the server under its digest (OWASP session management).
"""

import hashlib
import re
import secrets
from dataclasses import dataclass

from starlette.datastructures import Headers
from starlette.responses import Response

_VALUE = re.compile(r"[A-Za-z0-9_-]{43}")
MAX_AGE_SECONDS = 90 * 24 * 3600


def new_value() -> str:
    """A value that nobody has seen yet."""
    return secrets.token_urlsafe(32)


def digest(value: str) -> str:
    """The key under which records about this cookie are kept."""
    return hashlib.sha256(value.encode()).hexdigest()


@dataclass(frozen=True)
class BrowserCookie:
    """Reads and writes it; `__Host-` keeps sibling hosts from planting one (RFC 6265bis §4.1.3.2)."""

    is_https: bool

    @property
    def name(self) -> str:
        """The prefix needs `Secure`, which plain http on this machine cannot have."""
        return "__Host-vademecum" if self.is_https else "vademecum"

    def read(self, headers: Headers) -> str | None:
        """The value, or None where it is missing, malformed, or sent twice with different values."""
        pairs = (pair.partition("=") for line in headers.getlist("cookie") for pair in line.split(";"))
        values = {value.strip() for name, _, value in pairs if name.strip() == self.name}
        if len(values) != 1:
            return None
        value = values.pop()
        return value if _VALUE.fullmatch(value) else None

    def write(self, response: Response, value: str) -> None:
        """Sets it, in place of what a response has set before. `Lax`: clients link to `/authorize`."""
        cookie = f"{self.name}={value}; Path=/; Max-Age={MAX_AGE_SECONDS}; HttpOnly; SameSite=Lax"
        response.headers["Set-Cookie"] = cookie + ("; Secure" if self.is_https else "")
