"""What a provider publishes about itself: keys and endpoints, kept as long as it allows and no longer.

One fetch serves all who wait for it. A copy that has grown old is never used: without the provider nobody
signs in (fails closed, FB-03), and what was granted before goes on.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from threading import Lock
from typing import Any, Generic, TypeVar

from connector.identity.provider import ProviderUnavailable
from connector.identity.provider_http import TIMEOUT_SECONDS, ProviderHttp

SHORTEST = timedelta(minutes=1)
USUAL = timedelta(minutes=5)
LONGEST = timedelta(hours=24)

T = TypeVar("T")


@dataclass(frozen=True)
class _Copy(Generic[T]):
    content: T
    fetched_at: datetime
    lifetime: timedelta

    def is_fresh(self, now: datetime, max_age: timedelta) -> bool:
        return abs(now - self.fetched_at) < min(self.lifetime, max_age)


class Published(Generic[T]):
    """One document and its copy in this process."""

    def __init__(
        self,
        http: ProviderHttp,
        url: str,
        parse: Callable[[Mapping[str, Any]], T],
        now: Callable[[], datetime],
    ) -> None:
        """Args: `parse` makes of the document what is kept, and raises `ValueError` for a bad one."""
        self._http = http
        self._url = url
        self._parse = parse
        self._now = now
        self._copy: _Copy[T] | None = None
        self._fetching = Lock()

    def get(self, max_age: timedelta = LONGEST) -> T:
        """The document, at most this old.

        Raises:
            ProviderUnavailable: there is no fresh copy, and none to be had.
        """
        copy = self._copy
        if copy is not None and copy.is_fresh(self._now(), max_age):
            return copy.content
        if not self._fetching.acquire(timeout=TIMEOUT_SECONDS):
            raise ProviderUnavailable
        try:
            if self._copy is None or self._copy is copy:
                self._copy = self._fetch()
            return self._copy.content
        finally:
            self._fetching.release()

    def _fetch(self) -> _Copy[T]:
        answer = self._http.get(self._url)
        if answer.status != 200:
            raise ProviderUnavailable
        wished = USUAL if answer.max_age is None else answer.max_age
        try:
            content = self._parse(answer.body)
        except (ValueError, TypeError, KeyError, AttributeError):
            # Not the shape it should have: as good as no answer.
            raise ProviderUnavailable from None
        return _Copy(content, self._now(), min(max(wished, SHORTEST), LONGEST))


def find_key(published: Published[Mapping[str, T]], key_id: str) -> T | None:
    """The key of this name; for an unknown one the provider is asked again, once a minute at most.

    Raises:
        ProviderUnavailable: there are no keys to look among.
    """
    key = published.get().get(key_id)
    if key is not None:
        return key
    try:
        return published.get(SHORTEST).get(key_id)
    except ProviderUnavailable:
        return None
