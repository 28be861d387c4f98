"""What was written ahead of a commit that never came: noted before, and removed a day later.

A note is deleted by the very commit that puts to use what was written ahead. So one that is still there
after a day names what a crash has left, or an attempt that had to be repeated.
"""

import secrets
from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Any

from google.api_core import exceptions
from google.cloud.firestore import Client
from google.cloud.firestore_v1.base_document import DocumentSnapshot

from store.firestore.calls import CALL_SECONDS
from store.firestore.database import Ask, FirestoreDatabase, Reference

COLLECTION = "ahead"
PATHS = 2_000
"""In one note, far below the size of a document."""
WAITING = timedelta(days=1)
SAME_ATTEMPT = timedelta(hours=1)
"""What was written later than this after its note, another attempt has written, which has its own note."""
AT_ONCE = 100


def note(database: FirestoreDatabase, references: Sequence[Reference]) -> list[Reference]:
    """Notes, before they are written, what will be; the commit shall delete the notes."""
    notes = []
    for start in range(0, len(references), PATHS):
        reference = database.document(COLLECTION, secrets.token_urlsafe(16))
        paths = [each.path for each in references[start : start + PATHS]]
        reference.set({"at": database.now(), "paths": paths}, retry=None, timeout=CALL_SECONDS)
        notes.append(reference)
    return notes


def sweep(database: FirestoreDatabase) -> int:
    """Deletes the passages that nothing came to use; returns how many."""
    old = Ask(COLLECTION, (("at", "<=", database.now() - WAITING),), ("at", "ASCENDING"), limit=AT_ONCE)
    swept = 0
    while found := database.ask(old):
        for each in found:
            swept += sum(_delete(database, orphan) for orphan in _orphans(database, each))
            each.reference.delete(retry=None, timeout=CALL_SECONDS)
    return swept


def _orphans(database: FirestoreDatabase, note: DocumentSnapshot[Any]) -> Iterator[DocumentSnapshot[Any]]:
    paths = note.get("paths")
    for start in range(0, len(paths), AT_ONCE):
        there = database.get_all(database.client.document(path) for path in paths[start : start + AT_ONCE])
        of_attempt = [each for each in there if each.update_time - note.update_time < SAME_ATTEMPT]
        memories = {each.reference.path: _memory(database, each) for each in of_attempt}
        used = {each.reference.path: each for each in database.get_all({*memories.values()})}
        for each in of_attempt:
            memory = used.get(memories[each.reference.path].path)
            if memory is None or not _uses(memory, each):
                yield each


def _memory(database: FirestoreDatabase, passage: DocumentSnapshot[Any]) -> Reference:
    owner = passage.reference.parent.parent
    reference: Reference = owner.collection("memories").document(passage.get("memory"))
    return reference


def _uses(memory: DocumentSnapshot[Any], passage: DocumentSnapshot[Any]) -> bool:
    return bool(
        memory.get("index") == passage.get("index") and passage.get("ordinal") < memory.get("passages")
    )


def _delete(database: FirestoreDatabase, passage: DocumentSnapshot[Any]) -> bool:
    """Unless it has been written anew since it was looked at."""
    as_read = Client.write_option(last_update_time=passage.update_time)
    try:
        passage.reference.delete(as_read, retry=None, timeout=CALL_SECONDS)
    except (exceptions.FailedPrecondition, exceptions.NotFound):
        return False
    return True
