"""`vademecum ingest`: documents from a file or a folder."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import Progress

from connector.commands.memories import APP
from connector.commands.output import (
    Json,
    OwnerOption,
    SpaceOption,
    chosen_owner,
    chosen_space,
    open_installation,
    print_json,
)
from store import chunks, documents
from store.documents import DocumentDraft
from store.errors import StoreError
from store.memory import Source

SUFFIXES = frozenset({".md", ".markdown", ".txt"})


def ingest(
    path: Annotated[Path, typer.Argument(help="A file, or a folder of Markdown and text files.")],
    owner: OwnerOption = None,
    space: SpaceOption = None,
    json: Json = False,
) -> None:
    """Store documents, each split at its headings and found by searching.

    A file is known again by its path: unchanged it is skipped, changed it replaces its last version. In a
    folder, hidden files and links are left out. A file that cannot be stored is named, and the others go on.
    """
    files = find_files(path)
    parts = open_installation()
    subject = chosen_owner(parts, owner)
    shelf = chosen_space(parts, subject, space).id
    counts = {"created": 0, "updated": 0, "unchanged": 0}
    problems: dict[str, str] = {}
    console = Console(stderr=True)
    with Progress(console=console, disable=not console.is_terminal) as progress:
        task = progress.add_task("Ingesting", total=len(files))
        for file in files:
            try:
                ingested = documents.ingest(parts.engine, subject, shelf, APP, read(file), is_patient=True)
                counts[ingested.write_status] += 1
            except StoreError as error:
                problems[str(file)] = error.message
            progress.update(task, advance=1)
    if json:
        print_json(counts | {"failed": problems})
    else:
        typer.echo(", ".join(f"{count} {status}" for status, count in counts.items()))
    for name, problem in problems.items():
        typer.echo(f"vademecum: {name}: {problem}", err=True)
    if problems:
        sys.exit(1)


def find_files(path: Path) -> list[Path]:
    """The file itself, or the folder's documents in order of their names.

    Raises:
        StoreError: `not_found` when there is nothing to ingest.
    """
    if path.is_file():
        return [path.resolve()]
    if not path.is_dir():
        raise StoreError("not_found", f"{path} is neither a file nor a folder")
    files = sorted(_documents(path.resolve()))
    if not files:
        raise StoreError("not_found", f"{path} holds no {', '.join(sorted(SUFFIXES))} files")
    return files


def _documents(folder: Path) -> Iterator[Path]:
    for entry in folder.iterdir():
        if entry.name.startswith(".") or entry.is_symlink():
            continue
        if entry.is_dir():
            yield from _documents(entry)
        elif entry.suffix.lower() in SUFFIXES:
            yield entry


def read(file: Path) -> DocumentDraft:
    """The file as a document, under its first heading or its name.

    Raises:
        StoreError: `invalid_argument` for what cannot be read as UTF-8; `too_large`.
    """
    try:
        if file.stat().st_size > documents.MAX_DOCUMENT_BYTES:
            raise StoreError("too_large", f"larger than {documents.MAX_DOCUMENT_BYTES} bytes")
        content = file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise StoreError("invalid_argument", "not UTF-8 text") from error
    except OSError as error:
        raise StoreError("invalid_argument", f"cannot be read: {error.strerror}") from error
    title = chunks.first_heading(content) or file.stem
    source = Source(origin="import", client_name="command line", url=file.as_uri(), external_id=str(file))
    return DocumentDraft(title[: documents.MAX_TITLE_CHARACTERS], content, source)
