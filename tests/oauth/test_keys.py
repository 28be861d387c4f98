"""The key ring: made once, encrypted, rotated without anybody noticing."""

from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from threading import Event, get_ident
from typing import Any

import pytest
from starlette.testclient import TestClient

from oauth import access_tokens, keys
from oauth.errors import InvalidToken
from oauth.keys import KIND, Keys, UnreadableKeys
from oauth.records import Value
from oauth.server import AuthorizationServer
from tests.oauth.stand import STATE_KEY, Clock, Host, MemoryRecords

HOUR = timedelta(hours=1)


def make_keys(records: MemoryRecords, clock: Clock, state_key: bytes = STATE_KEY) -> Keys:
    return Keys(records, state_key, HOUR, clock)


def test_many_processes_starting_at_once_agree_on_one_key(records: MemoryRecords, clock: Clock) -> None:
    with ThreadPoolExecutor(8) as pool:
        kids = set(pool.map(lambda _: make_keys(records, clock).signing_key().kid, range(8)))
    assert len(kids) == 1


def test_threads_share_one_load(records: MemoryRecords, clock: Clock) -> None:
    shared = make_keys(records, clock)
    with ThreadPoolExecutor(8) as pool:
        rings = list(pool.map(lambda _: shared.ring(), range(8)))
    assert len({ring.epoch for ring in rings}) == 1


def test_who_waited_for_a_load_uses_it(records: MemoryRecords, clock: Clock) -> None:
    waiting = Event()

    class BusyRecords(MemoryRecords):
        loads = 0

        def get(self, kind: str, key: str) -> Value | None:
            self.loads += 1
            waiting.wait(5)
            return super().get(kind, key)

    busy = BusyRecords(clock)
    asked: list[int] = []

    def now() -> datetime:
        asked.append(get_ident())
        if len(set(asked)) == 2:
            waiting.set()
        return clock()

    waiting.set()
    shared = Keys(busy, STATE_KEY, HOUR, now)
    shared.ring()
    clock.advance(seconds=30)
    waiting.clear()
    asked.clear()
    busy.loads = 0
    with ThreadPoolExecutor(2) as pool:
        first, second = (pool.submit(shared.ring) for _ in range(2))
    assert first.result() is second.result()
    assert busy.loads == 1


@pytest.mark.threat("ST-02")
def test_another_state_key_reads_nothing(records: MemoryRecords, clock: Clock) -> None:
    make_keys(records, clock).signing_key()
    with pytest.raises(UnreadableKeys):
        make_keys(records, clock, b"y" * 32).signing_key()


@pytest.mark.threat("ST-02")
def test_the_private_key_is_not_in_the_store(records: MemoryRecords, clock: Clock) -> None:
    key = make_keys(records, clock).signing_key().key
    private = key.as_dict(private=True)["d"]
    assert str(private) not in repr(records.dump())
    assert "PRIVATE" not in repr(records.dump())


def test_a_swapped_key_id_is_noticed(records: MemoryRecords, clock: Clock) -> None:
    make_keys(records, clock).signing_key()
    ring = records.get(KIND, "ring")
    assert ring is not None
    altered = {**ring, "keys": [ring["keys"][0] | {"kid": "other"}]}
    records.swap(KIND, "ring", ring, altered, clock() + timedelta(days=999))
    with pytest.raises(UnreadableKeys):
        make_keys(records, clock).signing_key()


@pytest.mark.threat("JW-06")
def test_published_keys_are_public(http: TestClient, server: AuthorizationServer) -> None:
    (jwk,) = http.get("/jwks.json").json()["keys"]
    assert jwk.keys() == {"kty", "crv", "x", "y", "kid", "use", "alg"}
    assert (jwk["kty"], jwk["crv"], jwk["alg"], jwk["use"]) == ("EC", "P-256", "ES256", "sig")
    assert jwk["kid"] == server.keys.signing_key().key.thumbprint()


