"""`vademecum save`, `search` and `import`: memories from the terminal."""

import contextlib
import hashlib
import json as json_module
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Annotated, Any

import typer
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from rich.console import Console
from rich.progress import Progress

from connector.commands import exports
from connector.commands.output import (
    Json,
    OwnerOption,
    SpaceOption,
    chosen_owner,
    chosen_space,
    open_installation,
    print_json,
    printable,
)
from connector.tools.dates import From
from connector.tools.filters import Tags, Topic
from connector.tools.saving import Reference
from connector.tools.shapes import item, match
from connector.tools.tool import describe
from store import archive
from store.draft import check
from store.errors import StoreError
from store.memory import Draft, Filters, Kind, Source

APP = "cli"
BATCH = 64
MAX_PROBLEMS = 20


def save(
    content: Annotated[str, typer.Argument(help="The text; - reads standard input.")],
    topic: Annotated[str, typer.Option(help="Groups memories.")] = "general",
    tag: Annotated[list[str] | None, typer.Option(help="May be repeated.")] = None,
    owner: OwnerOption = None,
    space: SpaceOption = None,
    json: Json = False,
) -> None:
    """Save one memory."""
    parts = open_installation()
    subject = chosen_owner(parts, owner)
    draft = Draft(
        content=sys.stdin.read() if content == "-" else content,
        topic=topic,
        tags=tuple(tag or ()),
        source=Source(origin="user", client_name="command line"),
    )
    saved = parts.engine.save(subject, chosen_space(parts, subject, space).id, APP, draft)
    if json:
        print_json({"item": item(saved.memory), "write_status": saved.write_status, "indexed": saved.indexed})
    else:
        typer.echo(f"{saved.write_status}: {saved.memory.id}")


def search(
    query: Annotated[str, typer.Argument(help="Any text, taken literally.")],
    limit: Annotated[int, typer.Option(min=1, max=50)] = 5,
    topic: Annotated[str | None, typer.Option(help="Only this topic.")] = None,
    explain: Annotated[bool, typer.Option(help="Show the parts of each score.")] = False,
    owner: OwnerOption = None,
    space: SpaceOption = None,
    json: Json = False,
) -> None:
    """Search memories by meaning and by their words."""
    parts = open_installation()
    subject = chosen_owner(parts, owner)
    shelf = chosen_space(parts, subject, space)
    hits = parts.engine.search(subject, shelf.id, query, Filters(topic=topic), limit, explain=explain)
    if json:
        print_json({"matches": [match(hit) for hit in hits]})
        return
    for hit in hits:
        typer.echo(f"{hit.score:.2f}  {hit.memory.id}  {printable(hit.summary)}")
        for part, value in hit.parts.items():
            typer.echo(f"      {part}: {value:.3f}")
    if not hits:
        typer.echo(f"Nothing found in the space {shelf.name}.", err=True)


class Row(BaseModel):
    """One line of an import. `type` (rows other than `memory` are left out) and `id` are ignored."""

    model_config = ConfigDict(extra="forbid")

    content: str
    topic: Topic = "general"
    kind: Kind = "note"
    tags: Tags = ()
    created_at: From = None
    external_id: Reference | None = None
    type: str = "memory"
    id: Any = Field(None, exclude=True)

    def draft(self) -> Draft:
        """The memory; a row without an `external_id` is known again by its own content."""
        described = self.model_dump_json(exclude={"external_id"}).encode()
        external_id = self.external_id or "sha256:" + hashlib.sha256(described).hexdigest()
        return Draft(
            content=self.content,
            topic=self.topic,
            kind=self.kind,
            tags=self.tags,
            created_at=self.created_at,
            source=Source(origin="import", external_id=external_id),
        )


def import_file(
    file: Annotated[Path, typer.Argument(help="JSON lines, or an export; - reads standard input.")],
    owner: OwnerOption = None,
    space: SpaceOption = None,
    json: Json = False,
) -> None:
    """Import what `export` wrote, or memories from JSON lines.

    An export is taken over whole, with ids, states, revisions and spaces.

    Each line is an object with `content` and optionally `topic`, `kind`, `tags`, `created_at` and
    `external_id`. The whole file is checked before anything is written. Running it again adds nothing twice,
    so an import that was interrupted is resumed by repeating it.
    """
    with _opened(file) as given:
        is_export = archive.is_export(given.readline())
        given.seek(0)
        if is_export:
            if space is not None:
                raise StoreError("invalid_argument", "an export brings its own spaces; leave --space out")
            parts = open_installation()
            exports.load(parts, chosen_owner(parts, owner), given, json)
            return
        drafts = read_rows(file, given)
    parts = open_installation()
    subject = chosen_owner(parts, owner)
    shelf = chosen_space(parts, subject, space)
    counts = {"created": 0, "updated": 0, "duplicate": 0}
    console = Console(stderr=True)
    with Progress(console=console, disable=not console.is_terminal) as progress:
        task = progress.add_task("Importing", total=len(drafts))
        for start in range(0, len(drafts), BATCH):
            batch = drafts[start : start + BATCH]
            for saved in parts.engine.import_many(subject, shelf.id, APP, batch):
                counts[saved.write_status] += 1
            progress.update(task, advance=len(batch))
    if json:
        print_json(counts)
    else:
        typer.echo(", ".join(f"{count} {status}" for status, count in counts.items()))


@contextlib.contextmanager
def _opened(file: Path) -> Iterator[IO[bytes]]:
    """The file, or standard input on disk, so that both can be read twice."""
    try:
        with tempfile.TemporaryFile() if str(file) == "-" else file.open("rb") as opened:
            if str(file) == "-":
                shutil.copyfileobj(sys.stdin.buffer, opened)
                opened.seek(0)
            yield opened
    except OSError as error:
        raise StoreError("invalid_argument", f"{file} cannot be read: {error}") from error


def read_rows(file: Path, given: IO[bytes]) -> list[Draft]:
    """Every memory of the file, checked.

    Raises:
        StoreError: `invalid_argument`, naming the lines that are wrong and why.
    """
    drafts, problems = [], []
    for number, line in _lines(file, given):
        try:
            row = Row.model_validate(json_module.loads(line))
            if row.type == "memory":
                drafts.append(check(row.draft()))
        except ValidationError as error:
            problems.append(f"line {number}: {describe(error)}")
        except StoreError as error:
            problems.append(f"line {number}: {error.message}")
        except (ValueError, RecursionError):
            problems.append(f"line {number}: not JSON")
    if problems:
        more = f"\nand {len(problems) - MAX_PROBLEMS} more lines" if len(problems) > MAX_PROBLEMS else ""
        listed = "\n".join(problems[:MAX_PROBLEMS])
        raise StoreError("invalid_argument", f"nothing was imported:\n{listed}{more}")
    return drafts


def _lines(file: Path, given: IO[bytes]) -> Iterator[tuple[int, str]]:
    """Only line feeds end a line: JSON may hold the other separators of Unicode as they are."""
    try:
        text = given.read().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise StoreError("invalid_argument", f"{file} cannot be read: {error}") from error
    yield from ((number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip())
