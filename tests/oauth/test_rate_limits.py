"""Floods end in 429, and honest hosts never see it."""

import tracemalloc

import pytest

from oauth import rate_limits
from oauth.errors import TooManyRequests
from oauth.rate_limits import RateLimit, network
from tests.oauth.stand import Clock, Host, error


@pytest.mark.threat("DC-13")
def test_a_registration_flood_ends_and_connected_clients_keep_working(host: Host, clock: Clock) -> None:
    tokens = host.connect()
    body = {"redirect_uris": ["https://client.example/cb"]}
    for number in range(199):
        forged = {"X-Forwarded-For": f"203.0.113.{number}"}
        assert host.http.post("/register", json=body, headers=forged).status_code == 201
    refused = host.http.post("/register", json=body, headers={"X-Forwarded-For": "198.51.100.1"})
    assert error(refused) == (429, "temporarily_unavailable")
    assert refused.headers["retry-after"] == "10"
    assert host.refresh(tokens["refresh_token"]).status_code == 200
    clock.advance(seconds=10)
    assert host.http.post("/register", json=body).status_code == 201


@pytest.mark.threat("DS-07")
def test_guessing_a_secret_ends_and_other_clients_keep_working(secret_host: Host, host: Host) -> None:
    code = secret_host.code()
    for _ in range(30):
        assert error(secret_host.redeem(code, client_secret="guess")) == (401, "invalid_client")
    assert error(secret_host.redeem(code)) == (429, "temporarily_unavailable")
    assert error(secret_host.revoke("x")) == (429, "temporarily_unavailable")
    assert host.redeem(host.code()).status_code == 200


def test_a_stranger_with_a_public_clients_id_does_not_slow_it_down(host: Host) -> None:
    code = host.code()
    for _ in range(31):
        host.redeem(code, client_secret="guess")
    assert error(host.redeem(code, client_secret="guess")) == (429, "temporarily_unavailable")
    assert host.redeem(code).status_code == 200
    for _ in range(31):
        assert error(host.redeem(code, client_id="nobody")) == (401, "invalid_client")


def test_what_was_spent_comes_back_with_time_but_not_more(clock: Clock) -> None:
    limit = RateLimit(2, 0.5, clock.monotonic)
    limit.spend("a")
    limit.spend("a")
    with pytest.raises(TooManyRequests) as refused:
        limit.check("a")
    assert refused.value.retry_after_seconds == 2
    limit.spend("b")
    clock.advance(seconds=2)
    limit.check("a")
    limit.spend("a")
    clock.advance(days=1)
    limit.spend("a")
    limit.spend("a")
    with pytest.raises(TooManyRequests):
        limit.spend("a")


@pytest.mark.threat("DS-07")
def test_requests_without_end_are_refused_to_that_client_in_that_network_only(
    host: Host, clock: Clock
) -> None:
    tokens = host.connect()
    guess = {"grant_type": "refresh_token", "refresh_token": "x"}
    for _ in range(600):
        assert host.token(**guess, client_id="flood").status_code == 401
    refused = host.token(**guess, client_id="flood")
    assert error(refused) == (429, "temporarily_unavailable")
    assert refused.headers["retry-after"] == "1"
    assert host.refresh(tokens["refresh_token"]).status_code == 200
    clock.advance(seconds=1)
    assert host.token(**guess, client_id="flood").status_code == 401


def test_fifty_users_of_one_client_behind_one_address_refresh_by_the_hour(host: Host, clock: Clock) -> None:
    refresh_tokens = [host.connect()["refresh_token"] for _ in range(50)]
    for _ in range(5):
        clock.advance(hours=1)
        answers = [host.refresh(token) for token in refresh_tokens]
        assert {answer.status_code for answer in answers} == {200}
        refresh_tokens = [answer.json()["refresh_token"] for answer in answers]


def test_what_is_remembered_is_bounded(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rate_limits, "MAX_KEYS", 2)
    limit = RateLimit(1, 0.001, clock.monotonic)
    for key in ("a", "b", "c"):
        limit.spend(key)
    limit.spend("a")
    with pytest.raises(TooManyRequests):
        limit.spend("c")


def test_a_long_key_is_not_what_is_remembered(clock: Clock) -> None:
    limit = RateLimit(1, 0.001, clock.monotonic)
    tracemalloc.start()
    try:
        for number in range(100):
            limit.spend(f"{number}" + "x" * 64_000)
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < 100_000


@pytest.mark.parametrize(
    ("address", "counted"),
    [
        ("203.0.113.7", "203.0.113.7"),
        ("2001:db8:1:2:3::4", "2001:db8:1:2::/64"),
        ("testclient", "testclient"),
    ],
)
def test_an_ipv6_address_counts_to_its_network(address: str, counted: str) -> None:
    assert network(address) == counted
