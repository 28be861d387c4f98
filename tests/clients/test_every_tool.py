"""Every tool of the catalogue, called by the official Python SDK against a real server with its embedder."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from connector.tools.catalogue import TOOLS
from tests.processes import Server, running

SCOPES = ("memory:read", "memory:write", "memory:maintain", "memory:export", "memory:delete")
# One red pixel.
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with running(Server(tmp_path / "state", {"VADEMECUM_EMBEDDER": "local"})) as started:
        yield started


class Connection:
    """A connected client that remembers which tools it called."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.called: set[str] = set()

    async def listed(self) -> dict[str, Any]:
        return {tool.name: tool for tool in (await self._client.list_tools()).tools}

    async def call(self, name: str, **arguments: Any) -> dict[str, Any]:
        self.called.add(name)
        result = await self._client.call_tool(name, arguments)
        assert not result.is_error, result.content
        (text,) = result.content
        answer: dict[str, Any] = json.loads(text.text)  # type: ignore[union-attr]
        assert result.structured_content == answer
        return answer

    async def save(self, content: str, **arguments: Any) -> str:
        saved: str = (await self.call("save_context", content=content, **arguments))["item"]["id"]
        return saved


def test_every_tool_does_what_it_is_for(server: Server) -> None:
    server.run("spaces", "add", "work")
    scopes = [part for scope in SCOPES for part in ("--scope", scope)]
    token = server.run("tokens", "add", *scopes, "--surface", "full", "--episodes").strip()

    async def journey() -> None:
        headers = {"Authorization": f"Bearer {token}"}
        async with (
            httpx2.AsyncClient(headers=headers, timeout=60) as http,
            Client(streamable_http_client(f"{server.url}/mcp", http_client=http)) as client,
        ):
            connection = Connection(client)
            assert set(await connection.listed()) == set(TOOLS)
            await remember(connection)
            await maintain(connection)
            await understand(connection)
            await end(connection)
            assert connection.called == set(TOOLS)

    asyncio.run(journey())


async def remember(connection: Connection) -> None:
    status = await connection.call("memory_status")
    assert status["identity"]["status"] == "empty" and status["retrieval"]["embedder"]
    assert (await connection.call("use_space", space="default"))["active_space"]["name"] == "default"
    key = await connection.save("La llave de repuesto cuelga detrás de la despensa.", topic="home")
    (match, *_) = (await connection.call("search_context", query="Where does the spare key hang?"))["matches"]
    assert match["id"] == key
    (result, *_) = (await connection.call("search", query="llave de repuesto"))["results"]
    assert (await connection.call("fetch", id=result["id"]))["text"].startswith("La llave")
    assert (await connection.call("fetch_context", id=key))["item"]["id"] == key
    assert (await connection.call("pin_context", id=key, pinned=True))["item"]["metadata"]["pinned"]
    assert (await connection.call("forget_context", id=key))["forgotten"]
    assert not (await connection.call("forget_context", id=key, undo=True))["forgotten"]
    image = await connection.call(
        "save_context", content="one red pixel", image_base64=PNG, image_mime_type="image/png"
    )
    assert "not read" in image["note"]
    assert len((await connection.call("list_context"))["items"]) == 2


async def maintain(connection: Connection) -> None:
    old = await connection.save("The gate code is 4711.")
    new = await connection.save("The gate code is 1234.")
    deprecated = await connection.call("deprecate_context", id=old, superseding_id=new)
    assert deprecated["item"]["metadata"]["superseded_by"] == new
    drafts = [await connection.save(f"Thought {number}", draft=True) for number in "12"]
    merged = await connection.call("consolidate_context", source_ids=drafts, content="Both thoughts")
    assert sorted(merged["deprecated"]) == sorted(drafts)
    waiting = [
        await connection.save(f"A stranger says {word}", source={"origin": "external"}) for word in ("a", "b")
    ]
    assert (await connection.call("approve_context", ids=waiting[:1]))["items"][0]["id"] == waiting[0]
    assert (await connection.call("reject_context", ids=waiting[1:]))["rejected"] == waiting[1:]


async def understand(connection: Connection) -> None:
    document = "# Garden\n\n## Roses\n\nRoses are cut in March, says Aunt Berta.\n"
    stored = await connection.call("ingest_document", title="Garden notes", content=document)
    assert (await connection.call("fetch_context", document_id=stored["document_id"]))["item"][
        "content"
    ] == document
    answer = await connection.call("ask_context", question="When are the roses cut?")
    assert any("March" in citation["quote"] for citation in answer["citations"])
    pack = await connection.call("get_context", task="visit Aunt Berta's garden", intent="plan")
    assert 0 < pack["used_tokens"] <= 2000
    assert any("Berta" in each["name"] for each in (await connection.call("get_entity"))["entities"])
    around = await connection.call("query_graph", entity="Aunt Berta")
    assert around["nodes"] and around["edges"]
    turn = {"session_id": "s", "role": "user", "content": "hello"}
    assert (await connection.call("store_episode", **turn))["turn"] == 1
    assert len((await connection.call("list_episodes", session_id="s"))["turns"]) == 1


async def end(connection: Connection) -> None:
    assert len((await connection.call("list_capabilities"))["tools"]) == len(TOOLS)
    assert (await connection.call("get_profile"))["sections"]
    exported = (await connection.call("export_context"))["items"]
    memory = exported[0]["id"]
    assert (await connection.call("delete_context", id=memory, confirm=memory))["deleted"]
    assert memory not in {item["id"] for item in (await connection.call("export_context"))["items"]}
