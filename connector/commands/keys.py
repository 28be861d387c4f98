"""`vademecum keys`: the keys that sign access tokens."""

from typing import Annotated

import typer

from connector.commands.output import Json, open_installation, print_json
from oauth import grants, keys

app = typer.Typer(help="The keys that sign access tokens.", no_args_is_help=True)


@app.callback()
def _group() -> None:
    """Keeps `keys rotate` a subcommand while it is the only one."""


@app.command("rotate")
def rotate(
    emergency: Annotated[
        bool, typer.Option("--emergency", help="End every connection and token, within seconds.")
    ] = False,
    json: Json = False,
) -> None:
    """Bring a new signing key; nobody is signed out.

    It is published at once, signs after a minute, and the old one counts until its last token has expired.
    With --emergency, for a stolen database and state key, everything that was ever issued ends instead.
    """
    server = open_installation().authorization_server
    if emergency:
        ended = grants.end_all(server)
        if json:
            print_json({"ended": ended})
        else:
            typer.echo(f"{ended} connections and tokens ended; every app must be connected anew.")
        return
    kid = keys.rotate(server)
    if json:
        print_json({"kid": kid})
    else:
        typer.echo(kid)
