"""Full queries with what they found: kept only when the operator asks for it (TOOLS, `eval import`)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from store.events import Event

EVIDENCE_WINDOW = timedelta(minutes=10)
READING = frozenset({"fetch_context", "fetch"})


@dataclass(frozen=True)
class AskedQuery:
    """One search: what was asked, and the memories found, best first."""

    at: datetime
    owner: str
    app: str
    query: str
    found: tuple[str, ...]


class Queries(Protocol):
    """Kept for 90 days."""

    def append(self, queries: Sequence[AskedQuery]) -> None:
        """Keeps them, all in one transaction."""

    def since(self, owner: str, moment: datetime) -> list[AskedQuery]:
        """The owner's from that moment on, oldest first."""


def evidence(queries: Sequence[AskedQuery], events: Sequence[Event]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Queries with the memories that the same app read of what they found, within ten minutes.

    What somebody reads after searching is what he searched for; a query that was asked again counts once,
    with everything that was read after it.
    """
    read: dict[str, dict[str, None]] = {}
    for asked in queries:
        for event in events:
            is_after = asked.at <= event.at <= asked.at + EVIDENCE_WINDOW
            if is_after and event.app == asked.app and event.name in READING and event.status == "ok":
                ids = dict.fromkeys(each for each in event.memory_ids if each in asked.found)
                if ids:
                    read.setdefault(asked.query, {}).update(ids)
    return ((query, tuple(ids)) for query, ids in read.items())
