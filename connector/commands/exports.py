"""`vademecum export`, and the import of what it wrote: every memory, moved without a loss."""

import contextlib
import os
import sys
import tempfile
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import IO, Annotated, Any

import typer
from rich.console import Console
from rich.progress import Progress

from connector.app import Vademecum
from connector.commands.output import OwnerOption, chosen_owner, open_installation, print_json
from store import archive, archive_markdown
from store.errors import StoreError

MAX_NAMED = 20
EMBED_BATCH = 64


class Format(StrEnum):
    """For a server, or for people."""

    NDJSON = "ndjson"
    MARKDOWN = "markdown"


def export(
    format: Annotated[
        Format, typer.Option("--format", help="ndjson is lossless; markdown is to be read.")
    ] = Format.NDJSON,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="A file; otherwise standard output.")
    ] = None,
    owner: OwnerOption = None,
) -> None:
    """Write every memory of an owner: spaces, ids, states, lineage, revisions, forgotten ones too.

    As Markdown it leaves out what was forgotten and what was said before.
    """
    parts = open_installation()
    subject = chosen_owner(parts, owner)
    lines: Iterator[bytes]
    if format is Format.MARKDOWN:
        lines = (line.encode() for line in archive_markdown.document(parts.archive, subject))
    else:
        lines = archive.export(parts.archive, subject)
    with _destination(output) as file:
        for line in lines:
            file.write(line)


@contextlib.contextmanager
def _destination(output: Path | None) -> Iterator[IO[bytes]]:
    """Standard output, or a file that appears whole and is its owner's alone."""
    if output is None:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    try:
        descriptor, draft = tempfile.mkstemp(prefix=f".{output.name}.", dir=output.parent)
    except OSError as error:
        raise StoreError("invalid_argument", f"{output} cannot be written: {error}") from error
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, output)
    except OSError as error:
        raise StoreError("unavailable", f"{output} cannot be written: {error}") from error
    finally:
        Path(draft).unlink(missing_ok=True)


def load(parts: Vademecum, owner: str, file: IO[bytes], json: bool) -> None:
    """Imports an export: the whole file is checked, then stored in batches, then embedded.

    Raises:
        StoreError: nothing was imported, or some memories could not be; the rest is on disk.
    """
    census = archive.take_census(file, owner)
    console = Console(stderr=True)
    with Progress(console=console, disable=not console.is_terminal) as progress:
        task = progress.add_task("Importing", total=census.rows)
        spaces = parts.archive.put_spaces(owner, census.spaces)
        file.seek(0)
        ids: dict[archive.Fate, list[str]] = {fate: [] for fate in archive.FATES}
        for batch in archive.load(parts.engine, parts.archive, owner, file, spaces):
            for memory, fate in batch:
                ids[fate].append(memory)
            progress.update(task, advance=len(batch))
        _embed(parts, progress, len(ids["created"]))
    counts: dict[str, Any] = {fate: len(found) for fate, found in ids.items()}
    if json:
        print_json(counts | {"different_ids": ids["different"], "conflict_ids": ids["conflict"]})
    else:
        typer.echo(", ".join(f"{count} {fate}" for fate, count in counts.items()))
    left = ids["different"] + ids["conflict"]
    if left:
        named = ", ".join(left[:MAX_NAMED]) + (" and more" if len(left) > MAX_NAMED else "")
        raise StoreError(
            "conflict",
            f"{len(left)} memories were left out, for what is here says something else or has their "
            f"external_id: {named}",
        )


def _embed(parts: Vademecum, progress: Progress, owed: int) -> None:
    """Interrupted, the server goes on with it."""
    task = progress.add_task("Embedding", total=owed)
    try:
        while embedded := parts.engine.index_pending(EMBED_BATCH):
            progress.update(task, advance=embedded)
    except StoreError as error:
        typer.echo(f"Saved, but not embedded yet; the server will do it: {error.message}", err=True)
