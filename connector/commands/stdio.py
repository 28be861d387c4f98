"""`vademecum stdio`: the tools over standard input and output, for clients without remote servers."""

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from connector import logs, remote
from connector import stdio as bridge
from connector.app import SCOPES
from connector.commands.output import OwnerOption, check_names, chosen_owner, open_installation
from store.errors import StoreError

TokenFile = Annotated[
    Path | None,
    typer.Option("--token-file", help="A personal token; otherwise VADEMECUM_TOKEN. - reads standard input."),
]


def stdio(
    url: Annotated[
        str | None, typer.Argument(help="A server's address; otherwise this machine's own memories.")
    ] = None,
    token_file: TokenFile = None,
    scope: Annotated[
        list[str] | None, typer.Option("--scope", help="What the client may do here; may be repeated.")
    ] = None,
    owner: OwnerOption = None,
) -> None:
    """Bridge a client that can only start a program: MCP on standard input and output.

    Without an address the tools work on this machine's own memories, beside a running server. With one, every
    call goes there with a personal token.
    """
    if url is not None:
        if str(token_file) == "-":
            raise StoreError("invalid_argument", "standard input carries MCP here; name a file for the token")
        token = remote.personal_token(token_file)
        logs.configure("warning")
        asyncio.run(bridge.serve_remote(remote.resource(url), token))
        return
    parts = open_installation()
    logs.configure(parts.settings.log_level)
    check_names("scope", scope, SCOPES.supported)
    subject = chosen_owner(parts, owner)
    asyncio.run(bridge.serve_local(parts, subject, frozenset(scope or SCOPES.default)))
