"""Copies of documents that other hosts publish, kept in the records and fetched again when they grow old.

One fetch serves all who ask at the same time; a failure is never kept, and costs nobody the last good copy.
"""

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from oauth.records import Records, Value
from oauth.safe_fetch import Document, Fetcher, Unreachable

SHORTEST = timedelta(minutes=5)
USUAL = timedelta(hours=1)
LONGEST = timedelta(hours=24)
ASKED_AGAIN_AFTER = timedelta(minutes=1)
"""How soon a copy that lacks something may be fetched again."""
MAX_REMEMBERED = 1000


@dataclass(frozen=True)
class Copy:
    """What was found at an address, checked, and until when it needs no second look."""

    members: Value
    fetched_at: datetime
    fresh_until: datetime


Check = Callable[[Value], Value]
"""Makes of a document what is kept of it, or raises `BadDocument`."""


class FetchedCopies:
    """The copies of one kind of document; asynchronous where it fetches, synchronous where it reads."""

    def __init__(
        self,
        kind: str,
        records: Records,
        fetcher: Fetcher,
        kept_for: timedelta,
        now: Callable[[], datetime],
    ) -> None:
        """Args: `kept_for` is how long the last good copy serves when its host never answers again."""
        self._kind = kind
        self._records = records
        self._fetcher = fetcher
        self._kept_for = kept_for
        self._now = now
        self._left_alone_until: OrderedDict[str, datetime] = OrderedDict()
        self._running: dict[str, asyncio.Task[None]] = {}

    def find(self, url: str) -> Copy | None:
        """The last good copy, however old."""
        value = self._records.get(self._kind, _key(url))
        if value is None:
            return None
        fetched_at = datetime.fromisoformat(value["fetched_at"])
        return Copy(value["members"], fetched_at, datetime.fromisoformat(value["fresh_until"]))

    async def refresh(
        self,
        url: str,
        check: Check,
        *,
        has_fallback: bool = False,
        is_enough: Callable[[Value], bool] = lambda members: True,
    ) -> None:
        """Sees to it that there is a copy: fresh, or the last good one when the host does not answer.

        Args:
            url: where the document is.
            check: what is kept of it.
            has_fallback: whether the caller can do without a copy.
            is_enough: whether a fresh copy will do; one that will not is fetched again after a minute.

        Raises:
            BadDocument: as `Fetcher.fetch`, or `check` refused it.
            Unreachable: as `Fetcher.fetch`, and there is neither copy nor fallback.
        """
        running = self._running.get(url)
        if running is None:
            running = asyncio.create_task(self._refresh(url, check, has_fallback, is_enough))
            self._running[url] = running
            running.add_done_callback(lambda _: self._running.pop(url, None))
        await asyncio.shield(running)

    async def _refresh(
        self, url: str, check: Check, has_fallback: bool, is_enough: Callable[[Value], bool]
    ) -> None:
        now = self._now()
        copy = await asyncio.to_thread(self.find, url)
        is_good = copy is not None and is_enough(copy.members)
        if copy is not None and now < (copy.fresh_until if is_good else copy.fetched_at + ASKED_AGAIN_AFTER):
            return
        try:
            document = await self._fetch(url, now, may_pause=copy is not None or has_fallback)
        except Unreachable:
            if is_good or has_fallback:
                return
            raise
        await asyncio.to_thread(self._store, url, check(document.members), _lifetime(document))

    async def _fetch(self, url: str, now: datetime, *, may_pause: bool) -> Document:
        """Nobody waits twice in five minutes for a silent host, if there is something to go on with."""
        if may_pause and now < self._left_alone_until.get(url, now):
            raise Unreachable("the host did not answer a moment ago", 60)
        try:
            return await self._fetcher.fetch(url)
        except Unreachable:
            if may_pause:
                self._left_alone_until[url] = now + SHORTEST
                if len(self._left_alone_until) > MAX_REMEMBERED:
                    self._left_alone_until.popitem(last=False)
            raise

    def _store(self, url: str, members: Value, lifetime: timedelta) -> None:
        now = self._now()
        new = {
            "url": url,
            "members": members,
            "fetched_at": now.isoformat(),
            "fresh_until": (now + lifetime).isoformat(),
        }
        key, expires_at = _key(url), now + self._kept_for
        old = self._records.get(self._kind, key)
        # Losing either race is fine: somebody else stored what he had just fetched.
        if old is None:
            self._records.create(self._kind, key, new, expires_at)
        else:
            self._records.swap(self._kind, key, old, new, expires_at)


def _lifetime(document: Document) -> timedelta:
    wished = USUAL if document.max_age is None else document.max_age
    return min(max(wished, SHORTEST), LONGEST)


def _key(url: str) -> str:
    return hashlib.sha256(url.encode()).hexdigest()