def test_a_new_key_is_published_first_and_signs_after_a_minute(records: MemoryRecords, clock: Clock) -> None:
    ours = make_keys(records, clock)
    old = ours.signing_key().kid
    new = ours.rotate()
    assert {key["kid"] for key in ours.public_jwks()["keys"]} == {old, new}
    clock.advance(seconds=59)
    assert ours.signing_key().kid == old
    clock.advance(seconds=1)
    assert ours.signing_key().kid == new


@pytest.mark.threat("JW-08")
def test_an_old_key_verifies_as_long_as_its_tokens_live(
    host: Host, server: AuthorizationServer, clock: Clock
) -> None:
    keys.rotate(server)
    old = server.keys.signing_key().kid
    clock.advance(seconds=59)
    token = host.connect()["access_token"]
    clock.advance(minutes=59)
    assert access_tokens.verify(server, token)
    clock.advance(minutes=5)
    with pytest.raises(InvalidToken):
        access_tokens.verify(server, token)
    assert server.keys.find(old) is None
    assert old not in str(server.keys.public_jwks())


def test_rotating_again_drops_keys_that_have_retired(records: MemoryRecords, clock: Clock) -> None:
    ours = make_keys(records, clock)
    for _ in range(4):
        ours.rotate()
        clock.advance(hours=2)
    ring = records.get(KIND, "ring")
    assert ring is not None
    assert len(ring["keys"]) == 2


@pytest.mark.threat("JW-08")
def test_a_flood_of_unknown_key_ids_reads_the_store_once_in_five_seconds(clock: Clock) -> None:
    class CountingRecords(MemoryRecords):
        reads = 0

        def get(self, kind: str, key: str) -> Value | None:
            CountingRecords.reads += 1
            return super().get(kind, key)

    ours = make_keys(CountingRecords(clock), clock)
    ours.ring()
    CountingRecords.reads = 0
    for second in range(20):
        for number in range(50):
            assert ours.find(f"{second}-{number}") is None
        clock.advance(seconds=1)
    assert CountingRecords.reads <= 4


def test_instances_reload_every_thirty_seconds(records: MemoryRecords, clock: Clock) -> None:
    ours, theirs = make_keys(records, clock), make_keys(records, clock)
    ours.ring()
    theirs.ring()
    new = ours.rotate()
    clock.advance(seconds=29)
    assert new not in str(theirs.public_jwks())
    clock.advance(seconds=1)
    assert new in str(theirs.public_jwks())


def test_two_rotations_at_once_both_count(records: MemoryRecords, clock: Clock) -> None:
    with ThreadPoolExecutor(4) as pool:
        rotated = list(pool.map(lambda _: make_keys(records, clock).rotate(), range(4)))
    kids = {key["kid"] for key in make_keys(records, clock).public_jwks()["keys"]}
    assert kids > set(rotated)


def test_the_emergency_survives_a_rotation_at_the_same_time(records: MemoryRecords, clock: Clock) -> None:
    ours = make_keys(records, clock)
    epoch = ours.ring().epoch
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda n: ours.rotate() if n % 2 else ours.replace(), range(4)))
    assert make_keys(records, clock).ring().epoch != epoch


def test_a_clock_that_was_set_back_still_signs(records: MemoryRecords, clock: Clock) -> None:
    ours = make_keys(records, clock)
    kid = ours.signing_key().kid
    clock.advance(days=-1)
    assert ours.signing_key().kid == kid


def test_a_store_that_loses_the_ring_is_an_error(clock: Clock) -> None:
    class ForgetfulRecords(MemoryRecords):
        def get(self, kind: str, key: str) -> Value | None:
            return None

    with pytest.raises(UnreadableKeys):
        make_keys(ForgetfulRecords(clock), clock).ring()


def test_subkeys_differ_by_purpose_and_salt() -> None:
    derived: list[Any] = [
        keys.derive(STATE_KEY, "a"),
        keys.derive(STATE_KEY, "b"),
        keys.derive(STATE_KEY, "a", b"salt"),
        keys.derive(b"z" * 32, "a"),
    ]
    assert len(set(derived)) == 4
