"""The command line: what an owner can do on a page, he can do by command, on the same store and engine."""

import sys
from importlib.metadata import version as installed
from typing import Annotated, NoReturn

import typer

from connector.commands import (
    backup,
    clients,
    doctor,
    evaluate,
    exports,
    ingest,
    install,
    keys,
    memories,
    owner,
    reindex,
    serve,
    smoke,
    spaces,
    stdio,
    support,
    tokens,
)
from connector.settings import SettingsError
from oauth.keys import UnreadableKeys
from store.errors import StoreError

app = typer.Typer(
    name="vademecum",
    help="One memory that follows a person from assistant to assistant, on a server they own.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)
app.command("serve")(serve.serve)
app.command("save")(memories.save)
app.command("search")(memories.search)
app.command("import")(memories.import_file)
app.command("ingest")(ingest.ingest)
app.command("export")(exports.export)
app.command("reindex")(reindex.reindex)
app.command("doctor")(doctor.doctor)
app.command("smoke")(smoke.smoke)
app.command("install")(install.install)
app.command("stdio")(stdio.stdio)
app.command("restore")(backup.restore)
app.add_typer(backup.app, name="backup")
app.command("support")(support.support)
app.add_typer(owner.app, name="owner")
app.add_typer(spaces.app, name="spaces")
app.add_typer(clients.app, name="clients")
app.add_typer(tokens.app, name="tokens")
app.add_typer(keys.app, name="keys")
app.add_typer(evaluate.app, name="eval")


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(installed("vademecum"))
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option("--version", help="Print the version and exit.", callback=_print_version, is_eager=True),
    ] = False,
) -> None:
    """What every command takes."""


def main() -> NoReturn:
    """Runs a command; expected failures end with one clear line each on standard error and exit 1."""
    try:
        app()
    except SettingsError as error:
        for problem in error.problems:
            typer.echo(f"vademecum: {problem}", err=True)
    except UnreadableKeys as error:
        typer.echo(f"vademecum: {error}", err=True)
    except StoreError as error:
        typer.echo(f"vademecum: {error.message}", err=True)
    sys.exit(1)
