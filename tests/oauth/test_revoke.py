"""Revocation: a refresh token ends the grant, an access token itself, and nobody ends another's."""

from typing import Any

import pytest

from oauth import access_tokens, grants
from oauth.errors import InvalidToken
from oauth.server import AuthorizationServer
from tests.oauth.stand import Host, error


@pytest.fixture
def tokens(host: Host) -> dict[str, Any]:
    return host.connect()


def is_alive(server: AuthorizationServer, access_token: str) -> bool:
    try:
        grants.authorize_token(server, access_tokens.verify(server, access_token))
    except InvalidToken:
        return False
    return True


@pytest.mark.threat("RV-01")
@pytest.mark.parametrize("hint", [None, "refresh_token", "access_token", "nonsense"])
def test_revoking_the_refresh_token_ends_the_grant_whatever_the_hint(
    host: Host, server: AuthorizationServer, tokens: dict[str, Any], hint: str | None
) -> None:
    response = host.revoke(tokens["refresh_token"], token_type_hint=hint)
    assert response.status_code == 200
    assert error(host.refresh(tokens["refresh_token"])) == (400, "invalid_grant")
    assert not is_alive(server, tokens["access_token"])


@pytest.mark.threat("RV-01")
def test_an_older_refresh_token_ends_the_grant_too(host: Host, tokens: dict[str, Any]) -> None:
    newer = host.refresh(tokens["refresh_token"]).json()
    assert host.revoke(tokens["refresh_token"]).status_code == 200
    assert error(host.refresh(newer["refresh_token"])) == (400, "invalid_grant")


@pytest.mark.threat("RV-02")
def test_a_revoked_access_token_is_dead_at_once_and_alone(
    host: Host, server: AuthorizationServer, tokens: dict[str, Any]
) -> None:
    told: list[str] = []
    server.on_grant_changed.append(told.append)
    newer = host.refresh(tokens["refresh_token"]).json()
    assert host.revoke(tokens["access_token"], token_type_hint="refresh_token").status_code == 200
    assert not is_alive(server, tokens["access_token"])
    assert is_alive(server, newer["access_token"])
    assert len(told) == 1
    assert host.refresh(newer["refresh_token"]).status_code == 200


@pytest.mark.threat("RV-03")
def test_unknown_is_fine_and_missing_is_not(host: Host, tokens: dict[str, Any]) -> None:
    for unknown in ("nothing", host.code(), tokens["access_token"][:-1], tokens["refresh_token"] + "x"):
        assert host.revoke(unknown).status_code == 200
    assert error(host.revoke("")) == (400, "invalid_request")
    assert error(host.http.get("/revoke")) == (405, "invalid_request")
    assert host.refresh(tokens["refresh_token"]).status_code == 200


@pytest.mark.threat("RV-04")
def test_one_client_cannot_revoke_anothers_tokens(
    other_host: Host, server: AuthorizationServer, tokens: dict[str, Any]
) -> None:
    for name in ("refresh_token", "access_token"):
        assert other_host.revoke(tokens[name]).status_code == 200
    assert is_alive(server, tokens["access_token"])


@pytest.mark.threat("RV-05")
def test_a_confidential_client_must_authenticate(secret_host: Host, server: AuthorizationServer) -> None:
    tokens = secret_host.connect()
    for secret in (None, "wrong"):
        refused = secret_host.revoke(tokens["refresh_token"], client_secret=secret)
        assert error(refused) == (401, "invalid_client")
    assert is_alive(server, tokens["access_token"])
    assert secret_host.revoke(tokens["refresh_token"]).status_code == 200
    assert not is_alive(server, tokens["access_token"])


def test_revoking_after_the_grant_has_ended_is_fine(host: Host, tokens: dict[str, Any]) -> None:
    for name in ("refresh_token", "access_token", "refresh_token"):
        assert host.revoke(tokens[name]).status_code == 200
