"""`vademecum backup` and `restore`: everything in one verified file, and back, here or on another machine."""

from datetime import timedelta
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

import typer

from connector import restoring, state_key
from connector.app import Vademecum
from connector.commands.output import Json, open_installation, print_json, working
from connector.tools.dates import rfc3339
from store import backup
from store.errors import StoreError

app = typer.Typer(help="Back everything up into one verified file; list and delete such files.")

DIRECTORY = "backups"
KEEP = 14
Directory = Annotated[
    Path | None,
    typer.Option("--directory", help="Where backups lie; otherwise `backups` in the state directory."),
]


@app.callback(invoke_without_command=True)
def create(
    context: typer.Context,
    portable: Annotated[
        bool,
        typer.Option("--portable", help="Leave out the vectors, which are computed anew after a restore."),
    ] = False,
    with_key: Annotated[
        bool, typer.Option("--with-key", help="Put the state key inside; who holds the file can act as you.")
    ] = False,
    keep: Annotated[
        int, typer.Option(min=1, help="How many of this kind stay; older ones are deleted.")
    ] = KEEP,
    keep_days: Annotated[
        int | None, typer.Option(min=1, help="Delete what is older than so many days, but never the last.")
    ] = None,
    directory: Directory = None,
    json: Json = False,
) -> None:
    """Back everything up while the server runs: one moment, checked, summed, and read again."""
    if context.invoked_subcommand is not None:
        return
    parts = open_installation()
    where = _directory(parts, directory)
    key = parts.present_state_key
    if with_key and key is None:
        raise StoreError("not_found", "there is no state key yet to put inside")
    with working("Backing up"):
        made = backup.create(
            parts.backup_backend,
            where,
            "portable" if portable else "full",
            parts.now(),
            version("vademecum"),
            None if key is None else state_key.key_id(key),
            key if with_key else None,
        )
    max_age = None if keep_days is None else timedelta(days=keep_days)
    deleted = backup.rotate(where, keep, max_age, parts.now())
    if json:
        print_json(_describe(made) | {"deleted": [str(path) for path in deleted]})
        return
    typer.echo(made.path)
    for path in deleted:
        typer.echo(f"deleted {path}", err=True)
    if not with_key:
        typer.echo("The state key is not inside; keep a copy of it apart.", err=True)


@app.command("list")
def list_backups(directory: Directory = None, json: Json = False) -> None:
    """List the backups, newest first."""
    found = [_describe(each) for each in backup.listed(_directory(open_installation(), directory))]
    if json:
        print_json(found)
        return
    for row in found:
        said = f"{row['kind']}, {row['memories']} memories" if row["is_readable"] else "cannot be read"
        typer.echo(f"{row['file']}  {row['bytes']} bytes  {said}")


@app.command("delete")
def delete(
    name: Annotated[str, typer.Argument(help="A file of `backup list`.")],
    directory: Directory = None,
    json: Json = False,
) -> None:
    """Delete a backup."""
    path = backup.delete(_directory(open_installation(), directory), name)
    if json:
        print_json({"deleted": str(path)})


def restore(
    file: Annotated[Path, typer.Argument(help="A file that `backup` made.")],
    apply: Annotated[bool, typer.Option("--apply", help="Do it; otherwise it is only tried.")] = False,
    force: Annotated[
        bool,
        typer.Option("--force", help="Also when many memories would be lost, or the state key is another."),
    ] = False,
    json: Json = False,
) -> None:
    """Check a backup and say what restoring it would change; with --apply put it in place.

    Refused while a server runs, when anything in the file is not what its manifest says, when it is of a
    newer schema, and, unless forced, when more than a tenth of the memories here would be lost. What was here
    is kept.
    """
    parts = open_installation()
    parts.make_state_dir()
    with working("Reading the backup"):
        outcome = restoring.restore(parts, file, apply, force)
    if json:
        print_json(outcome.as_json())
    else:
        for line in outcome.lines():
            typer.echo(line)
    if outcome.obstacles and not outcome.is_applied:
        raise typer.Exit(1)


def _directory(parts: Vademecum, directory: Path | None) -> Path:
    return (directory or parts.settings.state_dir / DIRECTORY).expanduser().absolute()


def _describe(found: backup.Found) -> dict[str, Any]:
    manifest = found.manifest
    described: dict[str, Any] = {
        "file": str(found.path),
        "bytes": found.bytes,
        "is_readable": manifest is not None,
    }
    if manifest is None:
        return described
    return described | {
        "kind": manifest.kind,
        "engine": manifest.engine,
        "created_at": rfc3339(manifest.created_at),
        "memories": manifest.snapshot.memories,
        "has_state_key": backup.KEY in manifest.files,
    }
