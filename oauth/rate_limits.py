"""How fast strangers may go: generous to honest hosts, which share a few addresses, and finite for floods."""

import hashlib
import ipaddress
from collections import OrderedDict
from collections.abc import Callable
from math import ceil
from threading import Lock

from oauth.errors import TooManyRequests

MAX_KEYS = 10_000


class RateLimit:
    """A token bucket per key: so many at once, then so many per second (RFC 6585 §4).

    Of a key only the digest is kept, for whoever is limited may have chosen it, and made it long.
    """

    def __init__(self, burst: int, per_second: float, monotonic: Callable[[], float]) -> None:
        """Args: `monotonic` is a clock in seconds that is never set back."""
        self._burst = burst
        self._per_second = per_second
        self._monotonic = monotonic
        self._buckets: OrderedDict[bytes, tuple[float, float]] = OrderedDict()
        self._lock = Lock()

    def check(self, key: str) -> None:
        """Refuses who has nothing left, and costs nothing.

        Raises:
            TooManyRequests: with the seconds until there is something again.
        """
        with self._lock:
            self._refuse_without(self._left(_digest(key)))

    def spend(self, key: str) -> None:
        """Takes one.

        Raises:
            TooManyRequests: there was none left, and none was taken.
        """
        digest = _digest(key)
        with self._lock:
            left = self._left(digest)
            self._refuse_without(left)
            self._buckets[digest] = (left - 1, self._monotonic())
            self._buckets.move_to_end(digest)
            if len(self._buckets) > MAX_KEYS:
                self._buckets.popitem(last=False)

    def _left(self, digest: bytes) -> float:
        now = self._monotonic()
        left, since = self._buckets.get(digest, (float(self._burst), now))
        return min(self._burst, left + (now - since) * self._per_second)

    def _refuse_without(self, left: float) -> None:
        if left < 1:
            raise TooManyRequests("too many requests, come back later", ceil((1 - left) / self._per_second))


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode()).digest()


def network(address: str) -> str:
    """Whom to count an address to: an IPv6 address to its /64, which one machine may have all of."""
    try:
        ip = ipaddress.ip_address(address)
    except ValueError:
        return address
    return str(ipaddress.ip_network(f"{ip}/64", strict=False)) if ip.version == 6 else address
