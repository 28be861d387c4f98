"""`vademecum install`: enters this memory in a client's own configuration."""

import os
import shutil
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from connector.app import utc_now
from connector.client_configs import CLIENTS, ClientConfig
from connector.commands.output import Json, print_json
from connector.config_files import edit, write
from connector.settings import Settings
from store.errors import StoreError

NAMES = ", ".join(CLIENTS)


def install(
    client: Annotated[str, typer.Argument(help=f"One of {NAMES}.")],
    url: Annotated[
        str | None, typer.Option("--url", help="The memory's address; otherwise this installation's.")
    ] = None,
    token_file: Annotated[
        Path | None,
        typer.Option(
            "--token-file", help="A personal token for `stdio`, where a client knows no remote servers."
        ),
    ] = None,
    stdio: Annotated[
        bool, typer.Option("--stdio", help="Enter the bridge `vademecum stdio` instead of the address.")
    ] = False,
    file: Annotated[
        Path | None, typer.Option("--file", help="Its configuration, when it lies elsewhere.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would change.")] = False,
    json: Json = False,
) -> None:
    """Enter this memory in a client's configuration; running it again repairs the entry.

    One entry is merged and the rest of the file stays as it was. The old file is kept beside the new one. A
    file that does not parse, or that has comments which would be lost, is left alone.
    """
    config = CLIENTS.get(client)
    if config is None:
        raise StoreError("invalid_argument", f"no client {client}; there are: {NAMES}")
    entry = _entry(config, url, token_file, stdio)
    change = edit(config, file or config.path(os.environ), entry)
    kept = write(change, utc_now()) if change.is_needed and not dry_run else None
    if json:
        described: dict[str, Any] = {
            "client": client,
            "file": str(change.path),
            "changed": change.is_needed,
        }
        print_json(described | {"kept": kept and str(kept), "diff": change.diff(), "applied": not dry_run})
        return
    if dry_run:
        typer.echo(change.diff(), nl=False)
        return
    typer.echo(f"{config.title}: {change.path} {'written' if change.is_needed else 'is as it should be'}")
    if kept is not None:
        typer.echo(f"What was there is kept as {kept}")
    typer.echo(config.next_step)


def _entry(config: ClientConfig, url: str | None, token_file: Path | None, stdio: bool) -> dict[str, Any]:
    if config.entry is not None and not stdio and token_file is None:
        return config.entry(url or Settings.from_env().resource)
    arguments = ["stdio"]
    environment: dict[str, str] = {}
    if url is not None:
        if token_file is None:
            said = "`vademecum stdio` needs a token for another server: make one there with `vademecum tokens"
            raise StoreError("invalid_argument", f"{said} add`, and name its file with --token-file")
        arguments += [url, "--token-file", str(token_file.expanduser().absolute())]
    else:
        environment = {"VADEMECUM_STATE_DIR": str(Settings.from_env().state_dir)}
    entry: dict[str, Any] = {"command": _program(), "args": arguments}
    return entry | ({"env": environment} if environment else {})


def _program() -> str:
    """Clients start it without a shell: its whole path."""
    beside = Path(sys.executable).with_name("vademecum")
    return str(beside) if beside.exists() else shutil.which("vademecum") or "vademecum"
