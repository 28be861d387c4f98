"""How fast strangers may go: generous to honest hosts, which share a few addresses, and finite for floods."""

import ipaddress
from collections import OrderedDict
from collections.abc import Callable
from datetime import datetime
from math import ceil
from threading import Lock

from oauth.errors import TooManyRequests

MAX_KEYS = 10_000


class RateLimit:
    """A token bucket per key: so many at once, then so many per second (RFC 6585 §4)."""

    def __init__(self, burst: int, per_second: float, now: Callable[[], datetime]) -> None:
        self._burst = burst
        self._per_second = per_second
        self._now = now
        self._buckets: OrderedDict[str, tuple[float, datetime]] = OrderedDict()
        self._lock = Lock()

    def check(self, key: str) -> None:
        """Refuses who has nothing left, and costs nothing.

        Raises:
            TooManyRequests: with the seconds until there is something again.
        """
        with self._lock:
            self._refuse_without(self._left(key))

    def spend(self, key: str) -> None:
        """Takes one.

        Raises:
            TooManyRequests: there was none left, and none was taken.
        """
        with self._lock:
            left = self._left(key)
            self._refuse_without(left)
            self._buckets[key] = (left - 1, self._now())
            self._buckets.move_to_end(key)
            if len(self._buckets) > MAX_KEYS:
                self._buckets.popitem(last=False)

    def _left(self, key: str) -> float:
        left, since = self._buckets.get(key, (float(self._burst), self._now()))
        seconds = max(0.0, (self._now() - since).total_seconds())
        return min(self._burst, left + seconds * self._per_second)

    def _refuse_without(self, left: float) -> None:
        if left < 1:
            raise TooManyRequests("too many requests, come back later", ceil((1 - left) / self._per_second))


def network(address: str) -> str:
    """Whom to count an address to: an IPv6 address to its /64, which one machine may have all of."""
    try:
        ip = ipaddress.ip_address(address)
    except ValueError:
        return address
    return str(ipaddress.ip_network(f"{ip}/64", strict=False)) if ip.version == 6 else address
