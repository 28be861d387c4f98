"""What an owner does with a grant, and what the guard asks of it."""

import dataclasses
import logging
from datetime import timedelta
from typing import Any

import pytest

from oauth import access_tokens, grants, keys
from oauth.errors import AccessDenied, InvalidToken
from oauth.server import AuthorizationServer
from tests.oauth.stand import DEFAULT, SUBJECT, Clock, Host, MemoryRecords, error, make_server

READ = frozenset({"memory:read"})


@pytest.fixture
def told(server: AuthorizationServer) -> list[str]:
    told: list[str] = []
    server.on_grant_changed.append(told.append)
    return told


@pytest.fixture
def token(host: Host, server: AuthorizationServer) -> access_tokens.AccessToken:
    return access_tokens.verify(server, host.connect()["access_token"])


def test_a_grant_says_who_what_and_when(
    host: Host, server: AuthorizationServer, clock: Clock, token: access_tokens.AccessToken
) -> None:
    grant = grants.find(server, token.grant_id)
    assert grant is not None
    assert grant == grants.get(server, token.grant_id)
    assert (grant.subject, grant.client_id, grant.client_name) == (SUBJECT, host.client_id, "Test host")
    assert (grant.scopes, grant.ever_granted, grant.spaces) == (DEFAULT, DEFAULT, None)
    assert grant.created_at == grant.last_used_at == clock()
    assert grant == grants.Grant.from_value(grant.to_value())


def test_a_person_sees_her_own_grants_only_oldest_first(
    host: Host, server: AuthorizationServer, clock: Clock
) -> None:
    for subject in (SUBJECT, "somebody", SUBJECT):
        host.code(subject=subject)
        clock.advance(seconds=1)
    mine = grants.of_subject(server, SUBJECT)
    assert [grant.subject for grant in mine] == [SUBJECT, SUBJECT]
    assert mine[0].created_at < mine[1].created_at
    assert not mine[0].is_redeemed


def test_narrowing_acts_on_living_tokens(
    server: AuthorizationServer, told: list[str], token: access_tokens.AccessToken
) -> None:
    grants.narrow(server, token.grant_id, READ | {"memory:delete"})
    assert grants.authorize_token(server, token) == READ
    assert told == [token.grant_id]


def test_widening_waits_for_the_next_token(
    server: AuthorizationServer, told: list[str], token: access_tokens.AccessToken
) -> None:
    grants.widen(server, token.grant_id, frozenset({"memory:delete"}))
    assert grants.authorize_token(server, token) == DEFAULT
    assert grants.get(server, token.grant_id).scopes == DEFAULT | {"memory:delete"}
    assert told == [token.grant_id]


def test_spaces_can_be_chosen_anew(server: AuthorizationServer, token: access_tokens.AccessToken) -> None:
    grants.set_spaces(server, token.grant_id, ("work",))
    assert grants.get(server, token.grant_id).spaces == ("work",)
    grants.set_spaces(server, token.grant_id, None)
    assert grants.get(server, token.grant_id).spaces is None


@pytest.mark.threat("RV-06")
def test_ending_a_grant_ends_everything_at_once(
    host: Host, server: AuthorizationServer, told: list[str], token: access_tokens.AccessToken
) -> None:
    tokens = host.connect()
    grant_id = access_tokens.verify(server, tokens["access_token"]).grant_id
    grants.end(server, grant_id)
    assert told == [grant_id]
    assert grants.find(server, grant_id) is None
    assert error(host.refresh(tokens["refresh_token"])) == (400, "invalid_grant")
    assert grants.authorize_token(server, token) == DEFAULT


@pytest.mark.threat("PP-02")
@pytest.mark.parametrize("grant_id", ["", "../x", "a/b", "__x__", "*", "x" * 1600, "0" * 32])
def test_a_grant_id_that_is_none_is_simply_unknown(
    server: AuthorizationServer, told: list[str], grant_id: str
) -> None:
    assert grants.find(server, grant_id) is None
    assert grants.narrow(server, grant_id, READ) is None
    grants.end(server, grant_id)
    with pytest.raises(InvalidToken):
        grants.get(server, grant_id)


def test_a_client_that_revokes_by_the_hundred_loses_the_grant(
    server: AuthorizationServer, token: access_tokens.AccessToken, clock: Clock
) -> None:
    for number in range(grants.MAX_REVOKED_TOKENS):
        grants.revoke_access_token(server, dataclasses.replace(token, jti=str(number)))
    assert grants.find(server, token.grant_id) is not None
    grants.revoke_access_token(server, token)
    assert grants.find(server, token.grant_id) is None


