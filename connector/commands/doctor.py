"""`vademecum doctor`: what is wrong with this installation, or with a server as the hosts see it."""

import os
from collections.abc import Iterator
from typing import Annotated

import httpx2
import typer

from connector.app import Vademecum, utc_now
from connector.commands.output import Json, print_json
from connector.doctor.firestore import look
from connector.doctor.installation import examine_installation
from connector.doctor.report import Check, is_healthy, verdicts
from connector.doctor.walk import Walk
from connector.settings import FIRESTORE_EMULATOR, Settings, SettingsError
from oauth import clients

TIMEOUT_SECONDS = 10
"""As the hosts wait for discovery and registration."""
MARKS = {"ok": "ok     ", "warning": "WARNING", "failed": "FAILED ", "skipped": "skipped"}


def doctor(
    url: Annotated[
        str | None, typer.Argument(help="A server's address, to be walked as Claude, ChatGPT and Codex do.")
    ] = None,
    json: Json = False,
) -> None:
    """Look at everything that can be wrong, and say how to mend it; exit 1 when something is.

    Without an address it looks at this installation from inside. With one it walks the way of the hosts
    there, and says which of them would fail and why.
    """
    found = []
    for check in _inside() if url is None else walked(url):
        found.append(check)
        if not json:
            _print(check)
    hosts = None if url is None else verdicts(found)
    if json:
        print_json(
            {"healthy": is_healthy(found), "checks": [check.as_json() for check in found], "hosts": hosts}
        )
    elif hosts is not None:
        for host, reasons in hosts.items():
            typer.echo(f"{host} would " + (f"fail: {', '.join(reasons)}" if reasons else "connect"))
    if not is_healthy(found):
        raise typer.Exit(1)


def _inside() -> Iterator[Check]:
    is_emulated = bool(os.environ.get(FIRESTORE_EMULATOR))
    return examine_installation(os.environ, utc_now, None if is_emulated else look)


def walked(url: str, http: httpx2.Client | None = None) -> Iterator[Check]:
    """The checks of one walk; what it registered is removed where this is the server's own machine."""
    with http or httpx2.Client(timeout=TIMEOUT_SECONDS, follow_redirects=False) as client:
        walk = Walk(url, client, utc_now)
        try:
            yield from walk.checks()
        except httpx2.TransportError as error:
            yield Check(
                "reachable",
                "failed",
                f"the server stopped answering: {error!r}",
                "Look at its log.",
                tuple(verdicts([])),
            )
        finally:
            _remove(walk)


def _remove(walk: Walk) -> None:
    """Elsewhere a registration that is never used expires by itself."""
    try:
        settings = Settings.from_env()
    except SettingsError:
        return
    if walk.registered and settings.public_url == walk.origin and settings.database_path.exists():
        parts = Vademecum(settings)
        for client_id in walk.registered:
            clients.delete(parts.authorization_server, client_id)
        parts.database.close()


def _print(check: Check) -> None:
    said = f": {check.said}" if check.said else ""
    typer.echo(f"{MARKS[check.result]}  {check.name}{said}")
    if check.mend and check.result in ("warning", "failed"):
        typer.echo(f"         {check.mend}")
