"""`vademecum owner`: who owns the memories, and how they sign in."""

import getpass
import sys
from typing import Annotated, Any

import typer

from connector.app import Vademecum
from connector.commands.output import (
    Json,
    OwnerOption,
    chosen_owner,
    open_installation,
    print_json,
    printable,
)
from connector.identity import passphrase as passphrases
from connector.identity.admission import NotAdmitted
from connector.identity.credentials import Credentials
from connector.identity.ending import end_access
from connector.identity.firebase import FirebaseProvider
from connector.identity.oidc import OidcProvider
from connector.identity.provider import Identity
from connector.identity.setup import set_passphrase
from connector.identity.setup_links import SetupLink, SetupLinks
from connector.tools.dates import rfc3339
from store.errors import StoreError
from store.owners import Owner

app = typer.Typer(help="Who owns the memories, and how they sign in.", no_args_is_help=True)

OwnerArgument = Annotated[str, typer.Argument(help="An owner's id, from `owner list`.")]
UidOption = Annotated[
    str | None,
    typer.Option("--uid", help="The account's id at the provider: Firebase's uid, OpenID Connect's sub."),
]


@app.command("passphrase")
def passphrase(owner: OwnerOption = None) -> None:
    """Set the owner's passphrase, read from standard input; makes the first owner when there is none."""
    parts = open_installation()
    subject = _owner_or_first(parts, owner)
    if sys.stdin.isatty():
        given = getpass.getpass("New passphrase: ")
        if getpass.getpass("The same once more: ") != given:
            raise StoreError("invalid_argument", "the two differ; nothing was changed")
    else:
        given = sys.stdin.readline().rstrip("\r\n")
    set_passphrase(parts.passphrases, subject, given)
    typer.echo("The passphrase is set.", err=True)


@app.command("setup-link")
def setup_link(owner: OwnerOption = None) -> None:
    """Print a link by which the owner gets a passphrase or a further account, once, within 24 hours."""
    parts = open_installation()
    _print_link(parts, SetupLink(owner=_owner_or_first(parts, owner) or ""))


@app.command("add")
def add(
    name: Annotated[str, typer.Argument(help="What the new owner is called.")],
    uid: UidOption = None,
    json: Json = False,
) -> None:
    """Let somebody have memories of their own here: print their setup link, or add an account by its uid."""
    parts = open_installation()
    label = printable(name).strip()
    if not label:
        raise StoreError("invalid_argument", "the name is empty")
    if uid is None:
        _print_link(parts, SetupLink(new_owner=label), json=json)
        return
    identity = _account(parts, uid)
    if parts.owners.find(identity.provider, identity.issuer, identity.subject) is not None:
        raise StoreError("conflict", "this account signs in as an owner already")
    _print_owner(parts, parts.admission.create(identity, label), json=json)


@app.command("link")
def link(owner: OwnerOption = None, uid: UidOption = None, json: Json = False) -> None:
    """Let a further account open the owner's memories: by its uid, or by a link to open."""
    parts = open_installation()
    subject = chosen_owner(parts, owner)
    _refuse_removed(parts, subject)
    if uid is None:
        _print_link(parts, SetupLink(owner=subject), json=json)
        return
    try:
        linked = parts.admission.link(_account(parts, uid), subject)
    except NotAdmitted:
        raise StoreError("conflict", "this account signs in as another owner") from None
    _print_owner(parts, linked, json=json)


@app.command("remove")
def remove(owner: OwnerArgument) -> None:
    """Keep an owner out: sessions, apps and personal tokens end at once. The memories stay until deleted."""
    parts = open_installation()
    subject = chosen_owner(parts, owner)
    # First the door, then those inside: nobody comes back in between.
    parts.admission.remove(subject)
    parts.records.delete(passphrases.KIND, subject)
    Credentials(parts.records, parts.state_key, parts.now).forget(subject)
    end_access(parts.authorization_server, subject)
    typer.echo("The owner was removed; `vademecum owner readmit` takes it back.", err=True)


@app.command("readmit")
def readmit(owner: OwnerArgument) -> None:
    """Take `owner remove` back; apps connect again, and a passphrase is set anew."""
    parts = open_installation()
    parts.admission.readmit(chosen_owner(parts, owner))


@app.command("list")
def list_owners(json: Json = False) -> None:
    """List the owners and how they sign in."""
    parts = open_installation()
    owners = [_describe(parts, owner) for owner in parts.owners.list()]
    if json:
        print_json(owners)
        return
    for row in owners:
        ways = ", ".join(f"{way['provider']} {printable(way['account'])}" for way in row["identities"])
        removed = "  removed" if row["removed"] else ""
        typer.echo(f"{row['id']}  {printable(row['account'])}  since {row['created_at']}  {ways}{removed}")


def _owner_or_first(parts: Vademecum, owner: str | None) -> str | None:
    """The chosen owner; None for the first one, while the server belongs to nobody."""
    if owner is None and not parts.admission.has_owner():
        return None
    if owner is None:
        live = [each.id for each in parts.owners.list() if not parts.admission.is_removed(each.id)]
        owner = live[0] if len(live) == 1 else None
    subject = chosen_owner(parts, owner)
    _refuse_removed(parts, subject)
    return subject


def _refuse_removed(parts: Vademecum, owner: str) -> None:
    if parts.admission.is_removed(owner):
        raise StoreError("conflict", "this owner was removed; run `vademecum owner readmit` first")


def _account(parts: Vademecum, uid: str) -> Identity:
    """The account of this id at the configured provider."""
    provider = parts.identity
    if not isinstance(provider, FirebaseProvider | OidcProvider):
        raise StoreError("invalid_argument", "--uid needs VADEMECUM_IDENTITY to be firebase or oidc")
    if not uid.strip():
        raise StoreError("invalid_argument", "the uid is empty")
    return Identity(provider.name, provider.issuer, uid.strip(), uid.strip())


def _print_link(parts: Vademecum, link: SetupLink, *, json: bool = False) -> None:
    address = SetupLinks(parts.records, parts.now).issue(link, parts.settings.public_url)
    if json:
        print_json({"setup_link": address})
    else:
        typer.echo(address)


def _print_owner(parts: Vademecum, owner: Owner, *, json: bool) -> None:
    if json:
        print_json(_describe(parts, owner))
    else:
        typer.echo(owner.id)


def _describe(parts: Vademecum, owner: Owner) -> dict[str, Any]:
    return {
        "id": owner.id,
        "account": owner.label,
        "created_at": rfc3339(owner.created_at),
        "removed": parts.admission.is_removed(owner.id),
        "identities": [
            {
                "provider": identity.provider,
                "account": identity.label,
                "created_at": rfc3339(identity.created_at),
            }
            for identity in owner.identities
        ],
    }
