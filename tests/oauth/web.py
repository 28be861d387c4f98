"""Other people's hosts, without a network: what each address answers, and who was really connected to."""

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import httpx2

from oauth.safe_fetch import Fetcher

PUBLIC = "93.184.215.14"


class Web:
    """Names with addresses and documents; every connection is written down."""

    def __init__(self) -> None:
        self.addresses: dict[str, Sequence[str]] = {}
        self.answers: dict[str, httpx2.Response | Exception] = {}
        self.delay = 0.0
        self.resolved: list[str] = []
        self.connected: list[tuple[str, str]] = []
        """Address and certificate name of each connection."""

    def publish(self, url: str, members: Any = None, *, status: int = 200, **headers: Any) -> None:
        """An answer for GET on this address."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        content = members if isinstance(members, bytes) else json.dumps(members).encode()
        self.answers[url] = httpx2.Response(
            status, content=content, headers={"Content-Type": "application/json"} | named
        )

    def fetcher(self) -> Fetcher:
        """A fetcher that sees this web only."""
        return Fetcher(self._resolve, lambda: httpx2.MockTransport(self._answer))

    async def _resolve(self, name: str, port: int) -> Sequence[str]:
        self.resolved.append(name)
        addresses = self.addresses.get(name, [PUBLIC])
        if not addresses:
            raise OSError("no such name")
        return addresses

    async def _answer(self, request: httpx2.Request) -> httpx2.Response:
        self.connected.append((request.url.host, str(request.extensions["sni_hostname"])))
        await asyncio.sleep(self.delay)
        url = f"https://{request.headers['host']}{request.url.raw_path.decode()}"
        answer = self.answers.get(url, httpx2.Response(404))
        if isinstance(answer, Exception):
            raise answer
        return httpx2.Response(answer.status_code, headers=answer.headers, stream=Chunks(answer.content))


class Chunks(httpx2.AsyncByteStream):
    """A body in small pieces, whatever its headers promise."""

    def __init__(self, content: bytes) -> None:
        self._content = content

    async def __aiter__(self) -> Any:
        for start in range(0, len(self._content), 4096):
            yield self._content[start : start + 4096]
