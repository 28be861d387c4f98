"""Client authentication at the token and revocation endpoints (RFC 6749 §2.3, RFC 7523 §2.2)."""

import base64
import binascii
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import unquote_plus

from oauth import clients
from oauth.clients import Client
from oauth.errors import InvalidClient, InvalidRequest
from oauth.parameters import FormRequest, check_text

if TYPE_CHECKING:
    from oauth.server import AuthorizationServer

_BASIC = re.compile(r"basic +([A-Za-z0-9+/]+={0,2}) *", re.IGNORECASE)


@dataclass(frozen=True)
class Credentials:
    """Who a request says it comes from, and what it shows for it."""

    unverified_client_id: str
    client_secret: str | None = field(default=None, repr=False)


def read(request: FormRequest) -> Credentials:
    """What the request presents: at most one method, and one identity (§2.3).

    Raises:
        InvalidRequest: two methods at once, or two identities.
        InvalidClient: no identity, or a Basic header that cannot be read.
    """
    basic = _read_basic(request.headers.get("authorization", ""))
    client_id, secret = request.form.get("client_id"), request.form.get("client_secret")
    if basic is None:
        if client_id is None:
            raise InvalidClient("client_id is missing")
        return Credentials(client_id, secret)
    if secret is not None:
        raise InvalidRequest("the client authenticates in two ways at once")
    if client_id is not None and client_id != basic.unverified_client_id:
        raise InvalidRequest("client_id and the Basic header name two clients")
    return basic


def _read_basic(header: str) -> Credentials | None:
    """RFC 7617, with both parts form-encoded (RFC 6749 §2.3.1); an empty password is none."""
    if not header.lower().startswith("basic"):
        return None
    match = _BASIC.fullmatch(header)
    try:
        client_id, colon, secret = base64.b64decode(match[1] if match else "").decode().partition(":")
        client_id, secret = unquote_plus(client_id, errors="strict"), unquote_plus(secret, errors="strict")
        check_text(client_id + secret)
    except (binascii.Error, ValueError, InvalidRequest):
        raise InvalidClient("the Basic header cannot be read") from None
    if not colon:
        raise InvalidClient("the Basic header cannot be read")
    return Credentials(client_id, secret or None)


def authenticate(server: "AuthorizationServer", request: FormRequest) -> Client:
    """The client that the request comes from.

    Raises:
        InvalidClient: unknown, or it did not authenticate as it registered; which of them is not told.
    """
    credentials = read(request)
    client = clients.find(server, credentials.unverified_client_id)
    if credentials.client_secret is not None:
        is_authentic = (client or clients.NOBODY).is_secret(credentials.client_secret)
    else:
        is_authentic = client is not None and "none" in client.auth_methods
    if client is None or not is_authentic:
        raise InvalidClient("the client is unknown or did not authenticate")
    return client
