"""Two processes on one database: one winner, one chain, and what ends in one ends in the other."""

import base64
import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import httpx2
import pytest

from tests.crash.conftest import (
    Client,
    assert_invalid_grant,
    client_of,
    count,
    mortal_server,
    serving,
    turn_clock,
)
from tests.processes import Server

LIVENESS_SECONDS = 5
AT_ONCE = 8


@pytest.fixture
def pair(state_dir: Path) -> Iterator[tuple[Server, Server]]:
    """Two processes under the first one's name."""
    first = mortal_server(state_dir)
    second = mortal_server(state_dir, VADEMECUM_PUBLIC_URL=first.url)
    with serving(first, second):
        yield first, second


@pytest.fixture
def client(pair: tuple[Server, Server]) -> Iterator[Client]:
    with client_of(pair[0]) as client:
        yield client


def spread(pair: tuple[Server, Server], ask: Callable[[Server], httpx2.Response]) -> list[httpx2.Response]:
    """The same request many times at once, half of them to each process."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(lambda number: ask(pair[number % 2]), range(AT_ONCE)))


@pytest.mark.threat("CR-03")
@pytest.mark.threat("CR-06")
def test_simultaneous_redemptions_have_one_winner_at_most(
    client: Client, pair: tuple[Server, Server]
) -> None:
    for _ in range(3):
        code = client.code()
        answers = spread(pair, partial(client.redeem, code))
        won = [answer.json() for answer in answers if answer.status_code == 200]
        assert len(won) <= 1
        for answer in answers:
            if answer.status_code != 200:
                assert_invalid_grant(answer)
        # The others were replays of a spent code, so that even the winner holds nothing any more.
        turn_clock(pair[0].state_dir, seconds=LIVENESS_SECONDS)
        for tokens, server in ((tokens, server) for tokens in won for server in pair):
            assert not client.is_alive(tokens["access_token"], server)
            assert_invalid_grant(client.refresh(tokens["refresh_token"], server))
        assert count(pair[0].state_dir, "grant") == 0


@pytest.mark.threat("RF-04")
@pytest.mark.threat("RF-05")
@pytest.mark.threat("CR-06")
def test_simultaneous_refreshes_share_one_successor(client: Client, pair: tuple[Server, Server]) -> None:
    held = client.connect()["refresh_token"]
    for _ in range(3):
        answers = spread(pair, partial(client.refresh, held))
        assert {answer.status_code for answer in answers} == {200}
        assert len({answer.json()["refresh_token"] for answer in answers}) == 1
        assert all(
            client.is_alive(answer.json()["access_token"], pair[n % 2]) for n, answer in enumerate(answers)
        )
        held = answers[0].json()["refresh_token"]
    # One process twice within a second, and the other once more: a host that lost two answers.
    again = [client.refresh(held, server).json()["refresh_token"] for server in (pair[0], pair[0], pair[1])]
    assert len(set(again)) == 1
    # From the first use of the successor on, its predecessor is reuse wherever it is shown.
    assert client.refresh(again[0], pair[1]).status_code == 200
    assert_invalid_grant(client.refresh(held, pair[0]))
    assert count(pair[0].state_dir, "grant") == 0


@pytest.mark.threat("RV-06")
def test_what_ends_in_one_process_ends_in_the_other_within_five_seconds(
    client: Client, pair: tuple[Server, Server]
) -> None:
    first, second = pair
    logins = {name: client.connect() for name in ("refresh token", "access token", "disconnected", "kept")}
    personal = first.run("tokens", "add", "--scope", "memory:read", "--json")
    access_tokens = {name: tokens["access_token"] for name, tokens in logins.items()}
    access_tokens["personal"] = json.loads(personal)["token"]
    for server in pair:
        assert all(client.is_alive(token, server) for token in access_tokens.values())

    client.revoke(logins["refresh token"]["refresh_token"], first)
    client.revoke(logins["access token"]["access_token"], first)
    assert not client.is_alive(access_tokens["refresh token"], first)
    assert not client.is_alive(access_tokens["access token"], first)
    # The owner's commands are a third process: neither of the two hears of it otherwise.
    (disconnected,) = (
        grant["id"]
        for grant in json.loads(first.run("clients", "list", "--json"))
        if grant["id"] in logins["disconnected"]["refresh_token"]
    )
    first.run("clients", "revoke", disconnected)
    first.run("tokens", "revoke", json.loads(personal)["id"])

    turn_clock(first.state_dir, seconds=LIVENESS_SECONDS)
    for server in pair:
        alive = {name for name, token in access_tokens.items() if client.is_alive(token, server)}
        assert alive == {"kept"}
    assert_invalid_grant(client.refresh(logins["refresh token"]["refresh_token"], second))
    assert_invalid_grant(client.refresh(logins["disconnected"]["refresh_token"], second))
    # One access token is no login: its refresh token brings the next.
    renewed = client.refresh(logins["access token"]["refresh_token"], second).json()
    assert client.is_alive(renewed["access_token"], first)


def key_ids(client: Client, server: Server) -> set[str]:
    return {key["kid"] for key in client.get("/jwks.json", server).json()["keys"]}


def key_id(access_token: str) -> str:
    header = json.loads(base64.urlsafe_b64decode(access_token.partition(".")[0] + "=="))
    return str(header["kid"])


@pytest.mark.threat("KR-01")
@pytest.mark.threat("JW-08")
def test_a_new_signing_key_signs_nobody_out(client: Client, pair: tuple[Server, Server]) -> None:
    first, second = pair
    old = client.connect()
    (old_key,) = key_ids(client, first)
    new_key = json.loads(first.run("keys", "rotate", "--json"))["kid"]

    turn_clock(first.state_dir, seconds=31)
    # Published everywhere before it signs anywhere.
    assert key_ids(client, first) == key_ids(client, second) == {old_key, new_key}
    between = client.refresh(old["refresh_token"], second).json()
    assert key_id(between["access_token"]) == old_key

    turn_clock(first.state_dir, seconds=95)
    after = client.refresh(between["refresh_token"], first).json()
    assert key_id(after["access_token"]) == new_key
    for server in pair:
        for tokens in (old, between, after):
            assert client.is_alive(tokens["access_token"], server)

    # The last token of the old key has expired, and the key with it; the login goes on.
    turn_clock(first.state_dir, seconds=95 + 3600 + 60)
    for server in pair:
        assert key_ids(client, server) == {new_key}
        assert not any(client.is_alive(tokens["access_token"], server) for tokens in (old, between, after))
    last = client.refresh(after["refresh_token"], second).json()
    assert client.is_alive(last["access_token"], first)


@pytest.mark.threat("KR-01")
def test_an_emergency_ends_everything_everywhere_and_a_new_consent_works(
    client: Client, pair: tuple[Server, Server]
) -> None:
    first, second = pair
    tokens, unspent = client.connect(), client.code()
    personal = first.run("tokens", "add", "--scope", "memory:read").strip()
    (old_key,) = key_ids(client, first)
    for server in pair:
        assert client.is_alive(tokens["access_token"], server) and client.is_alive(personal, server)
    first.run("keys", "rotate", "--emergency")

    turn_clock(first.state_dir, seconds=LIVENESS_SECONDS)
    for server in pair:
        assert not client.is_alive(tokens["access_token"], server)
        assert not client.is_alive(personal, server)
        assert_invalid_grant(client.refresh(tokens["refresh_token"], server))
        assert_invalid_grant(client.redeem(unspent, server))
    # The one that consents may still hold the old ring; what it issues is good, or the next try is.
    turn_clock(first.state_dir, seconds=31)
    renewed = client.connect()
    for server in pair:
        assert old_key not in key_ids(client, server)
        assert client.is_alive(renewed["access_token"], server)
