"""The composition root: settings become stores, engine, authorization server, pages and routes.

The command line uses the same `Vademecum`, so both see one store and one engine.
"""

import asyncio
import contextlib
import hashlib
import hmac
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from importlib.metadata import version
from typing import TYPE_CHECKING

from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import BaseRoute, Route
from starlette.types import Lifespan

from connector import models, state_key
from connector.access import Access
from connector.activity import Activity
from connector.guard import HOSTED_ORIGINS, Challenge, Guard, metadata_routes
from connector.housekeeping import embed_what_is_owed, sweep_what_has_expired
from connector.identity.passphrase import PassphraseProvider
from connector.limits import MatterLimit
from connector.mcp_server import McpServer
from connector.middleware import ClientAddress, HostCheck, RequestLog
from connector.pages.routes import PageContext
from connector.pages.routes import routes as page_routes
from connector.settings import Settings, SettingsError
from connector.stores import KeptEvents, OpenDatabase, Stores, SweptRecords, open_firestore, open_sqlite
from connector.tools import catalogue
from oauth.routes import routes as oauth_routes
from oauth.safe_fetch import Fetcher
from oauth.server import AuthorizationServer, Lifetimes, Scopes
from store.archive import Archive
from store.backup import Backend as BackupBackend
from store.embedders.protocol import Embedder
from store.engine import Engine
from store.errors import StoreError
from store.owners import Owners
from store.profiles import Profiles
from store.queries import Queries
from store.sqlite.backup import SQLiteBackup

if TYPE_CHECKING:
    from store.gemini import GeminiModel

SCOPES = Scopes(
    supported=("memory:read", "memory:write", "memory:maintain", "memory:export", "memory:delete"),
    default=("memory:read", "memory:write"),
)


def utc_now() -> datetime:
    """The wall clock; everything else is handed one."""
    return datetime.now(UTC)


@dataclass(frozen=True)
class Vademecum:
    """The parts of one installation, each built when it is first needed."""

    settings: Settings
    now: Callable[[], datetime] = utc_now
    monotonic: Callable[[], float] = time.monotonic
    """The clock of rates, in seconds, which is never set back."""
    fetcher: Fetcher = field(default_factory=Fetcher)
    """Fetches what clients publish about themselves; no other part talks to foreign hosts."""

    def make_state_dir(self) -> None:
        """Makes the state directory, for its owner's eyes only.

        Raises:
            SettingsError: it cannot be made.
        """
        try:
            self.settings.state_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise SettingsError([f"VADEMECUM_STATE_DIR: {error}"]) from error

    @cached_property
    def state_key(self) -> bytes:
        """The secret that all others are derived from."""
        self.make_state_dir()
        given = self.settings.state_key
        return state_key.load(given.get_secret_value() if given else None, self.settings.state_dir)

    @cached_property
    def stores(self) -> Stores:
        """All that is stored."""
        self.make_state_dir()
        match self.settings.store:
            case "sqlite":
                return open_sqlite(self.settings.database_path, self.now)
            case "firestore":
                project, name = self.settings.firestore_project, self.settings.firestore_database
                return open_firestore(project, name, self.now)

    @property
    def database(self) -> OpenDatabase:
        """Where all of it is."""
        return self.stores.database

    @property
    def backup_backend(self) -> BackupBackend:
        """What is backed up and restored, without opening it.

        Raises:
            StoreError: `unavailable`, for a store that is backed up by its own service.
        """
        match self.settings.store:
            case "sqlite":
                return SQLiteBackup(self.settings.database_path)
            case "firestore":
                said = "Firestore is backed up by its own service: gcloud firestore backups schedules create"
                raise StoreError("unavailable", said)

    @property
    def present_state_key(self) -> bytes | None:
        """The state key, unless there is none yet; none is made."""
        given = self.settings.state_key
        return state_key.find(given.get_secret_value() if given else None, self.settings.state_dir)

    @property
    def records(self) -> SweptRecords:
        """What OAuth and the pages keep."""
        return self.stores.records

    @property
    def owners(self) -> Owners:
        """Who the memories belong to."""
        return self.stores.owners

    @property
    def profiles(self) -> Profiles:
        """What each app is allowed beyond the permissions of its login."""
        return self.stores.profiles

    @property
    def events(self) -> KeptEvents:
        """What was called, when, and how it ended."""
        return self.stores.events

    @property
    def queries(self) -> Queries:
        """What was searched for, where the operator wants it kept."""
        return self.stores.queries

    @cached_property
    def activity(self) -> Activity:
        """Collects events for `events`."""
        return Activity(self.events, self.now, self.queries if self.settings.query_log else None)

    @cached_property
    def embedder(self) -> Embedder | None:
        """The configured embedder; None when search is by words alone."""
        return models.embedder(self.settings)

    @cached_property
    def model(self) -> "GeminiModel | None":
        """What writes and sees, where it is configured."""
        return models.language_model(self.settings)

    @cached_property
    def engine(self) -> Engine:
        """The memory engine."""
        cursor_key = hmac.digest(self.state_key, b"cursors", hashlib.sha256)
        memories = self.stores.memories
        return Engine(memories, self.embedder, self.now, cursor_key, self.model, self.model)

    @property
    def archive(self) -> Archive:
        """Memories as they are moved from one server to another.

        Raises:
            StoreError: `unavailable`, for a store that cannot do that yet.
        """
        if self.stores.archive is None:
            raise StoreError("unavailable", f"{self.settings.store} cannot export and import yet")
        return self.stores.archive

    @cached_property
    def authorization_server(self) -> AuthorizationServer:
        """Issues and checks tokens."""
        return AuthorizationServer(
            issuer=self.settings.public_url,
            resource=self.settings.resource,
            scopes=SCOPES,
            records=self.records,
            state_key=self.state_key,
            lifetimes=Lifetimes(
                access_token=self.settings.access_token_lifetime,
                refresh_idle=self.settings.refresh_idle_lifetime,
                refresh_absolute=self.settings.refresh_absolute_lifetime,
            ),
            now=self.now,
            fetcher=self.fetcher,
        )

    @cached_property
    def identity(self) -> PassphraseProvider:
        """Says who the owner is."""
        return PassphraseProvider(self.records, self.owners, self.now)


