"""How many unfinished matters strangers may begin (OAUTH "Limits", THREATS DS-07).

Each authorization request waits ten minutes for its owner, as a record. What may begin in ten minutes is
therefore the most that ever waits: one network alone cannot use it up, and nobody honest comes near it.
"""

from collections.abc import Callable

from starlette.requests import Request

from connector.pages.errors import PageError
from oauth.errors import TooManyRequests
from oauth.rate_limits import RateLimit, network


class MatterLimit:
    """Matters begun by one network, and in all; 9,000 at most wait at a time."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._by_network = RateLimit(600, 5, monotonic)
        self._in_all = RateLimit(3000, 10, monotonic)

    def spend(self, request: Request) -> None:
        """Counts one.

        Raises:
            PageError: 429, with the seconds until there is room again.
        """
        try:
            self._by_network.spend(network(request.client.host if request.client is not None else ""))
            self._in_all.spend("all")
        except TooManyRequests as error:
            raise PageError(429, "too_many", headers=error.extra_headers()) from None
