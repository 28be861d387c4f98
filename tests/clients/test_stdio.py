"""The bridge, driven by the official Python SDK's stdio client; and the smoke journey over real HTTP."""

import asyncio
import json
import os
import sqlite3
import subprocess
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from tests.processes import PASSPHRASE, Server, free_port, running

FULL = ("memory:read", "memory:write", "memory:delete")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with running(Server(tmp_path_factory.mktemp("stdio") / "state")) as started:
        yield started


def token_of(server: Server, *scopes: str) -> str:
    chosen = [part for scope in scopes for part in ("--scope", scope)]
    return server.run("tokens", "add", *chosen).strip()


def bridged(server: Server, use: Callable[[Client], Awaitable[Any]], *arguments: str, **env: str) -> Any:
    """Starts `vademecum stdio` as a host does, and uses it."""
    command, *before = server.command
    parameters = StdioServerParameters(
        command=command, args=[*before, "stdio", *arguments], env=server.env() | env, cwd=os.getcwd()
    )

    async def run() -> Any:
        with open(os.devnull, "w") as quiet:  # noqa: ASYNC230 - before anything runs
            async with Client(stdio_client(parameters, errlog=quiet)) as client:
                return await use(client)

    return asyncio.run(run())


async def save_and_find(client: Client) -> dict[str, Any]:
    names = {tool.name for tool in (await client.list_tools()).tools}
    assert {"save_context", "search_context"} <= names
    saved = await client.call_tool("save_context", {"content": "The spare key hangs behind the pantry door"})
    assert not saved.is_error and saved.structured_content
    found = await client.call_tool("search_context", {"query": "spare key"})
    assert found.structured_content
    assert saved.structured_content["item"]["id"] in [m["id"] for m in found.structured_content["matches"]]
    refused = await client.call_tool("fetch_context", {"id": "unknown"})
    assert refused.is_error
    item: dict[str, Any] = saved.structured_content["item"]
    return item


def test_the_bridge_to_this_machine_s_memories_needs_no_server(tmp_path: Path) -> None:
    server = Server(tmp_path / "state")
    server.state_dir.mkdir()
    server.run("owner", "passphrase", stdin=PASSPHRASE + "\n")
    item = bridged(server, save_and_find)
    with closing(sqlite3.connect(server.state_dir / "vademecum.db")) as connection:
        assert connection.execute("SELECT id FROM memories").fetchall() == [(item["id"],)]
        events = connection.execute("SELECT value FROM events").fetchall()
    assert len(events) == 3


def test_the_bridge_to_a_server_passes_every_call_on(server: Server, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text(token_of(server, "memory:read", "memory:write"))
    item = bridged(server, save_and_find, server.url, "--token-file", str(token))
    found = json.loads(server.run("search", "spare key", "--json"))
    assert item["id"] in [match["id"] for match in found["matches"]]


def test_the_bridge_brings_no_more_than_the_scopes_that_were_given(server: Server, tmp_path: Path) -> None:
    async def names(client: Client) -> set[str]:
        return {tool.name for tool in (await client.list_tools()).tools}

    assert "save_context" not in bridged(server, names, "--scope", "memory:read")
    secret = token_of(server, "memory:read")
    assert "save_context" not in bridged(server, names, server.url, VADEMECUM_TOKEN=secret)


def attempt(server: Server, *arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        (*server.command, *arguments), env=server.env() | env, capture_output=True, text=True, timeout=120,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip


def steps(done: subprocess.CompletedProcess[str]) -> dict[str, bool]:
    return {step["name"]: step["is_ok"] for step in json.loads(done.stdout)["steps"]}


def test_smoke_goes_the_whole_way_and_leaves_nothing(server: Server) -> None:
    before = memories(server)
    done = attempt(server, "smoke", server.url, "--json", VADEMECUM_TOKEN=token_of(server, *FULL))
    assert done.returncode == 0, done.stdout + done.stderr
    names = ("connect", "list_tools", "status", "save", "search", "fetch", "forget", "gone")
    assert steps(done) == dict.fromkeys(names, True)
    assert memories(server) == before


def memories(server: Server) -> int:
    with closing(sqlite3.connect(server.state_dir / "vademecum.db")) as connection:
        return int(connection.execute("SELECT count(*) FROM memories").fetchone()[0])


def test_smoke_in_read_only_mode_changes_nothing(server: Server) -> None:
    before = memories(server)
    secret = token_of(server, "memory:read")
    done = attempt(server, "smoke", server.url, "--read-only", "--json", VADEMECUM_TOKEN=secret)
    assert done.returncode == 0 and set(steps(done)) == {"connect", "list_tools", "status", "search"}
    assert memories(server) == before
    refused = attempt(server, "smoke", server.url, "--json", VADEMECUM_TOKEN=secret)
    assert refused.returncode == 1 and steps(refused)["list_tools"] is False


def test_smoke_says_what_is_wrong(server: Server) -> None:
    dead = attempt(server, "smoke", server.url, "--json", VADEMECUM_TOKEN="vmc_pat_unknown")
    assert dead.returncode == 1 and steps(dead) == {"connect": False}
    nowhere = f"http://127.0.0.1:{free_port()}"
    assert attempt(server, "smoke", nowhere, VADEMECUM_TOKEN="x").returncode == 1
    without = attempt(server, "smoke", server.url)
    assert without.returncode == 1 and "VADEMECUM_TOKEN" in without.stderr
    plain = attempt(server, "smoke", "http://memory.example.org", VADEMECUM_TOKEN="x")
    assert plain.returncode == 1 and "https" in plain.stderr