def create_app(parts: Vademecum) -> Starlette:
    """The ASGI application."""
    settings, server = parts.settings, parts.authorization_server
    parts.database.check()
    # A wrong state key ends the start, not somebody's login later.
    server.keys.ring()
    challenge = _challenge(parts)
    sessions = mcp_server(parts).session_manager()
    guard = Guard(
        endpoint=sessions.asgi_app,
        access=Access(server, parts.now, parts.profiles.get),
        challenge=challenge,
        origins=(settings.public_url, *HOSTED_ORIGINS, *settings.allowed_origins),
        scopes_of=catalogue.scopes_of,
    )

    routes: list[BaseRoute] = [
        Route("/mcp", guard),
        Route("/mcp/", guard),
        *metadata_routes(settings.public_url, settings.resource, SCOPES.default),
        *oauth_routes(server, parts.monotonic),
        *health_routes(parts),
        *page_routes(page_context(parts)),
    ]
    app = Starlette(
        routes=routes,
        middleware=[
            Middleware(
                RequestLog,
                paths=[getattr(route, "path", "") for route in routes],
                refused=parts.activity.refused,
            ),
            Middleware(ClientAddress, trusted=settings.trusted_proxies),
            Middleware(HostCheck, public_url=settings.public_url),
        ],
        exception_handlers={HTTPException: _http_error, StoreError: _store_error, Exception: _bug},
        lifespan=_lifespan(parts, sessions),
    )
    # A redirect to the other spelling of a path would be built from the request's own Host and scheme.
    app.router.redirect_slashes = False
    return app


def mcp_server(parts: Vademecum) -> McpServer:
    """The tools of this installation."""
    return McpServer(
        engine=parts.engine,
        owners=parts.owners,
        activity=parts.activity,
        challenge=_challenge(parts),
        public_url=parts.settings.public_url,
        version=version("vademecum"),
        surface=parts.settings.tool_surface,
    )


def _challenge(parts: Vademecum) -> Challenge:
    metadata = f"{parts.settings.public_url}/.well-known/oauth-protected-resource/mcp"
    return Challenge(metadata, SCOPES.default)


def _lifespan(parts: Vademecum, sessions: StreamableHTTPSessionManager) -> Lifespan[Starlette]:
    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        async with sessions.run():
            running = [
                asyncio.create_task(parts.activity.write_in_background()),
                asyncio.create_task(embed_what_is_owed(parts.engine.index_pending)),
                asyncio.create_task(sweep_what_has_expired(parts.records.sweep)),
            ]
            yield
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)
            await run_in_threadpool(parts.activity.flush)

    return lifespan


def page_context(parts: Vademecum) -> PageContext:
    """What the pages need."""
    return PageContext(
        server=parts.authorization_server,
        records=parts.records,
        owners=parts.owners,
        engine=parts.engine,
        provider=parts.identity,
        state_key=parts.state_key,
        public_url=parts.settings.public_url,
        now=parts.now,
        limit=MatterLimit(parts.monotonic).spend,
    )


def health_routes(parts: Vademecum) -> list[Route]:
    """Liveness: the process answers. Readiness: the database does too, and the embedder is loaded."""

    async def live(request: Request) -> JSONResponse:
        return JSONResponse({"status": "ok"}, headers={"Cache-Control": "no-store"})

    async def ready(request: Request) -> JSONResponse:
        problem = await run_in_threadpool(parts.database.problem)
        body = {"status": "ok" if problem is None else "unavailable", "version": version("vademecum")}
        return JSONResponse(body, 200 if problem is None else 503, {"Cache-Control": "no-store"})

    return [Route("/health/live", live), Route("/health/ready", ready), Route("/health", ready)]


async def _http_error(request: Request, error: Exception) -> JSONResponse:
    """Paths and methods that do not exist are answered in JSON, unknown `/.well-known/*` included."""
    if not isinstance(error, HTTPException):
        raise TypeError from error
    names = {404: "not_found", 405: "method_not_allowed"}
    body = {"error": names.get(error.status_code, "invalid_request"), "error_description": error.detail}
    return JSONResponse(body, error.status_code, {"Cache-Control": "no-store", **(error.headers or {})})


async def _store_error(request: Request, error: Exception) -> JSONResponse:
    """The store is away for the moment: nothing is lost, and the client tries again."""
    body = {"error": "temporarily_unavailable", "error_description": "The store is busy; try again"}
    return JSONResponse(body, 503, {"Cache-Control": "no-store", "Retry-After": "5"})


async def _bug(request: Request, error: Exception) -> JSONResponse:
    """The client learns that it failed; the log holds the one traceback."""
    body = {
        "error": "server_error",
        "error_description": "Something went wrong on this server; its log says what",
    }
    # The server closes the connection after a bug; a client or proxy that is not told reuses it and is reset.
    return JSONResponse(body, 500, {"Cache-Control": "no-store", "Connection": "close"})
