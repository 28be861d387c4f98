"""`vademecum serve`: the server, and the setup link that a first start prints on a terminal."""

import contextlib
import logging
import sys

import typer
import uvicorn
from threadpoolctl import threadpool_limits

from connector import logs
from connector.app import Vademecum, create_app
from connector.commands.output import open_installation
from connector.identity.setup_links import issue_setup_link
from connector.systemd import SupervisedServer, Supervisor
from connector.wire import BoundedProtocol

log = logging.getLogger(__name__)

KEEP_ALIVE_SECONDS = 30
SHUTDOWN_SECONDS = 10


def serve() -> None:
    """Serve, with the settings of the environment (VADEMECUM_*)."""
    parts = open_installation()
    metrics, port = parts.metrics, parts.settings.metrics_port
    logs.configure(parts.settings.log_level, [] if metrics is None else [metrics.log_handler()])
    # Searches run side by side already; BLAS threads of their own would make each wait for the others.
    threadpool_limits(1, user_api="blas")
    app = create_app(parts)
    _greet(parts)
    config = uvicorn.Config(
        app,
        host=parts.settings.host,
        port=parts.settings.port,
        http=BoundedProtocol,
        ws="none",
        log_config=None,
        access_log=False,
        # The public URL comes from the settings alone: no header of a stranger, nor of a proxy, changes it.
        proxy_headers=False,
        server_header=False,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=SHUTDOWN_SECONDS,
    )
    with contextlib.nullcontext() if metrics is None or port is None else metrics.served(port):
        SupervisedServer(config, Supervisor.from_env()).run()


def _greet(parts: Vademecum) -> None:
    """Says where the server is; a link that makes its reader the owner goes to a terminal only."""
    log.info(
        "server.starting", extra={"public_url": parts.settings.public_url, "mcp": parts.settings.resource}
    )
    if parts.identity.is_set_up():
        return
    owners = [owner.id for owner in parts.owners.list() if not parts.admission.is_removed(owner.id)]
    if sys.stderr.isatty() and len(owners) < 2:
        link = issue_setup_link(parts.identity, next(iter(owners), None), parts.settings.public_url)
        typer.echo(
            f"\n  Nobody owns this server yet. Open this link once, within 24 hours:\n\n  {link}\n", err=True
        )
    else:
        log.warning(
            "owner.missing",
            extra={"mend": "run `vademecum owner setup-link` or `vademecum owner passphrase`"},
        )
