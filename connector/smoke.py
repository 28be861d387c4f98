"""The whole journey of a memory on a real server, with a personal access token."""

import json
import secrets
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import anyio
import httpx2
from mcp import Client
from mcp.shared.exceptions import MCPError

from connector.remote import connected

STEP_SECONDS = 60


@dataclass(frozen=True)
class Step:
    """One request and how it ended."""

    name: str
    is_ok: bool
    elapsed_ms: float
    said: str = ""


class StepFailed(Exception):
    """The answer is not what it must be."""


async def journey(url: str, token: str, is_read_only: bool, done: Callable[[Step], None]) -> None:
    """Tells of every step as soon as it is done; the first that fails is the last.

    Read and write: save, search, fetch, forget, and see it gone. What it saved is deleted for good where the
    token may do that, and forgotten otherwise.
    """
    started = time.perf_counter()
    try:
        async with connected(url, token) as client:
            done(_step("connect", started))
            await _steps(client, is_read_only, done)
    except BaseExceptionGroup as group:
        done(_step("connect", started, _innermost(group)))
    except (httpx2.HTTPError, MCPError, OSError) as error:
        done(_step("connect", started, str(error) or repr(error)))


@dataclass
class _Run:
    """The steps after the handshake, and what they know of each other."""

    client: Client
    is_read_only: bool
    word: str = field(default_factory=lambda: f"smoke-{secrets.token_hex(8)}")
    saved: str = ""

    @property
    def content(self) -> str:
        return f"The test word of this run is {self.word}"

    async def list_tools(self) -> None:
        tools = {tool.name for tool in (await self.client.list_tools()).tools}
        needed = {"search_context", "fetch_context"} | (set() if self.is_read_only else {"save_context"})
        _expect(needed <= tools, f"the token does not bring {', '.join(sorted(needed - tools))}")

    async def status(self) -> None:
        await _call(self.client, "memory_status")

    async def save(self) -> None:
        answer = await _call(self.client, "save_context", content=self.content, topic="smoke")
        self.saved = answer["item"]["id"]

    async def search(self) -> None:
        found = await _call(self.client, "search_context", query=self.word)
        ids = [match["id"] for match in found["matches"]]
        _expect(self.is_read_only or self.saved in ids, "it is not found")

    async def fetch(self) -> None:
        item = (await _call(self.client, "fetch_context", id=self.saved))["item"]
        _expect(item["content"] == self.content, "its content is another one")

    async def forget(self) -> None:
        if await _may(self.client, "delete_context"):
            await _call(self.client, "delete_context", id=self.saved, confirm=self.saved)
        else:
            await _call(self.client, "forget_context", id=self.saved)

    async def gone(self) -> None:
        answer = await self.client.call_tool("fetch_context", {"id": self.saved})
        _expect(bool(answer.is_error), "it is still there")

    def steps(self) -> list[Callable[[], Awaitable[None]]]:
        if self.is_read_only:
            return [self.list_tools, self.status, self.search]
        return [
            self.list_tools, self.status, self.save, self.search, self.fetch, self.forget, self.gone,
        ]  # fmt: skip


async def _steps(client: Client, is_read_only: bool, done: Callable[[Step], None]) -> None:
    for step in _Run(client, is_read_only).steps():
        started = time.perf_counter()
        name: str = getattr(step, "__name__", "step")
        try:
            with anyio.fail_after(STEP_SECONDS):
                await step()
        except (StepFailed, MCPError, TimeoutError, KeyError, httpx2.HTTPError) as error:
            done(_step(name, started, str(error) or repr(error)))
            return
        done(_step(name, started))


async def _call(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    answer = await client.call_tool(tool, arguments)
    text = "".join(getattr(block, "text", "") for block in answer.content)
    _expect(not answer.is_error, text)
    value: dict[str, Any] = answer.structured_content or json.loads(text)
    return value


async def _may(client: Client, tool: str) -> bool:
    """Whether the token brings a tool that is not listed unasked; one that may not even ask has none."""
    answer = await client.call_tool("list_capabilities", {})
    known = (answer.structured_content or {}).get("tools", [])
    return any(each["name"] == tool and each["allowed"] for each in known)


def _expect(holds: bool, said: str) -> None:
    if not holds:
        raise StepFailed(said)


def _step(name: str, started: float, said: str = "") -> Step:
    return Step(name, not said, round((time.perf_counter() - started) * 1000, 1), said)


def _innermost(group: BaseExceptionGroup[BaseException]) -> str:
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return str(error) or repr(error)
