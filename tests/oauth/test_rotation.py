"""Refreshing: rotation, the lost answer, reuse, lifetimes and scopes."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest

from oauth import access_tokens, derived_tokens, grants
from oauth.errors import InvalidGrant, InvalidToken, TemporarilyUnavailable
from oauth.records import Value
from oauth.server import AuthorizationServer, Lifetimes
from tests.oauth.stand import Clock, Host, MemoryRecords, error, make_http, make_server


@pytest.fixture
def tokens(host: Host) -> dict[str, Any]:
    return host.connect()


def is_alive(server: AuthorizationServer, access_token: str) -> bool:
    try:
        grants.authorize_token(server, access_tokens.verify(server, access_token))
    except InvalidToken:
        return False
    return True


@pytest.mark.threat("RF-01")
def test_every_refresh_returns_new_tokens(host: Host, tokens: dict[str, Any]) -> None:
    seen = {tokens["refresh_token"]}
    for _ in range(3):
        tokens = host.refresh(tokens["refresh_token"]).json()
        assert tokens["refresh_token"] not in seen
        seen.add(tokens["refresh_token"])


@pytest.mark.threat("RF-02")
def test_a_spent_token_ends_the_whole_family(
    host: Host, server: AuthorizationServer, tokens: dict[str, Any]
) -> None:
    first = host.refresh(tokens["refresh_token"]).json()
    second = host.refresh(first["refresh_token"]).json()
    assert error(host.refresh(tokens["refresh_token"])) == (400, "invalid_grant")
    assert error(host.refresh(second["refresh_token"])) == (400, "invalid_grant")
    assert not is_alive(server, second["access_token"])


@pytest.mark.threat("RF-03")
@pytest.mark.threat("RF-04")
def test_a_lost_answer_is_given_again_and_there_is_one_chain(
    host: Host, clock: Clock, tokens: dict[str, Any]
) -> None:
    first = host.refresh(tokens["refresh_token"]).json()
    clock.advance(seconds=60)
    again = host.refresh(tokens["refresh_token"]).json()
    assert again["refresh_token"] == first["refresh_token"]
    assert again["access_token"] != first["access_token"]
    assert host.refresh(again["refresh_token"]).status_code == 200


@pytest.mark.threat("RF-04")
@pytest.mark.threat("RF-11")
@pytest.mark.threat("RF-12")
def test_another_process_gives_the_same_successor(
    host: Host, records: MemoryRecords, clock: Clock, tokens: dict[str, Any]
) -> None:
    first = host.refresh(tokens["refresh_token"]).json()
    other = make_server(records, clock)
    elsewhere = Host(other, make_http(other), host.client_id)
    assert elsewhere.refresh(tokens["refresh_token"]).json()["refresh_token"] == first["refresh_token"]
    clock.advance(seconds=61)
    assert error(elsewhere.refresh(tokens["refresh_token"])) == (400, "invalid_grant")
    assert error(host.refresh(first["refresh_token"])) == (400, "invalid_grant")


@pytest.mark.threat("RF-10")
def test_after_the_replay_window_it_is_reuse(host: Host, clock: Clock, tokens: dict[str, Any]) -> None:
    first = host.refresh(tokens["refresh_token"]).json()
    clock.advance(seconds=61)
    assert error(host.refresh(tokens["refresh_token"])) == (400, "invalid_grant")
    assert error(host.refresh(first["refresh_token"])) == (400, "invalid_grant")


@pytest.mark.threat("CL-01")
def test_a_spent_token_stays_spent_when_the_clock_is_set_back(
    host: Host, clock: Clock, tokens: dict[str, Any]
) -> None:
    host.refresh(tokens["refresh_token"])
    clock.advance(days=-1)
    assert error(host.refresh(tokens["refresh_token"])) == (400, "invalid_grant")


@pytest.mark.threat("RF-05")
def test_eight_simultaneous_refreshes_share_one_successor(host: Host, tokens: dict[str, Any]) -> None:
    for _ in range(3):
        presented = tokens["refresh_token"]
        with ThreadPoolExecutor(8) as pool:
            responses = list(pool.map(lambda _, token=presented: host.refresh(token), range(8)))
        assert {response.status_code for response in responses} == {200}
        assert len({response.json()["refresh_token"] for response in responses}) == 1
        tokens = responses[0].json()


@pytest.mark.threat("RF-06")
def test_another_client_cannot_use_the_token_and_does_no_harm(
    host: Host, other_host: Host, records: MemoryRecords, tokens: dict[str, Any]
) -> None:
    before = records.dump()
    assert error(other_host.refresh(tokens["refresh_token"])) == (400, "invalid_grant")
    assert error(host.refresh(tokens["refresh_token"], client_id=None)) == (401, "invalid_client")
    assert error(host.refresh(tokens["refresh_token"], client_id="nobody")) == (401, "invalid_client")
    assert records.dump() == before
    assert host.refresh(tokens["refresh_token"]).status_code == 200


def test_another_client_presenting_a_spent_token_ends_nothing(
    host: Host, other_host: Host, tokens: dict[str, Any]
) -> None:
    first = host.refresh(tokens["refresh_token"]).json()
    second = host.refresh(first["refresh_token"]).json()
    assert error(other_host.refresh(tokens["refresh_token"])) == (400, "invalid_grant")
    assert host.refresh(second["refresh_token"]).status_code == 200


@pytest.mark.threat("RF-08")
def test_kinds_of_token_do_not_mix(host: Host, server: AuthorizationServer, tokens: dict[str, Any]) -> None:
    assert error(host.refresh(tokens["access_token"])) == (400, "invalid_grant")
    assert error(host.refresh(host.code())) == (400, "invalid_grant")
    assert error(host.redeem(tokens["refresh_token"])) == (400, "invalid_grant")
    for bearer in (tokens["refresh_token"], host.code()):
        with pytest.raises(InvalidToken):
            access_tokens.verify(server, bearer)


@pytest.mark.threat("PP-02")
@pytest.mark.parametrize(
    "alter", [lambda t: t[:-1], lambda t: t + "x", lambda t: t.replace(".0.", ".00."), str.upper]
)
def test_a_forged_token_is_harmless(host: Host, tokens: dict[str, Any], alter: Any) -> None:
    assert error(host.refresh(alter(tokens["refresh_token"]))) == (400, "invalid_grant")
    assert host.refresh(tokens["refresh_token"]).status_code == 200


def test_another_epoch_is_refused(host: Host, server: AuthorizationServer, tokens: dict[str, Any]) -> None:
    other = tokens["refresh_token"].replace(server.keys.ring().epoch, "0" * 16)
    assert error(host.refresh(other)) == (400, "invalid_grant")


def test_a_forged_generation_is_refused(host: Host, tokens: dict[str, Any]) -> None:
    assert error(host.refresh(tokens["refresh_token"].replace(".0.", ".1."))) == (400, "invalid_grant")


@pytest.mark.threat("RF-06")
def test_a_code_that_was_never_redeemed_has_no_refresh_token(host: Host, server: AuthorizationServer) -> None:
    grant_id = derived_tokens.read_code(server, host.code())
    assert grant_id is not None
    early = derived_tokens.derive_refresh_token(server, grant_id, 0)
    assert error(host.refresh(early)) == (400, "invalid_grant")


def test_a_newer_generation_than_the_store_knows_is_accepted_after_a_restore(
    host: Host, records: MemoryRecords, tokens: dict[str, Any]
) -> None:
    backup = records.dump()
    for _ in range(3):
        tokens = host.refresh(tokens["refresh_token"]).json()
    records.restore(backup)
    newer = host.refresh(tokens["refresh_token"])
    assert newer.status_code == 200
    assert host.refresh(newer.json()["refresh_token"]).status_code == 200


@pytest.mark.threat("AU-03")
def test_a_foreign_resource_rotates_nothing(
    host: Host, records: MemoryRecords, tokens: dict[str, Any]
) -> None:
    before = records.dump()
    refused = host.refresh(tokens["refresh_token"], resource="https://other.example/mcp")
    assert error(refused) == (400, "invalid_target")
    assert records.dump() == before
    assert host.refresh(tokens["refresh_token"]).status_code == 200


def test_a_missing_refresh_token_is_an_invalid_request(host: Host) -> None:
    assert error(host.token(grant_type="refresh_token")) == (400, "invalid_request")


@pytest.mark.threat("RF-10")
def test_an_idle_token_expires_after_thirty_days_and_each_refresh_starts_them_anew(
    host: Host, clock: Clock, tokens: dict[str, Any]
) -> None:
    for _ in range(3):
        clock.advance(days=29)
        tokens = host.refresh(tokens["refresh_token"]).json()
    clock.advance(days=30)
    assert error(host.refresh(tokens["refresh_token"])) == (400, "invalid_grant")


@pytest.mark.threat("RF-10")
def test_a_grant_ends_a_year_after_the_consent(host: Host, clock: Clock, tokens: dict[str, Any]) -> None:
    for _ in range(12):
        clock.advance(days=29)
        tokens = host.refresh(tokens["refresh_token"]).json()
    clock.advance(days=17)
    assert error(host.refresh(tokens["refresh_token"])) == (400, "invalid_grant")


@pytest.mark.threat("RF-10")
def test_an_expired_token_is_not_given_its_successor_again(
    host: Host, clock: Clock, tokens: dict[str, Any]
) -> None:
    clock.advance(days=30, seconds=-10)
    first = host.refresh(tokens["refresh_token"]).json()
    clock.advance(seconds=20)
    assert error(host.refresh(tokens["refresh_token"])) == (400, "invalid_grant")
    assert host.refresh(first["refresh_token"]).status_code == 200


@pytest.mark.threat("RF-07")
def test_refresh_never_widens_and_narrowing_is_for_one_access_token(
    host: Host, records: MemoryRecords, tokens: dict[str, Any]
) -> None:
    before = records.dump()
    for scope in ("memory:delete", "memory:read admin:everything"):
        assert error(host.refresh(tokens["refresh_token"], scope=scope)) == (400, "invalid_scope")
    assert records.dump() == before
    narrower = host.refresh(tokens["refresh_token"], scope="memory:read offline_access").json()
    assert narrower["scope"] == "memory:read"
    assert host.refresh(narrower["refresh_token"]).json()["scope"] == "memory:read memory:write"


def test_what_the_owner_took_or_gave_is_in_the_next_answer(
    host: Host, server: AuthorizationServer, tokens: dict[str, Any]
) -> None:
    grant_id = access_tokens.verify(server, tokens["access_token"]).grant_id
    grants.narrow(server, grant_id, frozenset({"memory:read"}))
    tokens = host.refresh(tokens["refresh_token"], scope="memory:read memory:write").json()
    assert tokens["scope"] == "memory:read"
    assert error(host.refresh(tokens["refresh_token"], scope="memory:write")) == (400, "invalid_scope")
    grants.widen(server, grant_id, frozenset({"memory:export"}))
    assert host.refresh(tokens["refresh_token"]).json()["scope"] == "memory:read memory:export"


class Provider:
    """An identity provider that answers as it is told."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.error: Exception | None = None

    def renew(self, subject: str) -> None:
        self.asked.append(subject)
        if self.error is not None:
            raise self.error


