"""The bridge for clients that can only start a program: MCP over standard input and output.

Either the tools of this machine's own installation, or those of a server, call by call.
"""

import asyncio
from dataclasses import replace
from importlib.metadata import version
from typing import Any

from mcp import Client
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp_types import (
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
)
from starlette.concurrency import run_in_threadpool

from connector.access import Principal, within_profile
from connector.app import Vademecum, mcp_server
from connector.remote import connected

APP = "stdio"


async def serve_local(parts: Vademecum, owner: str, scopes: frozenset[str]) -> None:
    """Until standard input ends; whoever may start this program may read the files it opens."""
    whole = Principal(owner, APP, "stdio", scopes, None, is_openai=False)
    principal = within_profile(whole, parts.profiles.get(owner, APP))
    served = replace(mcp_server(parts), principal_of=lambda context: principal)
    writing = asyncio.create_task(parts.activity.write_in_background())
    try:
        await _run(served.server())
    finally:
        writing.cancel()
        await asyncio.gather(writing, return_exceptions=True)
        await run_in_threadpool(parts.activity.flush)


async def serve_remote(url: str, token: str) -> None:
    """Until standard input ends."""
    async with connected(url, token) as client:
        await _run(_forwarding(client))


async def _run(server: Server[Any]) -> None:
    async with stdio_server() as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())


def _forwarding(client: Client) -> Server[Any]:
    """A server whose every answer is the other one's."""

    async def list_tools(context: Any, params: PaginatedRequestParams | None) -> ListToolsResult:
        return await client.list_tools(cursor=params.cursor if params else None)

    async def call_tool(context: Any, params: CallToolRequestParams) -> CallToolResult:
        return await client.call_tool(params.name, params.arguments)

    server: Server[Any] = Server(
        "vademecum",
        version=version("vademecum"),
        title="Vademecum",
        instructions=client.instructions,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )
    server.middleware = []
    return server
