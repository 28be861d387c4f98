"""Asking a service over the network: again while it is worth it, within a budget, and then not at all."""

import logging
from collections.abc import Callable
from typing import TypeVar

import httpx2
from tenacity import Retrying, retry_if_exception, stop_after_delay, wait_random_exponential

from store.errors import StoreError

log = logging.getLogger(__name__)

TRANSIENT = frozenset({408, 409, 425, 429, 500, 502, 503, 504})
FIRST_WAIT_SECONDS = 0.2
LONGEST_WAIT_SECONDS = 4.0

T = TypeVar("T")


def ask(service: str, call: Callable[[], T], seconds: float) -> T:
    """The call's answer; a transient failure is tried again with jitter while the budget lasts.

    Args:
        service: as the log names it.
        call: raises `httpx2.HTTPError`, or an error with the HTTP status as `code`.
        seconds: the budget; a call under way when it ends is waited for.

    Raises:
        StoreError: `unavailable`, whatever went wrong: the answer is owed, not lost.
    """
    attempts = Retrying(
        stop=stop_after_delay(seconds),
        wait=wait_random_exponential(multiplier=FIRST_WAIT_SECONDS, max=LONGEST_WAIT_SECONDS),
        retry=retry_if_exception(_is_transient),
        reraise=True,
    )
    try:
        return attempts(call)
    except Exception as error:
        # The error's own words may quote the request, so only its kind is told.
        log.warning("service.failed", extra={"service": service, "error": describe(error)})
        raise StoreError("unavailable", f"{service} does not answer now") from error


def describe(error: BaseException) -> str:
    """Kind and status of a failure, without anything that was sent."""
    status = _status(error)
    return type(error).__name__ if status is None else f"{type(error).__name__} {status}"


def _is_transient(error: BaseException) -> bool:
    status = _status(error)
    return isinstance(error, httpx2.TransportError) if status is None else status in TRANSIENT


def _status(error: BaseException) -> int | None:
    if isinstance(error, httpx2.HTTPStatusError):
        return error.response.status_code
    code = getattr(error, "code", None)
    return code if isinstance(code, int) else None
