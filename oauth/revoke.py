"""Token revocation (RFC 7009), for public clients too."""

from typing import TYPE_CHECKING, TypeAlias

from authlib.oauth2.rfc7009 import RevocationEndpoint as AuthlibRevocationEndpoint

from oauth import access_tokens, derived_tokens, grants
from oauth.access_tokens import AccessToken
from oauth.client_metadata import AUTH_METHODS
from oauth.clients import Client
from oauth.derived_tokens import RefreshToken
from oauth.errors import InvalidRequest, InvalidToken
from oauth.parameters import FormRequest

if TYPE_CHECKING:
    from oauth.server import AuthorizationServer

_Token: TypeAlias = AccessToken | RefreshToken


class RevocationEndpoint(AuthlibRevocationEndpoint):
    """A refresh token ends its grant, an access token only itself."""

    CLIENT_AUTH_METHODS = list(AUTH_METHODS)

    server: "AuthorizationServer"

    def authenticate_token(self, request: FormRequest, client: Client) -> _Token | None:
        """The token, if it is this client's; None, hence 200, for anything else (§2.1, §2.2).

        `token_type_hint` is not needed: the two kinds of token look different.
        """
        token = request.form.get("token")
        if token is None:
            raise InvalidRequest("token is missing")
        found = derived_tokens.read_refresh_token(self.server, token) or self._read_access_token(token)
        grant = grants.find(self.server, found.grant_id) if found is not None else None
        return found if grant is not None and grant.client_id == client.client_id else None

    def revoke_token(self, token: _Token, request: FormRequest) -> None:
        """At once in this process, within the guard's five seconds in others."""
        if isinstance(token, RefreshToken):
            grants.end(self.server, token.grant_id)
        else:
            grants.revoke_access_token(self.server, token)

    def _read_access_token(self, token: str) -> AccessToken | None:
        try:
            return access_tokens.verify(self.server, token)
        except InvalidToken:
            return None
