"""`vademecum spaces`: separate shelves of one owner's memories."""

from typing import Annotated

import typer

from connector.commands.output import (
    Json,
    OwnerOption,
    chosen_owner,
    chosen_space,
    open_installation,
    print_json,
)
from connector.tools.dates import rfc3339
from store.errors import StoreError
from store.memory import Space
from store.spaces import check_name

app = typer.Typer(help="Separate shelves of memories.", no_args_is_help=True)

SpaceArgument = Annotated[str, typer.Argument(help="The space's name or id.")]


@app.command("list")
def list_spaces(owner: OwnerOption = None, json: Json = False) -> None:
    """List the spaces, oldest first, with how much each holds."""
    parts = open_installation()
    subject = chosen_owner(parts, owner)
    listed = [
        _describe(space) | {"memories": sum(parts.engine.status(subject, [space.id]).counts.values())}
        for space in parts.engine.spaces(subject)
    ]
    if json:
        print_json(listed)
        return
    for row in listed:
        typer.echo(f"{row['id']}  {row['name']}  {row['memories']} memories")


@app.command("add")
def add(
    name: Annotated[str, typer.Argument(help="What it is called.")],
    owner: OwnerOption = None,
    json: Json = False,
) -> None:
    """Add a space."""
    parts = open_installation()
    _show(parts.engine.memories.add_space(chosen_owner(parts, owner), check_name(name)), json)


@app.command("rename")
def rename(
    space: SpaceArgument,
    name: Annotated[str, typer.Argument(help="What it is called from now on.")],
    owner: OwnerOption = None,
    json: Json = False,
) -> None:
    """Rename a space; its id and its memories stay."""
    parts = open_installation()
    subject = chosen_owner(parts, owner)
    chosen = chosen_space(parts, subject, space)
    _show(parts.engine.memories.rename_space(subject, chosen.id, check_name(name)), json)


@app.command("delete")
def delete(
    space: SpaceArgument,
    confirm: Annotated[str | None, typer.Option("--confirm", help="The space's name again.")] = None,
    owner: OwnerOption = None,
) -> None:
    """Delete a space and everything in it, for good.

    Memories that were forgotten in it, its documents and its turns of conversations go too.
    """
    parts = open_installation()
    subject = chosen_owner(parts, owner)
    chosen = chosen_space(parts, subject, space)
    count = sum(parts.engine.status(subject, [chosen.id]).counts.values())
    if confirm != chosen.name:
        raise StoreError(
            "invalid_argument",
            f"{chosen.name} holds {count} memories: --confirm {chosen.name!r} deletes it with them for good",
        )
    parts.engine.memories.delete_space(subject, chosen.id)


def _show(space: Space, json: bool) -> None:
    if json:
        print_json(_describe(space))
    else:
        typer.echo(f"{space.id}  {space.name}")


def _describe(space: Space) -> dict[str, str]:
    return {"id": space.id, "name": space.name, "created_at": rfc3339(space.created_at)}
