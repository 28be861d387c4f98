"""The token endpoint: what succeeds, and every refusal by its code."""

import pytest

from oauth import access_tokens, grants
from oauth.server import AuthorizationServer
from tests.oauth.stand import DEFAULT, SUBJECT, Host, error


def test_code_for_tokens(host: Host, server: AuthorizationServer) -> None:
    response = host.redeem(host.code())
    assert response.status_code == 200
    tokens = response.json()
    assert tokens.keys() == {"access_token", "token_type", "expires_in", "refresh_token", "scope"}
    assert (tokens["token_type"], tokens["expires_in"]) == ("Bearer", 3600)
    assert tokens["scope"] == "memory:read memory:write"
    token = access_tokens.verify(server, tokens["access_token"])
    assert (token.subject, token.client_id, token.scopes) == (SUBJECT, host.client_id, DEFAULT)
    assert grants.authorize_token(server, token) == DEFAULT
