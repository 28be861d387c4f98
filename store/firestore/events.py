"""The activity log in Firestore, kept for 90 days."""

import secrets
from collections.abc import Sequence
from dataclasses import asdict, replace
from datetime import datetime, timedelta
from functools import partial

from store.events import Event, Rejection
from store.firestore.closing import is_open
from store.firestore.database import Ask, Fields, FirestoreDatabase, Operator, Tenant, is_id
from store.firestore.work import Work, unit, write_in_batches

LIFETIME = timedelta(days=90)
MAX_REJECTIONS_A_MINUTE = 60
WAITING = timedelta(hours=1)
"""An event that waits longer than this to be written has lost its preview."""


class FirestoreEvents:
    """Written in batches, read newest first."""

    def __init__(self, database: FirestoreDatabase) -> None:
        self._database = database

    def append(self, events: Sequence[Event]) -> None:
        """As few commits as possible; one that is repeated, its answer lost, writes the same again."""
        owners = is_open(self._database, {event.owner for event in events if is_id(event.owner)})
        erased = {owner: erased_lately(self._database, owner) for owner in owners}
        documents = []
        for number, event in enumerate(events):
            if event.owner not in owners:
                continue
            kept = _without_erased(event, erased[event.owner], self._database.now())
            micros = round(event.at.timestamp() * 1_000_000)
            name = f"{micros:017}.{number:05}.{secrets.token_urlsafe(6)}"
            documents.append((Tenant(self._database, event.owner).document("events", name), _fields(kept)))
        self._database.patience.read(lambda: write_in_batches(self._database, documents))

    def recent(self, owner: str, limit: int) -> list[Event]:
        """The owner's last events, newest first."""
        ask = Ask("events", (self._young(),), ("at", "DESCENDING"), limit=limit)
        found = Tenant(self._database, owner).ask(ask)
        return [_event(owner, each.to_dict() or {}) for each in found]

    def since(self, owner: str, moment: datetime) -> list[Event]:
        """The owner's events from that moment on, oldest first."""
        young = max(moment, self._database.now() - LIFETIME)
        ask = Ask("events", (("at", ">=", young),), ("at", "ASCENDING"))
        return [_event(owner, each.to_dict() or {}) for each in Tenant(self._database, owner).ask(ask)]

    def reject(self, rejections: Sequence[Rejection], beyond: int = 0) -> None:
        """A document for each minute: what a stranger can make us write does not grow with what he sends."""
        minutes: dict[datetime, list[Rejection]] = {_minute(self._database.now()): []}
        for rejection in rejections:
            minutes.setdefault(_minute(rejection.at), []).append(rejection)
        for minute, refused in minutes.items():
            more = beyond if minute == _minute(self._database.now()) else 0
            if refused or more:
                unit(self._database, partial(self._keep, minute=minute, refused=refused, beyond=more))

    def rejections(self, limit: int) -> list[Rejection]:
        """The last ones kept, newest first."""
        ask = Ask("rejections", (self._young(),), ("at", "DESCENDING"), limit=limit)
        found = self._database.ask(ask)
        kept = [Rejection(**fields) for each in found for fields in reversed(each.get("kept"))]
        return sorted(kept, key=lambda each: each.at, reverse=True)[:limit]

    def rejections_beyond(self) -> int:
        """How many more there were than were kept."""
        ask = Ask("rejections", (self._young(),), ("at", "ASCENDING"))
        return self._database.count(ask, total="beyond")[1]

    def _young(self) -> tuple[str, Operator, datetime]:
        """Not over its time: Firestore removes what is within a day or so."""
        return ("at", ">=", self._database.now() - LIFETIME)

    def _keep(self, work: Work, minute: datetime, refused: Sequence[Rejection], beyond: int) -> None:
        reference = self._database.document("rejections", minute.strftime("%Y%m%d%H%M"))
        known = work.get(reference) or {
            "at": minute,
            "kept": [],
            "beyond": 0,
            "expires_at": minute + LIFETIME,
        }
        room = max(MAX_REJECTIONS_A_MINUTE - len(known["kept"]), 0)
        kept = [*known["kept"], *(asdict(each) for each in refused[:room])]
        beyond += len(refused[room:])
        work.put(reference, known | {"kept": kept, "beyond": known["beyond"] + beyond})


def erased_lately(database: FirestoreDatabase, owner: str) -> set[str]:
    """What was deleted lately: an event may have waited while a memory was deleted that it previews."""
    ask = Ask("erasures", (("at", ">", database.now() - WAITING),), ("at", "ASCENDING"), select=("at",))
    return {each.id for each in Tenant(database, owner).ask(ask)}


def _minute(moment: datetime) -> datetime:
    return moment.replace(second=0, microsecond=0)


def _without_erased(event: Event, erased: set[str], now: datetime) -> Event:
    if event.query_preview is None or not event.memory_ids:
        return event
    is_safe = erased.isdisjoint(event.memory_ids) and now - event.at < WAITING
    return event if is_safe else replace(event, query_preview=None)


def _fields(event: Event) -> Fields:
    fields = asdict(event)
    del fields["owner"]
    return fields | {"memory_ids": [*event.memory_ids], "expires_at": event.at + LIFETIME}


def _event(owner: str, fields: Fields) -> Event:
    del fields["expires_at"]
    return Event(owner=owner, **fields | {"memory_ids": tuple(fields["memory_ids"])})
