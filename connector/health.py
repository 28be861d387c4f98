"""Liveness: the process answers. Readiness: the database does, the embedder is loaded, the state key opens.

Anybody may ask, so an answer is kept for a few seconds and tells no more than which check it was: a stranger
who asks all day reads the database no oftener than the operator's own probe.
"""

import time
from collections.abc import Callable, Mapping
from threading import Lock

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from connector.stores import OpenDatabase
from oauth.keys import Keys, UnreadableKeys
from store.embedders.protocol import Embedder
from store.errors import StoreError

PASSED_SECONDS = 5
FAILED_SECONDS = 1


class Readiness:
    """The checks, asked at most once in a few seconds; safe to share between threads."""

    def __init__(
        self, checks: Mapping[str, Callable[[], bool]], monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        """Args: `checks` by name; each says whether it passes, and raises nothing."""
        self._checks = checks
        self._monotonic = monotonic
        self._lock = Lock()
        self._known: Mapping[str, bool] = {}
        self._good_until = float("-inf")

    def __call__(self) -> Mapping[str, bool]:
        """Whether each check passes, or did a moment ago."""
        with self._lock:
            if self._monotonic() >= self._good_until:
                self._known = {name: check() for name, check in self._checks.items()}
                is_well = all(self._known.values())
                self._good_until = self._monotonic() + (PASSED_SECONDS if is_well else FAILED_SECONDS)
            return self._known


def checks(database: OpenDatabase, keys: Keys, local: Embedder | None) -> Mapping[str, Callable[[], bool]]:
    """What readiness looks at; a service that embeds is not asked, for search does without it for a while."""
    return {
        "database": lambda: database.problem() is None,
        "embedder": lambda: local is None or _embeds(local),
        "state_key": lambda: _opens(keys),
    }


def _embeds(embedder: Embedder) -> bool:
    """Whether the model answers."""
    try:
        embedder.embed_queries(["ready"])
    except StoreError:
        return False
    return True


def _opens(keys: Keys) -> bool:
    """Whether the signing keys can be read; another state key may have come with a restored database."""
    try:
        keys.ring()
    except (UnreadableKeys, StoreError):
        return False
    return True


def routes(readiness: Readiness, version: str) -> list[Route]:
    """`/health/live` is 200 while the process lives; `/health/ready` is 503 when a check fails."""

    async def live(request: Request) -> JSONResponse:
        return JSONResponse({"status": "ok"}, headers={"Cache-Control": "no-store"})

    async def ready(request: Request) -> JSONResponse:
        checks = await run_in_threadpool(readiness)
        is_well = all(checks.values())
        body = {
            "status": "ok" if is_well else "unavailable",
            "version": version,
            "checks": {name: "ok" if passes else "failed" for name, passes in checks.items()},
        }
        return JSONResponse(body, 200 if is_well else 503, {"Cache-Control": "no-store"})

    return [Route("/health/live", live), Route("/health/ready", ready), Route("/health", ready)]