@pytest.fixture
def provider(server: AuthorizationServer) -> Provider:
    provider = Provider()
    server.renew_identity = provider.renew
    return provider


def test_the_identity_is_renewed_before_rotating_and_never_for_a_replay(
    host: Host, tokens: dict[str, Any], provider: Provider
) -> None:
    host.refresh(tokens["refresh_token"])
    host.refresh(tokens["refresh_token"])
    assert provider.asked == ["owner-1"]


def test_a_provider_that_is_down_costs_nothing(
    host: Host, records: MemoryRecords, tokens: dict[str, Any], provider: Provider
) -> None:
    provider.error = TemporarilyUnavailable("the identity provider does not answer", 30)
    before = records.dump()
    response = host.refresh(tokens["refresh_token"])
    assert error(response) == (503, "temporarily_unavailable")
    assert response.headers["retry-after"] == "30"
    assert records.dump() == before
    provider.error = None
    assert host.refresh(tokens["refresh_token"]).status_code == 200


def test_somebody_who_may_no_longer_come_in_loses_the_session(
    host: Host, server: AuthorizationServer, tokens: dict[str, Any], provider: Provider
) -> None:
    provider.error = InvalidGrant("the account was disabled")
    assert error(host.refresh(tokens["refresh_token"])) == (400, "invalid_grant")
    assert not is_alive(server, tokens["access_token"])


