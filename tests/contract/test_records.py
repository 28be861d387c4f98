"""Records: what `oauth` needs, on every backend."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

from oauth.records import NEVER, Records
from tests.contract.conftest import Backend
from tests.store.fakes import Clock

LATER = datetime(2026, 1, 1, 13, tzinfo=UTC)


def test_a_created_record_is_read_back(records: Records) -> None:
    value = {"text": "ü 🚀", "number": 7, "list": ["a", {"b": None}], "flag": True}
    assert records.create("grant", "k", value, NEVER)
    assert records.get("grant", "k") == value


def test_kind_and_key_together_name_a_record(records: Records) -> None:
    records.create("grant", "k", {"n": 1}, LATER)
    assert records.get("client", "k") is None
    assert records.get("grant", "other") is None


def test_a_taken_key_is_not_created_again(records: Records) -> None:
    records.create("grant", "k", {"n": 1}, LATER)
    assert not records.create("grant", "k", {"n": 2}, LATER)
    assert records.get("grant", "k") == {"n": 1}


def test_an_expired_record_is_absent_for_every_verb(records: Records, clock: Clock) -> None:
    value = {"subject": "s"}
    records.create("grant", "k", value, LATER)
    clock.advance(timedelta(hours=1))
    assert records.get("grant", "k") is None
    assert records.select("grant", "subject", "s") == []
    assert not records.swap("grant", "k", value, {"subject": "t"}, NEVER)
    assert records.take("grant", "k") is None
    assert records.create("grant", "k", {"subject": "new"}, NEVER)
    assert records.get("grant", "k") == {"subject": "new"}


def test_take_hands_a_record_to_exactly_one_of_many_racing_callers(backend: Backend) -> None:
    doors = [backend, backend.again()]
    backend.records.create("pending", "k", {"client_id": "c1"}, LATER)
    with ThreadPoolExecutor(20) as pool:
        taken = list(pool.map(lambda n: doors[n % 2].records.take("pending", "k"), range(20)))
    assert [value for value in taken if value] == [{"client_id": "c1"}]


def test_create_lets_exactly_one_of_many_racing_callers_in(backend: Backend) -> None:
    doors = [backend, backend.again()]
    with ThreadPoolExecutor(20) as pool:
        made = list(pool.map(lambda n: doors[n % 2].records.create("k", "k", {"n": n}, LATER), range(20)))
    assert made.count(True) == 1
    assert backend.records.get("k", "k") == {"n": made.index(True)}


def test_swap_compares_the_value_and_not_the_order_of_its_members(records: Records) -> None:
    records.create("grant", "k", {"a": 1, "b": "x"}, LATER)
    assert not records.swap("grant", "k", {"a": 2, "b": "x"}, {"a": 3}, LATER)
    assert records.swap("grant", "k", {"b": "x", "a": 1}, {"a": 3}, LATER)
    assert records.get("grant", "k") == {"a": 3}


def test_swap_never_creates(records: Records) -> None:
    assert not records.swap("grant", "k", {}, {"a": 1}, LATER)
    assert records.get("grant", "k") is None


def test_swap_moves_the_expiry(records: Records, clock: Clock) -> None:
    records.create("grant", "k", {"a": 1}, LATER)
    records.swap("grant", "k", {"a": 1}, {"a": 2}, NEVER)
    clock.advance(timedelta(days=400))
    assert records.get("grant", "k") == {"a": 2}


def test_swap_lets_exactly_one_of_many_racing_callers_win(backend: Backend) -> None:
    doors = [backend, backend.again()]
    backend.records.create("grant", "k", {"n": -1}, LATER)
    with ThreadPoolExecutor(20) as pool:
        won = list(
            pool.map(lambda n: doors[n % 2].records.swap("grant", "k", {"n": -1}, {"n": n}, LATER), range(20))
        )
    assert won.count(True) == 1
    assert backend.records.get("grant", "k") == {"n": won.index(True)}


def test_select_finds_the_values_whose_field_equals(records: Records) -> None:
    records.create("grant", "1", {"subject": "s", "n": 1}, LATER)
    records.create("grant", "2", {"subject": "s", "n": 2}, LATER)
    records.create("grant", "3", {"subject": "t", "n": 3}, LATER)
    records.create("session", "4", {"subject": "s", "n": 4}, LATER)
    records.swap("grant", "2", {"subject": "s", "n": 2}, {"subject": "t", "n": 5}, LATER)
    assert records.select("grant", "subject", "s") == [{"subject": "s", "n": 1}]
    assert sorted(value["n"] for value in records.select("grant", "subject", "t")) == [3, 5]
    assert records.select("grant", "subject", "' OR 1=1 --") == []


def test_a_deleted_record_is_gone_and_may_be_deleted_again(records: Records) -> None:
    records.create("grant", "k", {"subject": "s"}, LATER)
    records.delete("grant", "k")
    records.delete("grant", "k")
    assert records.get("grant", "k") is None
    assert records.select("grant", "subject", "s") == []
