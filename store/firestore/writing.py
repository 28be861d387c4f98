"""Storing memories: duplicates, revisions and what waits for review, within one unit of work."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from store import review, succession, upserting
from store.backend import Write
from store.errors import NO_SUCH_MEMORY, StoreError
from store.firestore.database import Fields, Tenant, is_id
from store.firestore.settling import Indexed, indexed, settle, to_array
from store.firestore.shapes import vector_field
from store.firestore.stored import Stored, external_name, from_fields, memory_reference, passage_reference
from store.firestore.work import Work
from store.memory import Memory, Saved, WriteStatus

FINGERPRINT_LIFETIME = timedelta(days=1)


class Writer:
    """Changes of one owner's memories, all staged in one unit of work."""

    def __init__(self, work: Work, tenant: Tenant, model: str | None = None) -> None:
        self._work = work
        self._tenant = tenant
        self._model = model

    def find(self, memory_id: str) -> Stored | None:
        """The memory, forgotten or not."""
        if not is_id(memory_id):
            return None
        fields = self._work.get(memory_reference(self._tenant, memory_id))
        return None if fields is None else from_fields(self._tenant.owner, memory_id, fields)

    def get(self, memory_id: str) -> Stored:
        """The live memory.

        Raises:
            StoreError: `not_found`.
        """
        found = self.find(memory_id)
        if found is None or found.shelf is None:
            raise StoreError("not_found", NO_SUCH_MEMORY)
        return found

    def save(self, write: Write, since: datetime) -> Saved:
        """Saves, and deprecates what the write supersedes; neither without the other."""
        saved = self._save(write, since)
        if write.supersedes is not None:
            self.deprecate(write.supersedes, saved.memory.id, write.memory.updated_at)
        return saved

    def _save(self, write: Write, since: datetime) -> Saved:
        self.check_space(write.memory.space)
        known = self.find_external(write)
        upserting.check_revision(None if known is None else known.memory, write.if_revision)
        duplicate = self.find_duplicate(write, since)
        if duplicate is not None:
            # The same id: this very write was committed before, and only the answer to it was lost.
            status: WriteStatus = "created" if duplicate.memory.id == write.memory.id else "duplicate"
            return Saved(duplicate.memory, status, self.is_indexed(duplicate))
        is_proposal = known is not None and upserting.is_untrusted(write.memory, known.memory)
        if known is not None and is_proposal:
            write = replace(write, memory=upserting.proposal(write.memory, known.memory))
            known = self.find_external(write, is_proposal=True)
        stored = self._put(known, write, is_proposal)
        status = "created" if known is None else "updated"
        return Saved(
            stored.memory, "pending" if stored.memory.state == "pending" else status, self.is_indexed(stored)
        )

    def insert(self, write: Write) -> Stored:
        """A new memory, whatever is there already."""
        self.check_space(write.memory.space)
        return self._put(None, write, is_proposal=False)

    def find_duplicate(self, write: Write, since: datetime) -> Stored | None:
        """The live memory that already says what the write says.

        A write with an `external_id` is known by that alone, however old: two things may say the same.
        """
        if write.memory.source.external_id is None:
            return self._find_fingerprint(write, since)
        known = self.find_external(write)
        if known is None or write.if_revision not in (None, known.memory.revision):
            return None
        if upserting.repeats(known.memory, write.memory):
            return known
        if not upserting.is_untrusted(write.memory, known.memory):
            return None
        waiting = self.find_external(write, is_proposal=True)
        proposed = upserting.proposal(write.memory, known.memory)
        return waiting if waiting is not None and upserting.repeats(waiting.memory, proposed) else None

    def find_external(self, write: Write, is_proposal: bool = False) -> Stored | None:
        """The live memory with the same `external_id`, of this space and app, or what would change it."""
        external_id = write.memory.source.external_id
        if external_id is None:
            return None
        name = external_name(write.memory.space, write.app, external_id)
        return self._named("proposals" if is_proposal else "externals", name)

    def is_indexed(self, stored: Stored) -> bool:
        """Whether no embedding of the memory is owed."""
        return self._model is None or stored.model == self._model

    def deprecate(self, memory_id: str, successor: str | None, at: datetime) -> Memory:
        """As `store.succession` rules; the chain of successors stays as it was read."""
        stored = self.get(memory_id)
        named = None if successor is None else self.get(successor)

        def passed(each: str) -> Memory | None:
            found = self.find(each)
            if found is not None:
                self._work.hold(memory_reference(self._tenant, each))
            return None if found is None else found.memory

        if named is not None:
            self._work.hold(memory_reference(self._tenant, named.memory.id))
        after = succession.deprecated(stored.memory, None if named is None else named.memory, passed, at)
        if after is not stored.memory:
            self._change(stored, after)
        return after

    def approve(self, memory_id: str, at: datetime) -> Memory:
        """The memory that is relied on now: itself, or the one that it was a proposed revision of."""
        stored = self.get(memory_id)
        memory = stored.memory
        if review.is_decided(memory):
            return memory if memory.superseded_by is None else self.get(memory.superseded_by).memory
        known = None
        if stored.is_proposal and stored.external is not None:
            known = self._named("externals", stored.external)
        if known is None:
            return self._change(
                replace(stored, is_proposal=False), review.approved(memory, at), stored
            ).memory
        after = replace(known, memory=review.revised(known.memory, memory, at), fingerprint=None)
        after = replace(after, model=stored.model)
        approved = settle(self._work, self._tenant, known, after, self._passages(stored))
        self._change(stored, review.folded(memory, known.memory, at))
        return approved.memory

    def archive(self, memory_id: str, at: datetime) -> None:
        """A fingerprint does not outlive being forgotten."""
        stored = self.find(memory_id)
        if stored is not None:
            memory = replace(stored.memory, archived_at=at)
            settle(self._work, self._tenant, stored, replace(stored, memory=memory, fingerprint=None))

    def reject(self, memory_id: str, at: datetime) -> None:
        """Forgets it; what it would have changed stays as it is."""
        review.must_wait(self.get(memory_id).memory)
        self.archive(memory_id, at)

    def consolidate(self, write: Write, sources: Sequence[str]) -> Memory:
        """Stores the memory and deprecates its sources in its favour; none of it, should one refuse."""
        known = self.find(write.memory.id)
        if known is not None:
            # This very write was committed before, and only the answer to it was lost.
            return known.memory
        merged = self.insert(write).memory
        for source in sources:
            self.deprecate(source, merged.id, merged.updated_at)
        return merged

    def fetch(self, ids: Sequence[str]) -> None:
        """Reads several at once, for what follows."""
        self._work.fetch([memory_reference(self._tenant, each) for each in ids if is_id(each)])

    def restore(self, stored: Stored) -> None:
        """Brings it back.

        Raises:
            StoreError: `conflict` when another memory has its `external_id` by now.
        """
        memory = replace(stored.memory, archived_at=None)
        settle(self._work, self._tenant, stored, replace(stored, memory=memory))

    def _change(self, stored: Stored, memory: Memory, before: Stored | None = None) -> Stored:
        after = replace(stored, memory=memory, fingerprint=None)
        return settle(self._work, self._tenant, before or stored, after)

    def _put(self, known: Stored | None, write: Write, is_proposal: bool) -> Stored:
        memory = write.memory if known is None else upserting.next_revision(known.memory, write.memory)
        has_vectors = all(passage.vector is not None for passage in write.passages)
        after = Stored(
            memory,
            write.app,
            is_proposal=is_proposal,
            model=self._model if self._model is not None and has_vectors else "",
            fingerprint=write.fingerprint.hex(),
        )
        self._work.put(
            self._tenant.document("fingerprints", write.fingerprint.hex()),
            {
                "memory": memory.id,
                "created_at": memory.updated_at,
                "expires_at": memory.updated_at + FINGERPRINT_LIFETIME,
            },
        )
        return settle(self._work, self._tenant, known, after, indexed(write.passages))

    def _named(self, collection: str, name: str) -> Stored | None:
        pointing = self._work.get(self._tenant.document(collection, name))
        return None if pointing is None else self.find(pointing["memory"])

    def _find_fingerprint(self, write: Write, since: datetime) -> Stored | None:
        name = write.fingerprint.hex()
        found = self._work.get(self._tenant.document("fingerprints", name))
        if found is None or found["created_at"] <= since:
            return None
        stored = self.find(found["memory"])
        return stored if stored is not None and stored.fingerprint == name else None

    def check_space(self, space: str) -> None:
        """Checks that the space is there.

        Raises:
            StoreError: `not_found`.
        """
        found = self._work.get(self._tenant.document("spaces", space)) if is_id(space) else None
        if found is None or found["deleted_at"] is not None:
            raise StoreError("not_found", "no such space")

    def _passages(self, stored: Stored) -> Sequence[Indexed]:
        references = [passage_reference(self._tenant, stored, n) for n in range(stored.passages)]
        self._work.fetch(references)
        return [_indexed(self._work.get(each) or {}, stored.dimensions) for each in references]


def _indexed(fields: Fields, dimensions: int) -> Indexed:
    vector = fields.get(vector_field(dimensions))
    return Indexed(
        fields["text"],
        tuple(fields["terms"]),
        tuple(fields["frequencies"]),
        fields["length"],
        None if vector is None else to_array(vector),
    )
