"""The token endpoint's two grants: authorization code and refresh token (RFC 6749 §4.1.3, §5, §6).

Each checks everything that could refuse the request, in the RFC's order, and only then changes state: a
refused request changes nothing.
"""

from typing import TYPE_CHECKING, Any

from authlib.oauth2.rfc6749.grants import BaseGrant, TokenEndpointMixin

from oauth import access_tokens, derived_tokens, grants, pkce, rotation
from oauth.client_metadata import AUTH_METHODS
from oauth.clients import Client
from oauth.errors import InvalidGrant, InvalidRequest, InvalidScope, UnauthorizedClient
from oauth.grants import Grant
from oauth.parameters import FormRequest
from oauth.resources import check_resources

if TYPE_CHECKING:
    from oauth.server import AuthorizationServer

_Response = tuple[int, dict[str, Any], list[tuple[str, str]]]


class _TokenGrant(BaseGrant, TokenEndpointMixin):
    """What both have in common: authentication, the resource, and the shape of the answer."""

    TOKEN_ENDPOINT_AUTH_METHODS = list(AUTH_METHODS)

    GRANT_TYPE: str  # type: ignore[assignment]  # Authlib's says None
    server: "AuthorizationServer"
    request: FormRequest

    def authenticate(self) -> Client:
        """The client, allowed to use this grant type, asking for our resource."""
        client: Client = self.authenticate_token_endpoint_client()  # type: ignore[no-untyped-call]
        if not client.check_grant_type(self.GRANT_TYPE):
            raise UnauthorizedClient("the client did not register for this grant type")
        check_resources(self.request.resources, self.server.issuer, self.server.resource)
        return client

    def require(self, name: str) -> str:
        """The parameter's value."""
        value = self.request.form.get(name)
        if value is None:
            raise InvalidRequest(f"{name} is missing")
        return value

    def answer(self, grant: Grant, refresh_token: str, scopes: frozenset[str]) -> _Response:
        """RFC 6749 §5.1; the state it tells of is already committed."""
        body = {
            "access_token": access_tokens.issue(self.server, grant, scopes),
            "token_type": "Bearer",
            "expires_in": int(self.server.lifetimes.advertised_access_token.total_seconds()),
            "refresh_token": refresh_token,
            "scope": self.server.scopes.to_wire(scopes),
        }
        return 200, body, self.TOKEN_RESPONSE_HEADER


class AuthorizationCodeGrant(_TokenGrant):
    """`grant_type=authorization_code` (RFC 6749 §4.1.3, RFC 7636 §4.6)."""

    GRANT_TYPE = "authorization_code"

    def validate_token_request(self) -> None:
        """The code is bound to its client, redirect URI and challenge; a refusal leaves it good for them."""
        client = self.authenticate()
        grant_id = derived_tokens.read_code(self.server, self.require("code"))
        grant = grants.find(self.server, grant_id) if grant_id is not None else None
        if grant is None or grant.client_id != client.client_id:
            raise InvalidGrant("the code is unknown, expired or another client's")
        # OAuth 2.1 §10.2: its clients no longer send the redirect URI here, but if it comes it must be right.
        if self.request.form.get("redirect_uri", grant.redirect_uri) != grant.redirect_uri:
            raise InvalidGrant("redirect_uri is not the one of the authorization request")
        pkce.verify(self.request.form.get("code_verifier"), grant.code_challenge)
        self.grant_id = grant.grant_id

    def create_token_response(self) -> _Response:
        """Redeems the code; everything that could refuse it has been checked."""
        grant = grants.redeem(self.server, self.grant_id)
        refresh_token = derived_tokens.derive_refresh_token(self.server, grant.grant_id, grant.generation)
        return self.answer(grant, refresh_token, grant.scopes)


class RefreshTokenGrant(_TokenGrant):
    """`grant_type=refresh_token` (RFC 6749 §6)."""

    GRANT_TYPE = "refresh_token"

    def validate_token_request(self) -> None:
        """The token is bound to its client; `scope` may only name what was granted."""
        client = self.authenticate()
        token = derived_tokens.read_refresh_token(self.server, self.require("refresh_token"))
        grant = grants.find(self.server, token.grant_id) if token is not None else None
        if token is None or grant is None or not grant.is_redeemed or grant.client_id != client.client_id:
            raise InvalidGrant("the refresh token is unknown, expired or another client's")
        self._scopes(grant)
        self.token = token

    def create_token_response(self) -> _Response:
        """Rotates the token and answers with what is granted now."""
        grant, refresh_token = rotation.rotate(self.server, self.token)
        return self.answer(grant, refresh_token, self._scopes(grant))

    def _scopes(self, grant: Grant) -> frozenset[str]:
        """Never more than is granted now; naming more than was ever granted is an error (§6)."""
        requested = frozenset(self.request.form.get("scope", "").split()) - {"offline_access"}
        if not requested <= grant.ever_granted:
            raise InvalidScope("a scope was never granted")
        scopes = grant.scopes & requested if requested else grant.scopes
        if not scopes:
            raise InvalidScope("nothing that was asked for is granted any more")
        return scopes