def test_revoked_tokens_are_forgotten_when_they_would_have_expired(
    host: Host, server: AuthorizationServer, token: access_tokens.AccessToken, clock: Clock
) -> None:
    grants.revoke_access_token(server, token)
    clock.advance(hours=2)
    later = dataclasses.replace(token, jti="later", expires_at=clock() + timedelta(hours=1))
    grants.revoke_access_token(server, later)
    assert [jti for jti, _ in grants.get(server, token.grant_id).revoked_jtis] == ["later"]


def test_revoking_a_token_of_a_grant_that_ended_is_nothing(
    server: AuthorizationServer, token: access_tokens.AccessToken
) -> None:
    grants.end(server, token.grant_id)
    grants.revoke_access_token(server, token)
    assert grants.find(server, token.grant_id) is None


@pytest.mark.threat("KR-01")
def test_the_emergency_ends_everything_and_a_new_consent_works(
    host: Host, server: AuthorizationServer, records: MemoryRecords, clock: Clock
) -> None:
    other = make_server(records, clock)
    tokens, code = host.connect(), host.code()
    assert access_tokens.verify(other, tokens["access_token"])
    assert grants.end_all(server) == 2
    for each in (server, other):
        clock.advance(seconds=31)
        with pytest.raises(InvalidToken):
            access_tokens.verify(each, tokens["access_token"])
    assert error(host.refresh(tokens["refresh_token"])) == (400, "invalid_grant")
    assert error(host.redeem(code)) == (400, "invalid_grant")
    assert grants.of_subject(server, SUBJECT) == []
    assert access_tokens.verify(other, host.connect()["access_token"])


@pytest.mark.threat("KR-01")
def test_rotating_the_keys_signs_nobody_out(host: Host, server: AuthorizationServer, clock: Clock) -> None:
    tokens = host.connect()
    keys.rotate(server)
    clock.advance(seconds=61)
    assert access_tokens.verify(server, tokens["access_token"])
    assert host.refresh(tokens["refresh_token"]).status_code == 200


@pytest.mark.threat("ST-01")
@pytest.mark.threat("LG-01")
def test_neither_store_nor_log_holds_a_secret(
    secret_host: Host, records: MemoryRecords, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    host = secret_host
    code = host.code()
    tokens: dict[str, Any] = host.redeem(code).json()
    newer = host.refresh(tokens["refresh_token"]).json()
    host.redeem(code)
    secrets = [
        code,
        tokens["access_token"],
        tokens["refresh_token"],
        newer["refresh_token"],
        host.client_secret,
    ]
    stored = repr(records.dump())
    logged = "".join(repr(record.__dict__) for record in caplog.records)
    assert "code.replayed" in logged
    for secret in secrets:
        assert secret is not None
        assert secret not in stored
        assert secret.rpartition(".")[2] not in stored
        assert secret not in logged


@pytest.mark.threat("ST-02")
def test_nothing_that_is_stored_is_a_token(
    host: Host, server: AuthorizationServer, records: MemoryRecords
) -> None:
    host.connect()
    words = {word for text, _ in records.dump().values() for word in text.replace('"', " ").split()}
    for word in words:
        assert host.redeem(word).status_code == 400
        assert host.refresh(word).status_code == 400
        with pytest.raises(InvalidToken):
            access_tokens.verify(server, word)


def test_a_client_that_the_owner_let_in_outlives_its_grants(
    host: Host, other_host: Host, clock: Clock
) -> None:
    host.connect()
    clock.advance(days=91)
    assert error(other_host.redeem("code")) == (401, "invalid_client")
    assert error(host.redeem("code")) == (400, "invalid_grant")
    clock.advance(days=365)
    assert error(host.redeem("code")) == (401, "invalid_client")


@pytest.mark.threat("CS-08")
def test_only_scopes_that_exist_are_granted_and_none_is_a_denial(
    host: Host, server: AuthorizationServer
) -> None:
    tokens = host.connect(READ | {"admin:everything"})
    assert tokens["scope"] == "memory:read"
    with pytest.raises(AccessDenied):
        host.code(frozenset({"admin:everything"}))


def test_every_step_and_every_refusal_is_one_event(host: Host, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "oauth")
    code = host.code()
    tokens = host.redeem(code).json()
    host.refresh(tokens["refresh_token"])
    host.refresh(tokens["refresh_token"])
    host.redeem("nothing")
    host.post("/token", [("a", "b"), ("a", "b")])
    assert [record.message for record in caplog.records] == [
        "code.issued",
        "code.redeemed",
        "tokens.refreshed",
        "refresh_token.repeated",
        "tokens.refreshed",
        "request.refused",
        "request.refused",
    ]
    assert caplog.records[-1].__dict__["error"] == "invalid_request"
