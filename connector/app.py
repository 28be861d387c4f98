"""The composition root: settings become stores, engine, authorization server, pages and routes.

The command line uses the same `Vademecum`, so both see one store and one engine.
"""

import hashlib
import hmac
import time
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property, partial
from importlib.metadata import version
from typing import TYPE_CHECKING

import httpx2
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.routing import BaseRoute, Route
from starlette.types import Lifespan

from connector import failures, health, models, state_key
from connector.access import Access
from connector.activity import Activity
from connector.deletion import AccountDeletion
from connector.embedding_model import EmbeddingModel
from connector.guard import HOSTED_ORIGINS, Challenge, Guard, metadata_routes
from connector.housekeeping import embed_what_is_owed, erase_what_was_closed, lifespan, sweep_what_has_expired
from connector.identity.admission import Admission
from connector.identity.configured import allow_list, firebase_project, firebase_sdk_urls, oidc_client
from connector.identity.credentials import Credentials
from connector.identity.ending import end_access, end_logins
from connector.identity.firebase import FirebaseProvider
from connector.identity.oidc import OidcProvider
from connector.identity.passphrase import PassphraseProvider
from connector.identity.provider import IdentityProvider
from connector.identity.provider_http import ProviderHttp
from connector.identity.renewal import Renewal
from connector.limits import MatterLimit
from connector.mcp_server import McpServer
from connector.middleware import ClientAddress, HostCheck, RequestLog
from connector.pages.public_texts import configured as configured_texts
from connector.pages.routes import PageContext
from connector.pages.routes import routes as page_routes
from connector.settings import Settings, SettingsError
from connector.stores import (
    KeptEvents,
    OpenDatabase,
    Stores,
    SweptRecords,
    backup_backend,
    open_firestore,
    open_sqlite,
)
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
from store.tombstones import FileTombstones, Tombstones

if TYPE_CHECKING:
    from connector.metrics import Metrics
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
    """Fetches what clients publish about themselves."""
    provider_transport: httpx2.BaseTransport | None = None
    """Stands for the network to the identity provider; None is the network."""

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
        """What is backed up and restored, without opening it; `StoreError` where Google does that."""
        return backup_backend(self.settings.store, self.settings.database_path)

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

    @cached_property
    def tombstones(self) -> Tombstones:
        """Whose accounts were deleted; beside the database, which may be restored."""
        self.make_state_dir()
        return FileTombstones(self.settings.state_dir)

    @cached_property
    def deletion(self) -> AccountDeletion:
        """Deletes accounts."""
        return AccountDeletion(
            self.authorization_server, self.owners, self.tombstones, self.settings.state_dir, self.now
        )

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
        queries = self.queries if self.settings.query_log else None
        observe = None if self.metrics is None else self.metrics.tool_call
        return Activity(self.events, self.now, queries, observe)

    @cached_property
    def metrics(self) -> "Metrics | None":
        """What is counted; None when nobody looks."""
        if self.settings.metrics_port is None:
            return None
        from connector import metrics

        return metrics.of(self.settings, version("vademecum"), self.readiness, lambda: self.engine.owed())

    @cached_property
    def readiness(self) -> health.Readiness:
        """Whether requests can be answered."""
        local = self.embedder if self.settings.embedder == "local" else None
        checks = health.checks(self.database, self.authorization_server.keys, local)
        return health.Readiness(checks, self.monotonic)

    @cached_property
    def embedder(self) -> Embedder | None:
        """The configured embedder; None when search is by words alone."""
        return models.embedder(self.settings)

    @cached_property
    def embedding_model(self) -> EmbeddingModel:
        """Whether this process's embedder is the installation's."""
        return EmbeddingModel(self.records, None if self.embedder is None else self.embedder.name)

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
        """Memories as they are moved from one server to another."""
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
    def identity(self) -> IdentityProvider:
        """Says who the owner is."""
        settings, records, http = self.settings, self.records, self.provider_http
        is_set_up = self.admission.is_set_up
        match settings.identity:
            case "passphrase":
                return self.passphrases
            case "firebase":
                project, sdk_urls = firebase_project(settings), firebase_sdk_urls(settings)
                return FirebaseProvider(project, records, self.now, http, is_set_up, sdk_urls)
            case "oidc":
                client = oidc_client(settings)
                return OidcProvider(client, records, self.state_key, self.now, http, is_set_up)

    @cached_property
    def passphrases(self) -> PassphraseProvider:
        """Knows passphrases, whether or not anybody signs in by one."""
        return PassphraseProvider(self.records, self.owners, self.now)

    @cached_property
    def provider_http(self) -> ProviderHttp:
        """Asks the identity provider."""
        return ProviderHttp(self.now, self.provider_transport, self.monotonic)

    @cached_property
    def admission(self) -> Admission:
        """Says who may enter."""
        return Admission(
            provider=self.settings.identity,
            records=self.records,
            owners=self.owners,
            now=self.now,
            allow_list=allow_list(self.settings),
            is_open=self.settings.open_sign_up,
        )

    @cached_property
    def renewal(self) -> Renewal:
        """Asks the provider about owners while they are away."""
        server = self.authorization_server
        return Renewal(
            provider=self.identity,
            credentials=Credentials(self.records, self.state_key, self.now),
            admission=self.admission,
            records=self.records,
            now=self.now,
            end_logins=partial(end_logins, server),
            end_access=partial(end_access, server),
        )


def create_app(parts: Vademecum) -> Starlette:
    """The ASGI application."""
    settings, server = parts.settings, parts.authorization_server
    parts.database.check()
    # A wrong state key ends the start, not somebody's login later.
    server.keys.ring()
    server.renew_identity = parts.renewal.renew
    parts.renewal.end_strangers()
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
        *health.routes(parts.readiness, version("vademecum")),
        *page_routes(page_context(parts)),
    ]
    app = Starlette(
        routes=routes,
        middleware=[
            Middleware(
                RequestLog,
                paths=[getattr(route, "path", "") for route in routes],
                refused=parts.activity.refused,
                observe=None if parts.metrics is None else parts.metrics.request,
            ),
            Middleware(ClientAddress, trusted=settings.trusted_proxies),
            Middleware(HostCheck, public_url=settings.public_url),
        ],
        exception_handlers={
            HTTPException: failures.http_error,
            StoreError: failures.store_error,
            Exception: failures.bug,
        },
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
    def background() -> Sequence[Coroutine[None, None, None]]:
        return (
            parts.activity.write_in_background(),
            embed_what_is_owed(parts.embedding_model.is_current, parts.engine.index_pending),
            sweep_what_has_expired(parts.stores.sweep),
            erase_what_was_closed(parts.deletion.resume),
        )

    begin = (parts.deletion.close_restored, parts.embedding_model.choose)
    return lifespan(begin, sessions.run, background, (parts.activity.flush, parts.provider_http.close))


def page_context(parts: Vademecum) -> PageContext:
    """What the pages need."""
    return PageContext(
        server=parts.authorization_server,
        records=parts.records,
        owners=parts.owners,
        engine=parts.engine,
        provider=parts.identity,
        deletion=parts.deletion,
        public_texts=configured_texts(parts.settings),
        admission=parts.admission,
        state_key=parts.state_key,
        public_url=parts.settings.public_url,
        now=parts.now,
        limit=MatterLimit(parts.monotonic).spend,
    )
