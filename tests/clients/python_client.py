"""A client host on the official Python SDK, driven by JSON lines on standard input.

Requests: {"do":"connect"} {"do":"tools"} {"do":"call","name","arguments"} {"do":"close"}.
Answers: {"ok":…} | {"error":"…"}; {"authorize":URL} asks for one line {"callback":URL}.
"""

import asyncio
import json
import sys
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx2
from mcp import Client
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata, OAuthToken

REDIRECT_URI = "http://127.0.0.1:33417/callback"


def say(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


async def hear() -> dict[str, Any]:
    line = await asyncio.to_thread(sys.stdin.readline)
    heard: dict[str, Any] = json.loads(line) if line else {"do": "close"}
    return heard


class FileStorage:
    """Keeps tokens and registration in one JSON file, as a host keeps them over restarts."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._state: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}

    def _keep(self, key: str, value: Any) -> None:
        self._state[key] = value.model_dump(mode="json", exclude_none=True)
        self._path.write_text(json.dumps(self._state))

    async def get_tokens(self) -> OAuthToken | None:
        return OAuthToken.model_validate(self._state["tokens"]) if "tokens" in self._state else None

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self._keep("tokens", tokens)

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        client = self._state.get("client")
        return OAuthClientInformationFull.model_validate(client) if client else None

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self._keep("client", client_info)


async def ask_to_authorize(url: str) -> None:
    say({"authorize": url})


async def hear_callback() -> AuthorizationCodeResult:
    callback = (await hear())["callback"]
    answer = {name: values[0] for name, values in parse_qs(urlsplit(callback).query).items()}
    if "error" in answer:
        raise RuntimeError(answer["error"])
    return AuthorizationCodeResult(code=answer["code"], state=answer.get("state"), iss=answer.get("iss"))


async def open_client(stack: AsyncExitStack, url: str, state_file: Path) -> Client:
    metadata = OAuthClientMetadata.model_validate(
        {"client_name": "Python test host", "redirect_uris": [REDIRECT_URI]}
    )
    provider = OAuthClientProvider(url, metadata, FileStorage(state_file), ask_to_authorize, hear_callback)
    http = await stack.enter_async_context(httpx2.AsyncClient(auth=provider, timeout=30))
    return await stack.enter_async_context(Client(streamable_http_client(url, http_client=http)))


async def main(url: str, state_file: Path) -> None:
    async with AsyncExitStack() as stack:
        client: Client | None = None
        while (request := await hear())["do"] != "close":
            try:
                if request["do"] == "connect":
                    client = await open_client(stack, url, state_file)
                    say({"ok": client.server_info and client.server_info.model_dump(mode="json")})
                    continue
                assert client is not None
                result: Any
                if request["do"] == "tools":
                    result = [
                        tool.model_dump(mode="json", by_alias=True, exclude_none=True)
                        for tool in (await client.list_tools()).tools
                    ]
                else:
                    called = await client.call_tool(request["name"], request["arguments"])
                    result = called.model_dump(mode="json", by_alias=True, exclude_none=True)
                say({"ok": result})
            except Exception as error:  # noqa: BLE001 - the driver reports whatever the SDK raises
                say({"error": repr(error)})
    say({"ok": None})


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], Path(sys.argv[2])))
