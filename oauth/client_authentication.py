"""Client authentication at the token and revocation endpoints (RFC 6749 §2.3, RFC 7523 §2.2)."""

import asyncio
import base64
import binascii
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import unquote_plus

from oauth import client_assertion, client_documents, clients
from oauth.client_assertion import ASSERTION_TYPE
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
    client_assertion: str | None = field(default=None, repr=False)


def read(request: FormRequest) -> Credentials:
    """What the request presents: at most one method, and one identity (§2.3).

    Raises:
        InvalidRequest: two methods at once, or two identities.
        InvalidClient: no identity, or a header or assertion that cannot be read.
    """
    form = request.form
    presented = [
        _read_basic(request.headers.get("authorization", "")),
        _read_assertion(form.get("client_assertion"), form.get("client_assertion_type")),
        Credentials(form.get("client_id", ""), form["client_secret"]) if "client_secret" in form else None,
    ]
    methods = [credentials for credentials in presented if credentials is not None]
    if len(methods) > 1:
        raise InvalidRequest("the client authenticates in two ways at once")
    credentials = methods[0] if methods else Credentials(form.get("client_id", ""))
    if not credentials.unverified_client_id:
        raise InvalidClient("client_id is missing")
    if form.get("client_id", credentials.unverified_client_id) != credentials.unverified_client_id:
        raise InvalidRequest("client_id and the credentials name two clients")
    return credentials


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


def _read_assertion(assertion: str | None, assertion_type: str | None) -> Credentials | None:
    if assertion is None and assertion_type is None:
        return None
    if assertion is None or assertion_type != ASSERTION_TYPE:
        raise InvalidClient("client_assertion and the type of a JWT belong together")
    subject = client_assertion.unverified_client_id(assertion)
    if subject is None:
        raise InvalidClient("the assertion cannot be read")
    return Credentials(subject, client_assertion=assertion)


def find_credentials(request: FormRequest) -> Credentials | None:
    """What the request presents; None when that cannot be read, which `authenticate` tells in its turn."""
    try:
        return read(request)
    except (InvalidClient, InvalidRequest):
        return None


async def resolve(server: "AuthorizationServer", request: FormRequest) -> None:
    """Fetches what authenticating this request needs. To be awaited before the worker thread.

    Raises:
        OAuthError: `temporarily_unavailable` when a host does not answer, `invalid_client` for a document
            that is none.
    """
    credentials = find_credentials(request)
    if credentials is None:
        return
    await client_documents.resolve(server, credentials.unverified_client_id)
    if credentials.client_assertion is not None:
        client = await asyncio.to_thread(clients.find, server, credentials.unverified_client_id)
        if client is not None:
            await server.client_keys.refresh(client, credentials.client_assertion)


def authenticate(server: "AuthorizationServer", request: FormRequest) -> Client:
    """The client that the request comes from.

    Raises:
        InvalidClient: unknown, or it did not authenticate as it registered; which of them is not told.
    """
    credentials = read(request)
    client = clients.find(server, credentials.unverified_client_id)
    if credentials.client_assertion is not None and client is not None:
        if "private_key_jwt" not in client.auth_methods:
            raise InvalidClient("the client is unknown or did not authenticate")
        client_assertion.verify(server, client, credentials.client_assertion)
        return client
    if credentials.client_secret is not None:
        is_authentic = (client or clients.NOBODY).is_secret(credentials.client_secret)
    else:
        is_authentic = client is not None and "none" in client.auth_methods
    if client is None or not is_authentic:
        raise InvalidClient("the client is unknown or did not authenticate")
    return client
