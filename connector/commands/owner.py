"""`vademecum owner`: who owns the memories, and how they sign in."""

import getpass
import sys

import typer

from connector.commands.output import Json, OwnerOption, chosen_owner, open_installation, print_json
from connector.identity.setup import issue_setup_link, set_passphrase
from connector.tools.dates import rfc3339
from store.errors import StoreError

app = typer.Typer(help="Who owns the memories, and how they sign in.", no_args_is_help=True)


@app.command("passphrase")
def passphrase(owner: OwnerOption = None) -> None:
    """Set the owner's passphrase, read from standard input; makes the first owner when there is none."""
    parts = open_installation()
    subject = chosen_owner(parts, owner) if owner or parts.owners.list() else None
    if sys.stdin.isatty():
        given = getpass.getpass("New passphrase: ")
        if getpass.getpass("The same once more: ") != given:
            raise StoreError("invalid_argument", "the two differ; nothing was changed")
    else:
        given = sys.stdin.readline().rstrip("\r\n")
    set_passphrase(parts.identity, subject, given)
    typer.echo("The passphrase is set.", err=True)


@app.command("setup-link")
def setup_link(owner: OwnerOption = None) -> None:
    """Print a link that sets a passphrase once, within 24 hours."""
    parts = open_installation()
    subject = chosen_owner(parts, owner) if owner or parts.owners.list() else None
    typer.echo(issue_setup_link(parts.identity, subject, parts.settings.public_url))


@app.command("list")
def list_owners(json: Json = False) -> None:
    """List the owners."""
    owners = [
        {"id": owner.id, "account": owner.label, "created_at": rfc3339(owner.created_at)}
        for owner in open_installation().owners.list()
    ]
    if json:
        print_json(owners)
    else:
        for row in owners:
            typer.echo(f"{row['id']}  {row['account']}  since {row['created_at']}")