class ContestedRecords(MemoryRecords):
    """Records where somebody else is always faster."""

    def swap(self, kind: str, key: str, old: Value, new: Value, expires_at: Any) -> bool:
        return False


@pytest.mark.threat("CR-06")
def test_a_step_that_never_wins_is_retried_later(clock: Clock) -> None:
    server = make_server(ContestedRecords(clock), clock)
    host = Host(server, make_http(server))
    host.register()
    assert error(host.redeem(host.code())) == (503, "temporarily_unavailable")


class InterruptedRecords(MemoryRecords):
    """Records where somebody ends the grant just before the first swap."""

    def swap(self, kind: str, key: str, old: Value, new: Value, expires_at: Any) -> bool:
        if kind == grants.KIND:
            self.delete(kind, key)
        return super().swap(kind, key, old, new, expires_at)


def test_a_grant_that_ends_under_a_refresh_is_gone(host: Host, clock: Clock, records: MemoryRecords) -> None:
    tokens = host.connect()
    interrupted = InterruptedRecords(clock)
    interrupted.restore(records.dump())
    server = make_server(interrupted, clock)
    elsewhere = Host(server, make_http(server), host.client_id)
    code = elsewhere.code()
    assert error(elsewhere.refresh(tokens["refresh_token"])) == (400, "invalid_grant")
    assert error(elsewhere.redeem(code)) == (400, "invalid_grant")


def test_lifetimes_that_were_shortened_count_for_old_grants_too(
    host: Host, records: MemoryRecords, clock: Clock, tokens: dict[str, Any]
) -> None:
    server = make_server(records, clock, lifetimes=Lifetimes(refresh_idle=timedelta(days=1)))
    clock.advance(days=2)
    elsewhere = Host(server, make_http(server), host.client_id)
    assert error(elsewhere.refresh(tokens["refresh_token"])) == (400, "invalid_grant")
