"""kill -9 inside a transaction: a memory is saved, merged and a document replaced whole, or not at all."""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from connector.app import utc_now
from store import documents
from store.engine import Engine
from store.memory import Draft, Memory, Selection, View
from store.sqlite.database import Database
from store.sqlite.memories import SQLiteMemories
from store.sqlite.owners import SQLiteOwners
from tests.crash import dying_engine
from tests.crash.conftest import ROOT

DEATHS = 8
"""How many statements of a transaction are tried, spread over all of it; the last one is its commit."""


@contextmanager
def opened(path: Path) -> Iterator[tuple[Engine, str, View]]:
    with closing(Database(path, utc_now)) as database:
        assert database.read.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        engine = Engine(SQLiteMemories(database), None, utc_now)
        owner = SQLiteOwners(database).create("test", "issuer", "subject", "a").id
        yield engine, owner, View(owner, (engine.spaces(owner)[0].id,))


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with two drafts and a document."""
    path = tmp_path_factory.mktemp("prepared") / "vademecum.db"
    with opened(path) as (engine, owner, view):
        for content in ("half a thought", "the other half"):
            engine.save(owner, view.spaces[0], dying_engine.APP, Draft(content, state="wip"))
        dying_engine.ingest(engine, owner, view.spaces[0], dying_engine.OLD)
    return path


def attempt(prepared: Path, path: Path, change: str, fatal: int) -> int | None:
    """How many statements the change took; None when it died as it was meant to."""
    shutil.copy(prepared, path)
    for side in ("-wal", "-shm"):
        path.with_name(path.name + side).unlink(missing_ok=True)
    with opened(path) as (_, owner, _view):
        pass
    command = (sys.executable, "-m", "tests.crash.dying_engine", str(path), owner, change, str(fatal))
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)
    if done.returncode == -9:
        return None
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


def contents(engine: Engine, view: View) -> list[str]:
    shown = engine.memories.select(view, Selection(states=None, limit=100))
    return sorted(f"{memory.state}: {memory.content}" for memory in shown)


def is_whole(engine: Engine, view: View) -> bool:
    """Every live memory is found by its words, and by nothing that is gone."""
    memories: list[Memory] = engine.memories.select(view, Selection(limit=100))
    return all(
        memory.id in {hit.memory.id for hit in engine.search(view.owner, view.spaces[0], memory.content)}
        for memory in memories
    )


@pytest.mark.parametrize("change", ["save", "consolidate", "replace"])
def test_it_is_done_whole_or_not_at_all(prepared: Path, tmp_path: Path, change: str) -> None:
    path = tmp_path / "vademecum.db"
    total = attempt(prepared, path, change, 0)
    assert total is not None and total > DEATHS
    with opened(path) as (engine, owner, view):
        after = contents(engine, view)
        assert is_whole(engine, view)
    with opened(prepared) as (engine, owner, view):
        before = contents(engine, view)
    assert before != after
    for fatal in sorted({1 + total * number // DEATHS for number in range(DEATHS)} | {total}):
        assert attempt(prepared, path, change, fatal) is None, fatal
        with opened(path) as (engine, owner, view):
            assert contents(engine, view) == before, fatal
            assert is_whole(engine, view), fatal
            dying_engine.change(engine, owner, change)
            assert contents(engine, view) == after, fatal
            if change == "replace":
                document = engine.memories.find_document(owner, view.spaces[0], "app", "id:garden.md")
                assert document is not None
                found, chunks = documents.get(engine, view, document.id)
                assert documents.text(found, chunks) == dying_engine.NEW
