"""Calling Firestore: what is tried again, for how long, and what the caller hears in the end."""

import logging
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from google.api_core import exceptions
from google.auth.exceptions import GoogleAuthError

from store.errors import StoreError

log = logging.getLogger(__name__)
Answer = TypeVar("Answer")

CALL_SECONDS = 5.0
"""For one request to Firestore."""
BUDGET_SECONDS = 10.0
"""For all attempts together; a client of ours waits longer than that."""
FIRST_PAUSE_SECONDS = 0.02
LONGEST_PAUSE_SECONDS = 1.0

CHANGED_MEANWHILE = (
    exceptions.FailedPrecondition,
    exceptions.AlreadyExists,
    exceptions.NotFound,
    exceptions.Aborted,
)
"""What a commit answers when something is not as it was read."""
PASSING = (
    exceptions.Aborted,
    exceptions.ServiceUnavailable,
    exceptions.DeadlineExceeded,
    exceptions.GatewayTimeout,
    exceptions.ResourceExhausted,
    exceptions.TooManyRequests,
    exceptions.InternalServerError,
    exceptions.Cancelled,
    exceptions.Unknown,
    exceptions.RetryError,
)
"""What may be otherwise a moment later. A commit that ends so may have happened all the same."""


@dataclass(frozen=True)
class Patience:
    """How long to go on trying, and the clock and the pause of it."""

    budget_seconds: float = BUDGET_SECONDS
    monotonic: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep

    def read(self, action: Callable[[], Answer]) -> Answer:
        """Reads, again while it fails for a passing reason.

        Raises:
            StoreError: `unavailable`; while an index that the query needs is still being built, too.
        """
        return self._try(action, PASSING)

    def decide(self, action: Callable[[], Answer]) -> Answer:
        """Reads, decides and commits, all of it again when something has changed in between.

        Raises:
            StoreError: what the action refuses, or `unavailable`.
        """
        return self._try(action, (*PASSING, Changed))

    def _try(self, action: Callable[[], Answer], again: tuple[type[Exception], ...]) -> Answer:
        deadline = self.monotonic() + self.budget_seconds
        pause = FIRST_PAUSE_SECONDS
        while True:
            try:
                return action()
            except again as error:
                # Full jitter: those who met once shall not meet again.
                wait = random.uniform(0, pause)  # noqa: S311 - no secret
                if self.monotonic() + wait >= deadline:
                    log.warning("firestore.gave_up", extra={"error": type(error).__name__})
                    raise StoreError("unavailable", "the store is busy; nothing was changed") from error
                self.sleep(wait)
                pause = min(pause * 2, LONGEST_PAUSE_SECONDS)
            except exceptions.FailedPrecondition as error:
                log.warning("firestore.index_missing", extra={"error": type(error).__name__})
                raise StoreError(
                    "unavailable", "index building: the store cannot answer this yet; try again later"
                ) from error
            except exceptions.InvalidArgument as error:
                log.warning("firestore.refused", extra={"error": type(error).__name__})
                raise StoreError("too_large", "it is more than the store can keep in one piece") from error
            except (exceptions.GoogleAPICallError, GoogleAuthError) as error:
                log.warning("firestore.failed", extra={"error": type(error).__name__})
                raise StoreError("unavailable", "the store cannot be reached; nothing was changed") from error


class Changed(Exception):
    """Something is not as it was read; whatever was decided from it has to be decided again."""
