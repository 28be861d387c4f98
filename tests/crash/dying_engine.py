"""One change of memories, in a process that dies before the given statement of its transaction.

Arguments: the database, the change, and the statement's number; 0 lets it live. Prints how many there were.
"""

import os
import signal
import sys
from pathlib import Path

from connector.app import utc_now
from store import consolidation, documents
from store.documents import DocumentDraft
from store.engine import Engine
from store.memory import Draft, Selection, Source, View
from store.sqlite.database import Database
from store.sqlite.memories import SQLiteMemories

APP = "app"
OLD, NEW = (f"# Garden\n\n## One\n\n{word} one\n\n## Two\n\n{word} two\n" for word in ("old", "new"))


def ingest(engine: Engine, owner: str, space: str, content: str) -> None:
    draft = DocumentDraft("Garden", content, Source(external_id="garden.md"))
    documents.ingest(engine, owner, space, APP, draft)


def change(engine: Engine, owner: str, name: str) -> None:
    space = engine.spaces(owner)[0].id
    view = View(owner, (space,))
    match name:
        case "save":
            engine.save(owner, space, APP, Draft("a memory of Aunt Berta", tags=("family",)))
        case "consolidate":
            sources = engine.memories.select(view, Selection(states=("wip",)))
            consolidation.consolidate(engine, view, sources, APP, "test", "the whole thought")
        case "replace":
            ingest(engine, owner, space, NEW)


def main(path: Path, owner: str, name: str, fatal: int) -> None:
    database = Database(path, utc_now)
    count = 0

    def executed(statement: str) -> None:
        nonlocal count
        count += 1
        if count == fatal:
            os.kill(os.getpid(), signal.SIGKILL)

    engine = Engine(SQLiteMemories(database), None, utc_now)
    with database.write() as connection:
        pass
    connection.set_trace_callback(executed)
    change(engine, owner, name)
    print(count)  # noqa: T201 - read by the test


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3], int(sys.argv[4]))
