"""A unit of work: what was read, what shall be written, and one commit that holds only if nothing moved."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from google.cloud import firestore
from google.cloud.firestore_v1.base_document import DocumentSnapshot
from google.cloud.firestore_v1.batch import WriteBatch
from google.cloud.firestore_v1.vector import Vector as StoredVector

from store.firestore import ahead
from store.firestore.calls import CALL_SECONDS, CHANGED_MEANWHILE, Changed
from store.firestore.database import Fields, FirestoreDatabase, Reference

Answer = TypeVar("Answer")
COMMIT_SECONDS = CALL_SECONDS * 2
DOUBLE_BYTES = 11
FIELD_BYTES = 24
DOCUMENT_BYTES = 256


class Work:
    """Reads see what this unit has written already, as those of a transaction would.

    A document that was read is written under the condition that it is still the one that was read. What is
    only read is not held; `hold` does that.
    """

    def __init__(self, database: FirestoreDatabase) -> None:
        self._database = database
        self._read: dict[str, DocumentSnapshot[Any] | None] = {}
        self._staged: dict[str, tuple[Reference, Fields | None]] = {}
        self._patched: dict[str, tuple[Reference, Fields]] = {}
        self._added: dict[str, tuple[Reference, Fields, dict[str, int]]] = {}
        self._unread: dict[str, tuple[Reference, Fields]] = {}
        self._ahead: list[tuple[Reference, Fields]] = []
        self._removed: dict[str, Reference] = {}

    def get(self, reference: Reference) -> Fields | None:
        """The document as this unit leaves it; None when there is none."""
        if reference.path in self._staged:
            return self._staged[reference.path][1]
        self.fetch([reference])
        snapshot = self._read[reference.path]
        return None if snapshot is None else snapshot.to_dict()

    def fetch(self, references: Iterable[Reference]) -> None:
        """Reads several in one go, for `get` to find."""
        wanted = [each for each in references if each.path not in self._read]
        found = {each.reference.path: each for each in self._database.get_all(wanted)}
        for reference in wanted:
            self._read[reference.path] = found.get(reference.path)

    def put(self, reference: Reference, fields: Fields) -> None:
        """The document, whole, in place of what was read there, or of nothing."""
        if reference.path not in self._read:
            self.fetch([reference])
        self._staged[reference.path] = (reference, fields)

    def create(self, reference: Reference, fields: Fields) -> None:
        """A document where there must be none."""
        self._read.setdefault(reference.path, None)
        self._staged[reference.path] = (reference, fields)

    def delete(self, reference: Reference) -> None:
        """No document, in place of what was read there."""
        if reference.path not in self._read:
            self.fetch([reference])
        self._staged[reference.path] = (reference, None)

    def hold(self, reference: Reference) -> None:
        """What was read stays so until the commit."""
        fields = self.get(reference)
        if fields is not None:
            self.put(reference, fields)

    def lay(self, reference: Reference, fields: Fields) -> None:
        """A new document that nothing shows before the others are committed; it may be written ahead."""
        self._ahead.append((reference, fields))

    def put_unread(self, reference: Reference, fields: Fields) -> None:
        """A document, whole, that goes with another one and is guarded by that."""
        self._removed.pop(reference.path, None)
        self._unread[reference.path] = (reference, fields)

    def patch(self, reference: Reference, fields: Fields) -> None:
        """Changes fields of a document that goes with another one, and is guarded by that."""
        _, known = self._patched.get(reference.path, (reference, {}))
        self._patched[reference.path] = (reference, known | fields)

    def remove(self, reference: Reference) -> None:
        """Deletes a document that goes with another one."""
        self._patched.pop(reference.path, None)
        self._unread.pop(reference.path, None)
        self._removed[reference.path] = reference

    def add(self, reference: Reference, fields: Fields, **amounts: int) -> None:
        """Counts; the document is made with these fields if there is none."""
        _, _, known = self._added.get(reference.path, (reference, fields, {}))
        sums = {name: known.get(name, 0) + amount for name, amount in amounts.items()}
        self._added[reference.path] = (reference, fields, known | sums)

    def commit(self) -> None:
        """All at once.

        Raises:
            Changed: something is not as it was read; nothing was written.
        """
        batch = self._database.client.batch()
        size = self._fill(batch)
        size += sum(_size(fields) for _, fields in self._ahead)
        if size <= self._database.commit_bytes:
            for reference, fields in self._ahead:
                batch.set(reference, fields)
        else:
            for reference in ahead.note(self._database, [reference for reference, _ in self._ahead]):
                batch.delete(reference)
            write_in_batches(self._database, self._ahead)
        try:
            if len(batch):
                batch.commit(retry=None, timeout=COMMIT_SECONDS)
        except CHANGED_MEANWHILE as error:
            raise Changed from error

    def _fill(self, batch: WriteBatch) -> int:
        """Everything but what may be written ahead; its estimated size in bytes."""
        size = 0
        for path, (reference, fields) in self._staged.items():
            _write(batch, reference, fields, self._read.get(path))
            size += _size(fields)
        for reference, fields in self._unread.values():
            batch.set(reference, fields)
            size += _size(fields)
        for reference, fields in self._patched.values():
            batch.update(reference, fields)
            size += _size(fields)
        for reference, fields, amounts in self._added.values():
            if any(amounts.values()):
                sums = {name: firestore.Increment(amount) for name, amount in amounts.items()}
                batch.set(reference, {**fields, **sums}, merge=True)
                size += _size(fields)
        for reference in self._removed.values():
            batch.delete(reference)
            size += DOCUMENT_BYTES
        return size


def unit(database: FirestoreDatabase, action: Callable[[Work], Answer]) -> Answer:
    """Decides and commits, again from the start when something has changed meanwhile.

    Raises:
        StoreError: what the action refuses; `unavailable` when others keep changing the same.
    """

    def attempt() -> Answer:
        work = Work(database)
        answer = action(work)
        work.commit()
        return answer

    return database.patience.decide(attempt)


def write_in_batches(database: FirestoreDatabase, documents: Iterable[tuple[Reference, Fields]]) -> None:
    """Writes many documents, as many at a time as a commit carries."""
    batch, size = database.client.batch(), 0
    for reference, fields in documents:
        each = _size(fields)
        if size + each > database.commit_bytes and len(batch):
            batch.commit(retry=None, timeout=COMMIT_SECONDS)
            batch, size = database.client.batch(), 0
        batch.set(reference, fields)
        size += each
    if len(batch):
        batch.commit(retry=None, timeout=COMMIT_SECONDS)


def _write(
    batch: WriteBatch, reference: Reference, fields: Fields | None, read: DocumentSnapshot[Any] | None
) -> None:
    if read is None:
        if fields is not None:
            batch.create(reference, fields)
        return
    as_read = firestore.Client.write_option(last_update_time=read.update_time)
    if fields is None:
        batch.delete(reference, as_read)
    else:
        batch.update(reference, fields, as_read)


def _size(value: Any) -> int:
    """Bytes on the wire, estimated from above."""
    if isinstance(value, StoredVector):
        return FIELD_BYTES * 4 + DOUBLE_BYTES * len(value)
    if isinstance(value, str):
        return FIELD_BYTES // 3 + len(value.encode())
    if isinstance(value, Mapping):
        return DOCUMENT_BYTES + sum(FIELD_BYTES + len(key) + _size(each) for key, each in value.items())
    if isinstance(value, list | tuple):
        return FIELD_BYTES + sum(_size(each) for each in value)
    return FIELD_BYTES if value is not None else FIELD_BYTES // 3
