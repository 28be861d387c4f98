"""The authorization request and response (RFC 6749 §4.1.1-2, OAuth 2.1 §4.1, RFC 9207).

Two phases: until `identify` has proven client and redirect URI, errors are for a page; from then on they go
to the redirect URI with `state` and `iss`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import quote, urlencode

from authlib.oauth2 import OAuth2Error

from oauth import clients, pkce
from oauth.clients import Client
from oauth.errors import (
    ConsentRequired,
    InvalidClient,
    InvalidRequest,
    RequestNotSupported,
    UnauthorizedClient,
    UnsupportedResponseType,
)
from oauth.parameters import check_text, refuse_repeats, resources, single
from oauth.records import Value
from oauth.resources import check_resources

if TYPE_CHECKING:
    from oauth.server import AuthorizationServer

Params = Sequence[tuple[str, str]]

MAX_STATE_LENGTH = 4096


@dataclass(frozen=True)
class AuthorizationRequest:
    """A request that only the owner can still refuse."""

    client_id: str
    redirect_uri: str
    scopes: frozenset[str]
    """What the client asks for, as far as it exists; the defaults if nothing is left."""
    state: str | None
    code_challenge: str
    resource: str
    prompt: frozenset[str]
    """`login`, `consent`, `select_account` or whatever else was asked for; consent is asked every time."""

    def to_value(self) -> Value:
        """A JSON object, for the pending request."""
        lists = {"scopes": sorted(self.scopes), "prompt": sorted(self.prompt)}
        return {**self.__dict__, **lists}

    @classmethod
    def from_value(cls, value: Value) -> "AuthorizationRequest":
        """The request that `to_value` wrote down."""
        sets = {"scopes": frozenset(value["scopes"]), "prompt": frozenset(value["prompt"])}
        return cls(**{**value, **sets})


def identify(server: "AuthorizationServer", params: Params) -> tuple[Client, str]:
    """The client and its proven redirect URI; without both nothing may be redirected (OAuth 2.1 §4.1.2.1).

    Raises:
        OAuthError: for a page with status 400, never for a redirect.
    """
    for name, value in params:
        check_text(name + value)
    client_id, redirect_uri = single(params, "client_id"), single(params, "redirect_uri")
    client = clients.find(server, client_id) if client_id is not None else None
    if client is None:
        raise InvalidClient("this client is not known here")
    if redirect_uri is None:
        if len(client.redirect_uris) != 1:
            raise InvalidRequest("redirect_uri is missing")
        return client, client.redirect_uris[0]
    if not client.is_redirect_uri(redirect_uri):
        raise InvalidRequest("redirect_uri is not registered for this client")
    return client, redirect_uri


def validate(
    server: "AuthorizationServer", client: Client, redirect_uri: str, params: Params
) -> AuthorizationRequest:
    """Checks the rest of the request (OAuth 2.1 §4.1.1, RFC 7636 §4.3, RFC 8707 §2).

    Raises:
        OAuthError: for the redirect URI.
    """
    refuse_repeats(params)
    if single(params, "request") or single(params, "request_uri"):
        raise RequestNotSupported("send the parameters themselves, request objects are not read")
    response_type = single(params, "response_type")
    if response_type is None:
        raise InvalidRequest("response_type is missing")
    if response_type != "code":
        raise UnsupportedResponseType("response_type must be code")
    if not client.check_grant_type("authorization_code"):
        raise UnauthorizedClient("the client did not register for this grant type")
    if len(single(params, "state") or "") > MAX_STATE_LENGTH:
        raise InvalidRequest(f"state is longer than {MAX_STATE_LENGTH} characters")
    code_challenge = pkce.check_challenge(
        single(params, "code_challenge"), single(params, "code_challenge_method")
    )
    check_resources(resources(params), server.issuer, server.resource)
    prompt = frozenset((single(params, "prompt") or "").split())
    if "none" in prompt:
        raise ConsentRequired("the owner is asked every time")
    return AuthorizationRequest(
        client_id=client.client_id,
        redirect_uri=redirect_uri,
        scopes=server.scopes.parse(single(params, "scope")),
        state=single(params, "state"),
        code_challenge=code_challenge,
        resource=server.resource,
        prompt=prompt,
    )


def find_state(params: Params) -> str | None:
    """The state to send back with an error: the one that was sent, unless it is unclear which that was."""
    states = [value for name, value in params if name == "state" and value]
    return states[0] if len(states) == 1 and len(states[0]) <= MAX_STATE_LENGTH else None


def success_redirect(request: AuthorizationRequest, code: str, issuer: str) -> str:
    """Where the browser takes the code: in the query, with `state` and `iss` (RFC 9207 §2)."""
    return _add(request.redirect_uri, [("code", code), ("state", request.state), ("iss", issuer)])


def error_redirect(redirect_uri: str, error: OAuth2Error, state: str | None, issuer: str) -> str:
    """Where the browser takes an error (RFC 6749 §4.1.2.1), `iss` included."""
    params = [("error", error.error), ("error_description", error.description)]
    return _add(redirect_uri, [*params, ("state", state), ("iss", issuer)])


def _add(redirect_uri: str, params: Sequence[tuple[str, str | None]]) -> str:
    """Registered URIs carry none of these parameters, so each comes once (`redirect_uris`)."""
    query = urlencode([(name, value) for name, value in params if value], quote_via=quote, safe="")
    separator = "" if redirect_uri.endswith(("?", "&")) else "&" if "?" in redirect_uri else "?"
    return redirect_uri + separator + query
