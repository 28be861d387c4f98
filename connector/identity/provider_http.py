"""Requests to an identity provider: a JSON object, or the plain statement that the provider is away.

An outage must cost little: whoever asks during the next seconds is told at once, without another request.
"""

import json
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any

import httpx2

from connector.identity.provider import ProviderUnavailable

TIMEOUT_SECONDS = 5.0
DEADLINE_SECONDS = 10.0
"""For a whole answer: clients await their refresh for 30 s at most."""
MAX_ANSWER_BYTES = 256 * 1024
LEFT_ALONE_FOR = timedelta(seconds=5)
_MAX_AGE = re.compile(r"(?:^|[\s,])max-age\s*=\s*\"?([0-9]{1,9})", re.IGNORECASE)
_FORBIDS_CACHING = re.compile(r"(?:^|[\s,])no-(?:store|cache)\b", re.IGNORECASE)


@dataclass(frozen=True)
class Answer:
    """A JSON object with its status, below 500."""

    status: int
    body: Mapping[str, Any]
    max_age: timedelta | None
    """How long it may be kept, as far as the provider says so (RFC 9111 §5.2.2.1)."""


class ProviderHttp:
    """One provider's hosts; safe to share between threads."""

    def __init__(
        self,
        now: Callable[[], datetime],
        transport: httpx2.BaseTransport | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """Args: `transport` stands for the network in tests."""
        self._now = now
        self._transport = transport
        self._monotonic = monotonic
        self._left_alone_until: dict[str, datetime] = {}

    @cached_property
    def _client(self) -> httpx2.Client:
        """Made when it is first needed: a passphrase needs none."""
        return httpx2.Client(transport=self._transport, timeout=TIMEOUT_SECONDS, follow_redirects=False)

    def close(self) -> None:
        """Closes the connections that are kept open."""
        if "_client" in self.__dict__:
            self._client.close()

    def get(self, url: str, headers: Mapping[str, str] | None = None) -> Answer:
        """Fetches a document.

        Raises:
            ProviderUnavailable: no connection, no answer in time, 429, 5xx, or no JSON object.
        """
        return self._ask("GET", url, headers=headers)

    def post(self, url: str, form: Mapping[str, str], auth: tuple[str, str] | None = None) -> Answer:
        """Sends a form; raises as `get` does."""
        return self._ask("POST", url, data=form, auth=auth)

    def _ask(self, method: str, url: str, **content: Any) -> Answer:
        host, now = httpx2.URL(url).host, self._now()
        left = self._left_alone_until.get(host, now) - now
        if timedelta(0) < left <= LEFT_ALONE_FOR:
            raise ProviderUnavailable(LEFT_ALONE_FOR)
        deadline = self._monotonic() + DEADLINE_SECONDS
        try:
            with self._client.stream(method, url, **content) as response:
                return self._read(response, deadline)
        except (httpx2.HTTPError, httpx2.StreamError, ValueError, OSError):
            self._left_alone_until[host] = self._now() + LEFT_ALONE_FOR
            raise ProviderUnavailable from None

    def _read(self, response: httpx2.Response, deadline: float) -> Answer:
        if response.status_code == 429 or response.status_code >= 500:
            raise ValueError("the provider is busy")
        content = bytearray()
        for chunk in response.iter_bytes():
            content += chunk
            if len(content) > MAX_ANSWER_BYTES or self._monotonic() > deadline:
                raise ValueError("too much, or too slow")
        body = json.loads(content)
        if not isinstance(body, dict):
            raise ValueError("not a JSON object")
        return Answer(response.status_code, body, _max_age(response.headers))


def _max_age(headers: httpx2.Headers) -> timedelta | None:
    cache_control = headers.get("cache-control", "")
    if _FORBIDS_CACHING.search(cache_control):
        return timedelta(0)
    match = _MAX_AGE.search(cache_control)
    if match is None:
        return None
    age = headers.get("age", "0")
    return timedelta(seconds=max(0, int(match[1]) - (int(age) if age.isdecimal() else 0)))
