"""`vademecum smoke`: the whole journey on a real server, with a personal token."""

import asyncio
from dataclasses import asdict
from typing import Annotated

import typer

from connector import remote
from connector.commands.output import Json, print_json
from connector.commands.stdio import TokenFile
from connector.smoke import Step, journey


def smoke(
    url: Annotated[str, typer.Argument(help="A server's address.")],
    token_file: TokenFile = None,
    read_only: Annotated[bool, typer.Option("--read-only", help="Change nothing there.")] = False,
    json: Json = False,
) -> None:
    """Save, find, read and forget a memory on a server, as a client does; exit 1 when a step fails.

    The token comes from VADEMECUM_TOKEN, or from a file: `vademecum tokens add` makes one.
    """
    token, address = remote.personal_token(token_file), remote.resource(url)
    steps = list[Step]()

    def done(step: Step) -> None:
        steps.append(step)
        if not json:
            said = f": {step.said}" if step.said else ""
            typer.echo(f"{'ok    ' if step.is_ok else 'FAILED'}  {step.name}  {step.elapsed_ms} ms{said}")

    asyncio.run(journey(address, token, read_only, done))
    if json:
        print_json({"ok": all(step.is_ok for step in steps), "steps": [asdict(step) for step in steps]})
    if not all(step.is_ok for step in steps):
        raise typer.Exit(1)
