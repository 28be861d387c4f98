"""The one file: what cannot be used is said, a lock is waited for, and nothing is half written."""

import sqlite3
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from store.errors import StoreError
from store.sqlite import database as database_module
from store.sqlite.database import Database
from store.sqlite.schema import MIGRATIONS
from tests.store.fakes import Clock


@pytest.fixture
def database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Database]:
    monkeypatch.setattr(database_module, "BUSY_MS", 200)
    opened = Database(tmp_path / "vademecum.db", Clock())
    yield opened
    opened.close()


def refused(path: Path) -> StoreError:
    with pytest.raises(StoreError) as caught:
        Database(path, Clock())
    assert caught.value.code == "unavailable"
    assert str(path) in caught.value.message
    return caught.value


def test_the_file_is_for_its_owner_s_eyes_only(database: Database) -> None:
    assert database.path.stat().st_mode & 0o077 == 0


def test_a_file_that_is_no_database_is_refused_and_left_alone(tmp_path: Path) -> None:
    garbage = tmp_path / "garbage.db"
    garbage.write_bytes(b"this is no database at all" * 100)
    refused(garbage)
    assert garbage.read_bytes() == b"this is no database at all" * 100


def test_a_directory_in_its_place_is_refused(tmp_path: Path) -> None:
    refused(tmp_path)


def test_another_program_s_database_is_refused(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "other.db")) as other:
        other.execute("CREATE TABLE memories (x)")
    refused(tmp_path / "other.db")


def test_a_newer_program_s_database_is_refused(database: Database) -> None:
    with database.write() as connection:
        connection.execute("PRAGMA user_version=999")
    refused(database.path)


def test_a_write_that_waits_in_vain_changes_nothing_and_says_so(database: Database) -> None:
    with closing(sqlite3.connect(database.path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreError) as caught, database.write():
            pass
        assert caught.value.code == "unavailable"
        other.execute("ROLLBACK")
    with database.write() as connection:
        connection.execute("INSERT INTO rejections (at, value) VALUES (1, '{}')")


def test_a_reader_does_not_wait_for_a_waiting_writer(database: Database) -> None:
    with closing(sqlite3.connect(database.path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with database._lock:
            read: list[object] = []
            reader = threading.Thread(
                target=lambda: read.append(database.read.execute("SELECT count(*) FROM owners").fetchone())
            )
            reader.start()
            reader.join(timeout=20)
            assert read == [(0,)]


def test_what_fails_half_way_leaves_nothing(database: Database) -> None:
    with pytest.raises(RuntimeError), database.write() as connection:
        connection.execute("INSERT INTO rejections (at, value) VALUES (1, '{}')")
        raise RuntimeError
    assert database.read.execute("SELECT count(*) FROM rejections").fetchone() == (0,)


def test_a_migration_keeps_a_copy_of_what_was_there(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    with database.write() as connection:
        connection.execute("INSERT INTO rejections (at, value) VALUES (7, '{}')")
    steps = (*MIGRATIONS, ("CREATE TABLE later (x)",))
    monkeypatch.setattr("store.sqlite.database.MIGRATIONS", steps)
    migrated = Database(database.path, Clock())
    assert migrated.read.execute("SELECT at FROM rejections").fetchone() == (7,)
    assert migrated.read.execute("SELECT count(*) FROM later").fetchone() == (0,)
    migrated.close()
    (copy,) = database.path.parent.glob("*.before-2.db")
    with closing(sqlite3.connect(copy)) as before:
        assert before.execute("SELECT at FROM rejections").fetchone() == (7,)


def test_readers_of_threads_that_have_ended_are_closed(database: Database) -> None:
    def open_files() -> int:
        return len(list(Path("/proc/self/fd").iterdir()))

    def read_in_a_thread() -> None:
        with ThreadPoolExecutor(1) as pool:
            pool.submit(lambda: database.read.execute("SELECT 1").fetchone()).result()

    read_in_a_thread()
    before = open_files()
    for _ in range(20):
        read_in_a_thread()
    assert open_files() <= before + 4
