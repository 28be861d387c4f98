"""Deleting for good: the memory and everything that was derived from it or repeats its words."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial

from store.firestore.database import Ask, Tenant
from store.firestore.settling import remove, settle
from store.firestore.stored import Stored, from_fields
from store.firestore.work import Work, unit
from store.firestore.writing import Writer

ERASED_AT_ONCE = 50
REMEMBERED = timedelta(days=1)
"""For how long the activity log is told not to show what was asked about the memory."""


def erase(tenant: Tenant, memory_id: str) -> bool:
    """Deletes a memory, forgotten or not, with the revisions proposed for it; False when there is none."""

    def act(work: Work) -> bool:
        stored = Writer(work, tenant).find(memory_id)
        if stored is None:
            return False
        erase_in(work, tenant, [memory_id, *_proposals(tenant, stored)])
        return True

    return unit(tenant.database, act)


def erase_in(work: Work, tenant: Tenant, ids: Sequence[str]) -> None:
    """Deletes these within the unit, and what points to them or shows their words."""
    writer, now = Writer(work, tenant), tenant.database.now()
    gone = [stored for each in ids if (stored := writer.find(each)) is not None]
    gone_ids = [stored.memory.id for stored in gone]
    for pointing in tenant.ask_in_parts(Ask("memories", select=()), "superseded_by", "in", gone_ids):
        stored = writer.find(pointing.id)
        if stored is not None and stored.memory.superseded_by in gone_ids:
            settle(work, tenant, stored, replace(stored, memory=replace(stored.memory, superseded_by=None)))
    for stored in gone:
        remove(work, tenant, stored)
        erasure = {"at": now, "expires_at": now + REMEMBERED}
        work.put_unread(tenant.document("erasures", stored.memory.id), erasure)
    shown = tenant.ask_in_parts(Ask("events", select=()), "memory_ids", "array_contains_any", gone_ids)
    for event in shown:
        work.patch(event.reference, {"query_preview": None})
    for query in tenant.ask_in_parts(Ask("queries", select=()), "found", "array_contains_any", gone_ids):
        work.remove(query.reference)


def erase_all(tenant: Tenant, field: str, value: str) -> None:
    """Deletes every memory with this value in this field, some at a time; it may be repeated."""
    while found := tenant.ask(Ask("memories", ((field, "==", value),), limit=ERASED_AT_ONCE, select=())):
        ids = [each.id for each in found]
        unit(tenant.database, partial(erase_in, tenant=tenant, ids=ids))


def _proposals(tenant: Tenant, stored: Stored) -> list[str]:
    """What would have changed the memory, decided by now or not."""
    if stored.is_proposal or stored.external is None:
        return []
    found = tenant.ask(Ask("memories", (("external", "==", stored.external),)))
    others = (from_fields(tenant.owner, each.id, each.to_dict() or {}) for each in found)
    base = stored.memory.id
    return [each.memory.id for each in others if each.is_proposal and base in each.memory.source.derived_from]
