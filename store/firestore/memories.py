"""Memories in Firestore."""

import logging
from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import datetime

from google.api_core import exceptions

from store.backend import Candidates, Owed, Query, Vector, Write
from store.entities import Entity, Link
from store.firestore import counting, documents, erasing, graph, search, spaces, vectors, views
from store.firestore.calls import CALL_SECONDS
from store.firestore.database import Ask, FirestoreDatabase, Tenant, is_id
from store.firestore.profiles import app_reference
from store.firestore.settling import settle
from store.firestore.stored import Stored, from_fields, memory_reference
from store.firestore.work import Work, unit
from store.firestore.writing import Writer
from store.memory import Document, Filters, Memory, Saved, Selection, Space, State, Status, Turn, View

log = logging.getLogger(__name__)


class FirestoreMemories:
    """Fits `store.backend.Memories`."""

    def __init__(self, database: FirestoreDatabase) -> None:
        self._database = database

    def save(self, writes: Sequence[Write], model: str | None, duplicates_since: datetime) -> list[Saved]:
        """One commit for all."""

        def act(work: Work) -> list[Saved]:
            writers = [Writer(work, self._tenant(write.memory.owner), model) for write in writes]
            return [
                writer.save(write, duplicates_since) for writer, write in zip(writers, writes, strict=True)
            ]

        return unit(self._database, act)

    def find_duplicate(self, write: Write, model: str | None, since: datetime) -> Saved | None:
        """A saver who loses the race meets the duplicate again when saving."""
        writer = Writer(Work(self._database), self._tenant(write.memory.owner), model)
        found = writer.find_duplicate(write, since)
        return None if found is None else Saved(found.memory, "duplicate", writer.is_indexed(found))

    def find(self, owner: str, memory_id: str) -> Memory | None:
        """One look-up below the owner."""
        found = self._find(owner, memory_id)
        return None if found is None or found.shelf is None else found.memory

    def candidates(self, owner: str, space: str, query: Query, filters: Filters) -> Candidates:
        """Every leg at once."""
        return search.candidates(self._tenant(owner), space, query, filters)

    def load(self, owner: str, passages: Sequence[int]) -> dict[int, tuple[Memory, str]]:
        """The passages by number, then their memories; a passage of another revision has gone."""
        tenant = self._tenant(owner)
        select = ("number", "memory", "index", "text")
        found = tenant.ask_in_parts(Ask("passages", select=select), "number", "in", passages)
        references = {each.get("memory"): memory_reference(tenant, each.get("memory")) for each in found}
        memories = {
            each.id: from_fields(owner, each.id, each.to_dict() or {})
            for each in self._database.get_all(references.values())
        }
        loaded: dict[int, tuple[Memory, str]] = {}
        for each in found:
            stored = memories.get(each.get("memory"))
            if stored is not None and stored.shelf is not None and stored.index == each.get("index"):
                loaded[each.get("number")] = (stored.memory, each.get("text"))
        return loaded

    def archive(self, owner: str, memory_id: str, archived_at: datetime) -> None:
        """A fingerprint does not outlive being forgotten."""
        tenant = self._tenant(owner)
        unit(self._database, lambda work: Writer(work, tenant).archive(memory_id, archived_at))

    def restore(self, owner: str, spaces: Collection[str], memory_id: str) -> bool:
        """Only in the spaces that the asking app may see."""
        tenant = self._tenant(owner)

        def act(work: Work) -> bool:
            writer = Writer(work, tenant)
            stored = writer.find(memory_id)
            if stored is None or stored.memory.space not in spaces:
                return False
            if stored.shelf is None:
                writer.restore(stored)
            return True

        return unit(self._database, act)

    def mark_used(self, owner: str, memory_id: str, at: datetime) -> None:
        """No change of the memory: one field, blindly."""
        reference = memory_reference(self._tenant(owner), memory_id)
        try:
            reference.update({"last_used_at": at}, retry=None, timeout=CALL_SECONDS)
        except exceptions.GoogleAPICallError as error:
            log.warning("memory.use_not_noted", extra={"code": type(error).__name__})

    def set_pinned(self, owner: str, memory_id: str, pinned: bool) -> bool:
        """Pins or unpins a live memory."""
        tenant = self._tenant(owner)

        def act(work: Work) -> bool:
            stored = Writer(work, tenant).find(memory_id)
            if stored is None or stored.shelf is None:
                return False
            settle(work, tenant, stored, replace(stored, memory=replace(stored.memory, pinned=pinned)))
            return True

        return unit(self._database, act)

    def find_forgotten(self, owner: str, memory_id: str) -> Memory | None:
        """One look-up below the owner."""
        found = self._find(owner, memory_id)
        return None if found is None or found.shelf is not None else found.memory

    def revisions(self, owner: str, memory_id: str) -> list[Memory]:
        """As they were written down."""
        if not is_id(memory_id):
            return []
        parent = memory_reference(self._tenant(owner), memory_id)
        kept = self._database.ask(Ask("revisions"), parent)
        found = (from_fields(owner, memory_id, each.to_dict() or {}).memory for each in kept)
        return sorted(found, key=lambda each: each.revision)

    def deprecate(self, owner: str, memory_id: str, successor: str | None, at: datetime) -> Memory:
        """One commit."""
        tenant = self._tenant(owner)
        return unit(self._database, lambda work: Writer(work, tenant).deprecate(memory_id, successor, at))

    def approve(self, owner: str, ids: Sequence[str], at: datetime) -> list[Memory]:
        """One commit for all."""
        tenant = self._tenant(owner)
        return unit(self._database, lambda work: [Writer(work, tenant).approve(each, at) for each in ids])

    def reject(self, owner: str, ids: Sequence[str], at: datetime) -> None:
        """One commit for all."""
        tenant = self._tenant(owner)

        def act(work: Work) -> None:
            for memory_id in ids:
                Writer(work, tenant).reject(memory_id, at)

        unit(self._database, act)

    def consolidate(self, write: Write, sources: Sequence[str], model: str | None) -> Memory:
        """One commit."""
        tenant = self._tenant(write.memory.owner)
        return unit(self._database, lambda work: Writer(work, tenant, model).consolidate(write, sources))

    def delete(self, owner: str, memory_id: str) -> bool:
        """One commit."""
        return erasing.erase(self._tenant(owner), memory_id)

    def find_document(self, owner: str, space: str, app: str, key: str) -> Document | None:
        """By what the app calls it."""
        return documents.find(Work(self._database), self._tenant(owner), space, app, key)

    def get_document(self, owner: str, document_id: str) -> Document | None:
        """One look-up below the owner."""
        return documents.get(Work(self._database), self._tenant(owner), document_id)

    def put_document(
        self, document: Document, writes: Sequence[Write], gone: Sequence[str], model: str | None
    ) -> Document:
        """One commit; passages that it cannot carry are written ahead, where nothing shows them yet."""
        tenant = self._tenant(document.owner)
        return unit(self._database, lambda work: documents.put(work, tenant, document, writes, gone, model))

    def archive_document(self, owner: str, document_id: str, at: datetime) -> None:
        """One commit."""
        tenant = self._tenant(owner)
        unit(self._database, lambda work: documents.archive(work, tenant, document_id, at))

    def restore_document(self, owner: str, document_id: str) -> None:
        """One commit."""
        tenant = self._tenant(owner)
        unit(self._database, lambda work: documents.restore(work, tenant, document_id))

    def delete_document(self, owner: str, document_id: str) -> bool:
        """Some chunks at a time; what is cut short is finished by asking again."""
        return documents.delete(self._tenant(owner), document_id)

    def add_turn(self, turn: Turn, since: datetime) -> tuple[Turn, bool]:
        """One commit."""
        return spaces.add_turn(self._tenant(turn.owner), turn, since)

    def turns(self, owner: str, space: str, session: str, after: int, limit: int) -> list[Turn]:
        """By number."""
        return spaces.turns_of(self._tenant(owner), space, session, after, limit)

    def add_space(self, owner: str, name: str) -> Space:
        """One commit."""
        tenant = self._tenant(owner)
        return unit(self._database, lambda work: spaces.add_space(work, tenant, name))

    def rename_space(self, owner: str, space: str, name: str) -> Space:
        """One commit."""
        tenant = self._tenant(owner)
        return unit(self._database, lambda work: spaces.rename_space(work, tenant, space, name))

    def delete_space(self, owner: str, space: str) -> None:
        """Closed in one commit, then emptied; what is cut short is finished by asking again."""
        tenant = self._tenant(owner)
        unit(self._database, lambda work: spaces.close_space(work, tenant, space))
        erasing.erase_all(tenant, "space", space)
        documents.delete_all(tenant, space)
        spaces.delete_turns(tenant, space)
        unit(self._database, lambda work: spaces.drop_space(work, tenant, space))

    def spaces(self, owner: str) -> list[Space]:
        """Oldest first."""
        return spaces.spaces_of(self._tenant(owner)) if is_id(owner) else []

    def chosen_space(self, owner: str, app: str) -> str | None:
        """The stored choice; it may name a space that is gone."""
        found = self._database.get(app_reference(self._tenant(owner), app)).to_dict()
        return None if found is None else found["space"]

    def choose_space(self, owner: str, app: str, space: str) -> None:
        """Keeps the choice."""
        reference = app_reference(self._tenant(owner), app)

        def act(work: Work) -> None:
            work.put(reference, (work.get(reference) or {"app": app, "profile": {}}) | {"space": space})

        unit(self._database, act)

    def status(self, owner: str, spaces: Collection[str]) -> Status:
        """Counted over indexes."""
        return counting.status(
            self._tenant(owner), [each for each in self.spaces(owner) if each.id in spaces]
        )

    def unindexed(self, model: str, limit: int) -> list[Owed]:
        """Forgotten ones too: undoing must find them whole."""
        return vectors.unindexed(self._database, model, limit)

    def count_unindexed(self, model: str) -> int:
        """Over the index."""
        return vectors.count_unindexed(self._database, model)

    def set_vectors(self, model: str, memory: Owed, vectors_: Sequence[Vector]) -> bool:
        """Under the condition that the memory is as it was."""
        return vectors.put(self._tenant(memory.owner), model, memory, vectors_)

    def select(self, view: View, selection: Selection) -> list[Memory]:
        """By index, space by space."""
        return views.select(self._tenant(view.owner), view, selection)

    def entities(
        self, view: View, states: Sequence[State], keys: Collection[str] | None, limit: int
    ) -> list[Entity]:
        """From the edges of the view's spaces."""
        return graph.entities(self._tenant(view.owner), view, states, keys, limit)

    def links(
        self, view: View, states: Sequence[State], keys: Collection[str], ids: Collection[str], limit: int
    ) -> list[Link]:
        """From the edges, and from what memories say of their lineage."""
        return graph.links(self._tenant(view.owner), view, states, keys, ids, limit)

    def _tenant(self, owner: str) -> Tenant:
        return Tenant(self._database, owner)

    def _find(self, owner: str, memory_id: str) -> Stored | None:
        return Writer(Work(self._database), self._tenant(owner)).find(memory_id)
