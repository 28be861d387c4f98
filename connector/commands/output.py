"""What the commands share at the terminal: JSON on request, and whose memories are meant."""

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer
from rich.console import Console

from connector.app import Vademecum
from connector.settings import Settings
from store.errors import StoreError
from store.memory import Space

Json = Annotated[bool, typer.Option("--json", help="Print JSON on standard output.")]
OwnerOption = Annotated[
    str | None, typer.Option("--owner", help="An owner's id; needed when there are several.")
]
SpaceOption = Annotated[
    str | None, typer.Option("--space", help="A space's name or id; otherwise the oldest.")
]


def open_installation() -> Vademecum:
    """The installation that the environment describes."""
    return Vademecum(Settings.from_env())


def print_json(value: Any) -> None:
    """One JSON document."""
    typer.echo(json.dumps(value, ensure_ascii=False, indent=2))


def chosen_owner(parts: Vademecum, owner: str | None) -> str:
    """The named owner, or the only one.

    Raises:
        StoreError: no such owner, none at all, or several to choose from.
    """
    ids = [each.id for each in parts.owners.list()]
    if owner is not None:
        if owner not in ids:
            raise StoreError("not_found", f"no owner {owner}; `vademecum owner list` names them")
        return owner
    if not ids:
        raise StoreError("not_found", "nobody owns this server yet: run `vademecum owner passphrase` first")
    if len(ids) > 1:
        raise StoreError("invalid_argument", "several owners: name one with --owner (`vademecum owner list`)")
    return ids[0]


def chosen_space(parts: Vademecum, owner: str, space: str | None) -> Space:
    """The named space, or the owner's oldest.

    Raises:
        StoreError: `not_found`, naming the spaces there are.
    """
    spaces = parts.engine.spaces(owner)
    for each in spaces:
        if space is None or space in (each.id, each.name):
            return each
    names = ", ".join(each.name for each in spaces)
    raise StoreError("not_found", f"no space {space}; there are: {names}")


def check_names(kind: str, given: Iterable[str] | None, known: Iterable[str]) -> None:
    """Whether each name is one that there is.

    Raises:
        StoreError: `invalid_argument`, naming those there are.
    """
    names = [*known]
    unknown = sorted(set(given or ()) - set(names))
    if unknown:
        raise StoreError(
            "invalid_argument", f"no such {kind}: {', '.join(unknown)}; there are: {', '.join(names)}"
        )


@contextmanager
def working(what: str) -> Iterator[None]:
    """Says on a terminal that long work is going on."""
    console = Console(stderr=True)
    if console.is_terminal:
        with console.status(what):
            yield
    else:
        yield


def printable(text: str) -> str:
    """Stored text for a terminal: control characters could retitle it, or write to the clipboard."""
    return "".join(
        character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in text
    )
