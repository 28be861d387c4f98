"""The activity log: one event per tool call, written in batches off the request path.

An event tells who called what, when, how it ended and which memories it touched. It holds a query's first
160 characters at most, never a body, a token, a cookie or an e-mail address.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from datetime import datetime
from threading import Lock
from typing import Any, Protocol

from starlette.concurrency import run_in_threadpool

from connector.access import Principal
from connector.logs import request_id
from store.events import PREVIEW_CHARACTERS, Event, Rejection
from store.queries import AskedQuery, Queries
from store.summary import cut

log = logging.getLogger(__name__)

FLUSH_SECONDS = 0.5
MAX_WAITING = 10_000
MAX_REFUSALS_WAITING = 60
"""Of a flood only so many are told of one by one."""
SEARCHES = frozenset({"search_context", "search"})
_LISTS = ("matches", "results", "items", "citations", "memories", "nodes")
_QUERIES = ("query", "question", "task")


class Events(Protocol):
    """Where events are kept."""

    def append(self, events: list[Event]) -> None:
        """Writes all of them in one transaction."""

    def reject(self, rejections: list[Rejection], beyond: int) -> None:
        """Keeps some of the refusals of each minute, and counts the others."""


class Activity:
    """Collects events from any thread; `write_in_background` keeps them."""

    def __init__(
        self,
        events: Events,
        now: Callable[[], datetime],
        queries: Queries | None = None,
        observe: Callable[[str, str, float], None] | None = None,
    ) -> None:
        """Args: `queries` keeps searches whole, None keeps none; `observe` hears tool, status and seconds."""
        self._events = events
        self._queries = queries
        self._observe = observe
        self._asked: list[AskedQuery] = []
        self._now = now
        self._waiting: list[Event] = []
        self._refused: list[Rejection] = []
        self._refused_beyond = 0
        self._lock = Lock()

    def tool_called(
        self,
        principal: Principal,
        tool: str,
        status: str,
        latency_ms: float,
        arguments: Mapping[str, Any] | None,
        answer: Mapping[str, Any],
    ) -> None:
        """Notes one call; `status` is `ok`, a StoreError's code, or `error`."""
        if self._observe is not None:
            self._observe(tool, status, latency_ms / 1000)
        query = next((value for name, value in (arguments or {}).items() if name in _QUERIES), None)
        event = Event(
            at=self._now(),
            owner=principal.owner,
            app=principal.app,
            client_name=principal.client_name,
            name=tool,
            status=status,
            latency_ms=latency_ms,
            memory_ids=tuple(_memory_ids(answer)),
            query_preview=cut(query, PREVIEW_CHARACTERS) if isinstance(query, str) else None,
            request_id=request_id.get(),
        )
        with self._lock:
            if len(self._waiting) < MAX_WAITING:
                self._waiting.append(event)
                if self._queries is not None and tool in SEARCHES and status == "ok":
                    self._asked.append(
                        AskedQuery(event.at, event.owner, event.app, str(query), event.memory_ids)
                    )

    def refused(self, path: str, status: int) -> None:
        """Notes a request that was refused before anybody was known."""
        rejection = Rejection(self._now(), path, str(status), request_id.get())
        with self._lock:
            if len(self._refused) < MAX_REFUSALS_WAITING:
                self._refused.append(rejection)
            else:
                self._refused_beyond += 1

    async def write_in_background(self) -> None:
        """Writes what has come in, until cancelled; a store that fails is told of and tried again."""
        while True:
            await asyncio.sleep(FLUSH_SECONDS)
            if self._waiting or self._refused:
                await run_in_threadpool(self.flush)

    def flush(self) -> None:
        """Writes what is waiting now; on failure it goes on waiting."""
        with self._lock:
            batch, self._waiting = self._waiting, []
            refused, self._refused = self._refused, []
            asked, self._asked = self._asked, []
            beyond, self._refused_beyond = self._refused_beyond, 0
        try:
            if batch:
                self._events.append(batch)
            if asked and self._queries is not None:
                self._queries.append(asked)
            if refused:
                self._events.reject(refused, beyond)
        except Exception:
            log.exception("activity.not_written", extra={"events": len(batch)})
            with self._lock:
                self._waiting = (batch + self._waiting)[:MAX_WAITING]


def _memory_ids(answer: Mapping[str, Any]) -> list[str]:
    """The memories that an answer speaks of, in its order."""
    lists = (answer.get(name, ()) for name in _LISTS)
    packed = (row for section in answer.get("sections", ()) for row in section.get("items", ()))
    rows = [answer.get("item"), *(row for rows in lists for row in rows), *packed, answer]
    return [row["id"] for row in rows if isinstance(row, Mapping) and isinstance(row.get("id"), str)]
