"""Whether a form was filled in on our own page, in this browser (CWE-352).

Two checks, both always: a token that only a page given to this browser for this purpose can hold, and where
the browser itself says that the request comes from.
"""

import base64
import hashlib
import hmac
from collections.abc import Mapping

FIELD = "csrf"


def subkey(state_key: bytes) -> bytes:
    """The key of the tokens, derived from the state key (RFC 5869 in its one-block form)."""
    return hmac.digest(state_key, b"vademecum/pages/csrf/1", hashlib.sha256)


def token(key: bytes, cookie: str, purpose: str) -> str:
    """The token of a form; `purpose` names the form and the pending request that it answers."""
    mac = hmac.digest(key, f"{cookie}\0{purpose}".encode(), hashlib.sha256)
    return base64.urlsafe_b64encode(mac).rstrip(b"=").decode()


def is_token(key: bytes, cookie: str, purpose: str, presented: str) -> bool:
    """Whether `presented` is that token, compared in constant time."""
    return hmac.compare_digest(token(key, cookie, purpose).encode(), presented.encode())


def is_same_origin(headers: Mapping[str, str], origin: str) -> bool:
    """Whether the browser sent the form from our own page.

    Chromium and Firefox send `Origin: null` from a page with the policy `no-referrer`; then, and without an
    Origin, `Sec-Fetch-Site` must speak for it. It cannot be set by a page's script.
    """
    presented = headers.get("origin", "null")
    return presented == origin or (presented == "null" and headers.get("sec-fetch-site") == "same-origin")
