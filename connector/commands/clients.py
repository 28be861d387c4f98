"""`vademecum clients`: the apps that the owner let in, and clients registered by hand."""

from dataclasses import asdict, replace
from typing import Annotated, Any, get_args

import typer

from connector.app import Vademecum
from connector.commands.output import (
    Json,
    OwnerOption,
    check_names,
    chosen_owner,
    chosen_space,
    open_installation,
    print_json,
)
from connector.tools import catalogue
from connector.tools.dates import rfc3339
from oauth import grants, registration
from oauth.errors import OAuthError
from oauth.grants import Grant
from store.errors import StoreError
from store.memory import ORIGINS, STATES
from store.profiles import AppProfile, Surface

app = typer.Typer(help="The apps that may use the memories.", no_args_is_help=True)

AUTH_METHODS = ("none", "client_secret_basic", "client_secret_post")

GrantId = Annotated[str, typer.Argument(help="The connection's id, from `clients list`.")]


@app.command("list")
def list_clients(owner: OwnerOption = None, json: Json = False) -> None:
    """List the connected apps with what each may do."""
    parts = open_installation()
    subject = chosen_owner(parts, owner)
    connected = [
        _describe(grant)
        for grant in grants.of_subject(parts.authorization_server, subject)
        if grant.is_redeemed
    ]
    if json:
        print_json(connected)
        return
    for row in connected:
        typer.echo(f"{row['id']}  {row['name']}  {row['scope']}  last used {row['last_used_at']}")


@app.command("add")
def add(
    name: Annotated[str, typer.Argument(help="The name that the consent page shows.")],
    redirect_uri: Annotated[list[str], typer.Option("--redirect-uri", help="May be repeated.")],
    auth_method: Annotated[
        str, typer.Option(help="none, client_secret_basic or client_secret_post.")
    ] = "none",
    json: Json = False,
) -> None:
    """Register a client by hand; a secret is printed once."""
    if auth_method not in AUTH_METHODS:
        raise StoreError("invalid_argument", f"--auth-method is one of {', '.join(AUTH_METHODS)}")
    metadata = {
        "client_name": name,
        "redirect_uris": redirect_uri,
        "token_endpoint_auth_method": auth_method,
    }
    try:
        registered = registration.preregister(open_installation().authorization_server, metadata)
    except OAuthError as error:
        raise StoreError("invalid_argument", error.description) from error
    if json:
        print_json(registered)
        return
    for member in ("client_id", "client_secret"):
        if member in registered:
            typer.echo(f"{member}: {registered[member]}")


@app.command("narrow")
def narrow(
    grant_id: GrantId,
    scope: Annotated[list[str], typer.Option("--scope", help="What it keeps; may be repeated.")],
    owner: OwnerOption = None,
) -> None:
    """Keep only these of an app's permissions; it follows within seconds."""
    parts = open_installation()
    grant = _grant(parts, chosen_owner(parts, owner), grant_id)
    unknown = set(scope) - grant.scopes
    if unknown:
        raise StoreError(
            "invalid_argument", f"it does not have {', '.join(sorted(unknown))}; nothing changed"
        )
    grants.narrow(parts.authorization_server, grant_id, frozenset(scope))


@app.command("profile")
def profile(
    grant_id: GrantId,
    tool: Annotated[list[str] | None, typer.Option("--tool", help="Only these tools.")] = None,
    state: Annotated[list[str] | None, typer.Option("--state", help="Only memories in these states.")] = None,
    space: Annotated[list[str] | None, typer.Option("--space", help="Only these spaces.")] = None,
    origin: Annotated[
        list[str] | None, typer.Option("--origin", help="Only memories of this origin.")
    ] = None,
    surface: Annotated[str | None, typer.Option(help="default or full: the tools it lists.")] = None,
    episodes: Annotated[bool | None, typer.Option(help="Whether it may keep turns of conversations.")] = None,
    reset: Annotated[bool, typer.Option("--reset", help="Take every limit back first.")] = False,
    owner: OwnerOption = None,
    json: Json = False,
) -> None:
    """Show what an app is held to, or change it; it follows within seconds and outlives its login."""
    parts = open_installation()
    subject = chosen_owner(parts, owner)
    client_id = _grant(parts, subject, grant_id).client_id
    check_names("tool", tool, catalogue.TOOLS)
    check_names("state", state, STATES)
    check_names("origin", origin, ORIGINS)
    check_names("surface", surface and [surface], get_args(Surface))
    given: dict[str, Any] = {
        "tools": tool and tuple(tool),
        "states": state and tuple(state),
        "spaces": space and tuple(chosen_space(parts, subject, each).id for each in space),
        "origins": origin and tuple(origin),
        "surface": surface,
        "episodes": episodes,
    }
    changes = {name: value for name, value in given.items() if value is not None}
    present = AppProfile() if reset else parts.profiles.get(subject, client_id)
    if changes or reset:
        present = replace(present, **changes)
        parts.profiles.put(subject, client_id, present)
    if json:
        print_json(asdict(present))
        return
    for name, value in asdict(present).items():
        shown = ", ".join(value) if isinstance(value, tuple) else "no limit" if value is None else value
        typer.echo(f"{name}: {shown}")


@app.command("revoke")
def revoke(grant_id: GrantId, owner: OwnerOption = None) -> None:
    """Disconnect an app: its tokens are dead within five seconds, and it must ask for consent again."""
    parts = open_installation()
    grant = _grant(parts, chosen_owner(parts, owner), grant_id)
    grants.end(parts.authorization_server, grant.grant_id)


def _grant(parts: Vademecum, owner: str, grant_id: str) -> Grant:
    grant = grants.find(parts.authorization_server, grant_id)
    if grant is None or grant.subject != owner:
        raise StoreError("not_found", f"no connected app {grant_id}; `vademecum clients list` names them")
    return grant


def _describe(grant: Grant) -> dict[str, Any]:
    return {
        "id": grant.grant_id,
        "name": grant.client_name,
        "client_id": grant.client_id,
        "redirect_uri": grant.redirect_uri,
        "scope": " ".join(sorted(grant.scopes)),
        "spaces": grant.spaces and list(grant.spaces),
        "created_at": rfc3339(grant.created_at),
        "last_used_at": grant.last_used_at and rfc3339(grant.last_used_at),
    }
