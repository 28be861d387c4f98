"""`vademecum tokens`: personal access tokens, for headless agents that cannot open a browser."""

from datetime import timedelta
from typing import Annotated, Any, get_args

import typer

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
from oauth import personal_tokens
from oauth.personal_tokens import PersonalToken, Profile
from store.errors import StoreError
from store.memory import ORIGINS, STATES
from store.profiles import AppProfile, Surface

app = typer.Typer(help="Personal access tokens.", no_args_is_help=True)


@app.command("add")
def add(
    scope: Annotated[list[str], typer.Option("--scope", help="A permission; may be repeated.")],
    name: Annotated[str, typer.Option(help="What the token is called in the activity log.")] = "Token",
    days: Annotated[int | None, typer.Option(min=1, help="Expires after so many days.")] = None,
    tool: Annotated[list[str] | None, typer.Option("--tool", help="Only these tools.")] = None,
    state: Annotated[list[str] | None, typer.Option("--state", help="Only memories in these states.")] = None,
    space: Annotated[list[str] | None, typer.Option("--space", help="Only these spaces.")] = None,
    origin: Annotated[
        list[str] | None, typer.Option("--origin", help="Only memories of this origin.")
    ] = None,
    surface: Annotated[str, typer.Option(help="default or full: the tools it lists.")] = "default",
    episodes: Annotated[bool, typer.Option("--episodes", help="May keep turns of conversations.")] = False,
    owner: OwnerOption = None,
    json: Json = False,
) -> None:
    """Make a token and print it; it is shown this once."""
    parts = open_installation()
    server = parts.authorization_server
    scopes = {word for given in scope for word in given.replace(",", " ").split()}
    check_names("scope", scopes, server.scopes.supported)
    check_names("tool", tool, catalogue.TOOLS)
    check_names("state", state, STATES)
    check_names("origin", origin, ORIGINS)
    check_names("surface", [surface], get_args(Surface))
    subject = chosen_owner(parts, owner)
    profile = Profile(
        scopes=frozenset(scopes),
        tools=_limit(tool),
        states=_limit(state),
        spaces=None if space is None else tuple(chosen_space(parts, subject, each).id for each in space),
        origins=_limit(origin),
    )
    expires_at = None if days is None else parts.now() + timedelta(days=days)
    token, secret = personal_tokens.create(server, subject, name, profile, expires_at)
    if surface != "default" or episodes:
        lists = AppProfile(surface="full" if surface == "full" else "default", episodes=episodes)
        parts.profiles.put(subject, token.app, lists)
    if json:
        print_json(_describe(token) | {"token": secret})
    else:
        typer.echo(secret)


@app.command("list")
def list_tokens(owner: OwnerOption = None, json: Json = False) -> None:
    """List the tokens; what they are is not stored."""
    parts = open_installation()
    tokens = personal_tokens.of_subject(parts.authorization_server, chosen_owner(parts, owner))
    if json:
        print_json([_describe(token) for token in tokens])
        return
    for row in map(_describe, tokens):
        typer.echo(f"{row['id']}  {row['name']}  {row['scope']}  last used {row['last_used_at']}")


@app.command("revoke")
def revoke(
    token_id: Annotated[str, typer.Argument(help="The token's id, from `tokens list`.")],
    owner: OwnerOption = None,
) -> None:
    """End a token."""
    parts = open_installation()
    server = parts.authorization_server
    known = personal_tokens.of_subject(server, chosen_owner(parts, owner))
    if token_id not in {token.token_id for token in known}:
        raise StoreError("not_found", f"no token {token_id}; `vademecum tokens list` names them")
    personal_tokens.revoke(server, token_id)


def _limit(names: list[str] | None) -> tuple[str, ...] | None:
    return None if names is None else tuple(names)


def _describe(token: PersonalToken) -> dict[str, Any]:
    return {
        "id": token.token_id,
        "name": token.name,
        "scope": " ".join(sorted(token.profile.scopes)),
        "created_at": rfc3339(token.created_at),
        "expires_at": token.expires_at and rfc3339(token.expires_at),
        "last_used_at": token.last_used_at and rfc3339(token.last_used_at),
    }
