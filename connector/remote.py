"""A server reached with a personal access token: the token, and a client of the MCP SDK that bears it."""

import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from connector.settings import CLIENT_TOKEN, is_loopback
from store.errors import StoreError

TIMEOUT_SECONDS = 60


def personal_token(file: Path | None) -> str:
    """The token from the file, from standard input when that is `-`, or from the environment.

    Raises:
        StoreError: `invalid_argument`, there is none.
    """
    try:
        if file is not None:
            token = sys.stdin.readline() if str(file) == "-" else file.read_text(encoding="utf-8")
        else:
            token = os.environ.get(CLIENT_TOKEN, "")
    except (OSError, UnicodeDecodeError) as error:
        raise StoreError("invalid_argument", f"the token cannot be read from {file}: {error}") from error
    token = token.strip()
    if not token.isascii() or not token.isprintable() or not token or " " in token:
        raise StoreError(
            "invalid_argument",
            f"no token: set {CLIENT_TOKEN}, or name a file with --token-file (- for stdin)",
        )
    return token


def resource(url: str) -> str:
    """The MCP address of what the person typed.

    Raises:
        StoreError: `invalid_argument`; a token goes only where nobody listens in.
    """
    parts = urlsplit(url)
    is_private = parts.scheme == "https" or (parts.scheme == "http" and is_loopback(parts.hostname or ""))
    if not is_private:
        raise StoreError("invalid_argument", f"{url} is not https, and a token is sent there: use https")
    return url if parts.path not in ("", "/") else f"{parts.scheme}://{parts.netloc}/mcp"


@asynccontextmanager
async def connected(url: str, token: str) -> AsyncIterator[Client]:
    """A client that has shaken hands.

    Raises:
        ExceptionGroup: whatever the SDK met on the way.
    """
    headers = {"Authorization": f"Bearer {token}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=TIMEOUT_SECONDS, follow_redirects=False) as http,
        Client(streamable_http_client(url, http_client=http)) as client,
    ):
        yield client
