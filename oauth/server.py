"""The authorization server: who it is, what it offers, where its records are, and how long things live."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from authlib.oauth2.rfc6749 import AuthorizationServer as AuthlibAuthorizationServer
from authlib.oauth2.rfc6749 import OAuth2Error

from oauth import client_authentication
from oauth.client_assertion import ClientKeys
from oauth.client_documents import ClientDocuments
from oauth.clients import Client
from oauth.errors import InvalidRequest, UnsupportedGrantType
from oauth.keys import Keys
from oauth.parameters import FormRequest
from oauth.records import Records
from oauth.redirect_uris import APP_REDIRECT_URIS
from oauth.revoke import RevocationEndpoint
from oauth.safe_fetch import Fetcher
from oauth.token import AuthorizationCodeGrant, RefreshTokenGrant


@dataclass(frozen=True)
class Scopes:
    """What a token may allow; `offline_access` is accepted everywhere and means nothing here."""

    supported: tuple[str, ...]
    default: tuple[str, ...]
    """What metadata advertise, and what a client gets that names nothing known."""

    def parse(self, scope: str | None) -> frozenset[str]:
        """The known scopes of a request; the defaults when none is left (RFC 6749 §3.3)."""
        return frozenset((scope or "").split()) & frozenset(self.supported) or frozenset(self.default)

    def to_wire(self, scopes: Collection[str]) -> str:
        """Space-separated, always in the same order."""
        return " ".join(scope for scope in self.supported if scope in scopes)


@dataclass(frozen=True)
class Lifetimes:
    """How long things live."""

    access_token: timedelta = timedelta(hours=1)
    code: timedelta = timedelta(seconds=60)
    refresh_idle: timedelta = timedelta(days=30)
    """From one refresh to the next."""
    refresh_absolute: timedelta = timedelta(days=365)
    """From the consent."""
    replay_window: timedelta = timedelta(seconds=60)
    """How long a lost answer to a refresh is given again."""
    client_unused: timedelta = timedelta(days=90)
    """How long a registration waits for its first consent."""

    @property
    def advertised_access_token(self) -> timedelta:
        """What `expires_in` says: a little less than the token lives.

        Clients that go by their own clock start it when the answer arrives. Told the whole lifetime, they
        would still use a token that has just died, and some answer that with a new login, not a refresh.
        """
        return self.access_token - min(self.access_token / 10, timedelta(seconds=60))


@dataclass(frozen=True)
class Answer:
    """An answer for the framework to send."""

    status: int
    body: dict[str, Any]
    headers: list[tuple[str, str]]


class AuthorizationServer(AuthlibAuthorizationServer):
    """Authlib's server with this installation's values; synchronous, to be called in a worker thread."""

    def __init__(
        self,
        *,
        issuer: str,
        resource: str,
        scopes: Scopes,
        records: Records,
        state_key: bytes,
        now: Callable[[], datetime],
        lifetimes: Lifetimes = Lifetimes(),
        app_redirect_uris: Collection[str] = APP_REDIRECT_URIS,
        fetcher: Fetcher | None = None,
    ) -> None:
        super().__init__(list(scopes.supported))  # type: ignore[no-untyped-call]
        self.issuer = issuer
        self.resource = resource
        self.scopes = scopes
        self.records = records
        self.lifetimes = lifetimes
        self.now = now
        self.app_redirect_uris = app_redirect_uris
        self.keys = Keys(records, state_key, lifetimes.access_token, now)
        fetcher = fetcher or Fetcher()
        self.client_documents = ClientDocuments(self, fetcher)
        self.client_keys = ClientKeys(self, fetcher)
        self.renew_identity: Callable[[str], None] | None = None
        """Asked with the subject before a refresh token rotates; raises `InvalidGrant` for somebody who may
        no longer come in, `TemporarilyUnavailable` when the provider does not answer."""
        self.on_grant_changed: list[Callable[[str], None]] = []
        """Told the id of every grant that this process changes or ends."""
        self.register_grant(AuthorizationCodeGrant)  # type: ignore[no-untyped-call]
        self.register_grant(RefreshTokenGrant)  # type: ignore[no-untyped-call]
        self.register_endpoint(RevocationEndpoint)

    def tell_grant_changed(self, grant_id: str) -> None:
        """What was known of this grant is out of date."""
        for told in self.on_grant_changed:
            told(grant_id)

    def create_token_response(self, request: FormRequest) -> Answer:  # type: ignore[override]
        """`POST /token` (RFC 6749 §3.2)."""
        if request.payload.grant_type is None:
            return self.handle_error_response(request, InvalidRequest("grant_type is missing"))
        if request.payload.grant_type not in ("authorization_code", "refresh_token"):
            error = UnsupportedGrantType("only authorization_code and refresh_token are offered")
            return self.handle_error_response(request, error)
        answer: Answer = super().create_token_response(request)  # type: ignore[no-untyped-call]
        return answer

    def create_revocation_response(self, request: FormRequest) -> Answer:
        """`POST /revoke` (RFC 7009 §2)."""
        answer: Answer = self.create_endpoint_response("revocation", request)  # type: ignore[no-untyped-call]
        return answer

    def authenticate_client(
        self, request: FormRequest, methods: Collection[str], endpoint: str = "token"
    ) -> Client:
        """Asked by Authlib's grants and endpoints."""
        return client_authentication.authenticate(self, request)

    def create_oauth2_request(self, request: FormRequest) -> FormRequest:
        """Routes hand in what Authlib reads."""
        return request

    def handle_response(self, status: int, body: dict[str, Any], headers: list[tuple[str, str]]) -> Answer:
        """Authlib's triple with names."""
        return Answer(status, body, headers)

    def handle_error_response(self, request: FormRequest | None, error: OAuth2Error) -> Answer:
        """The error as the client reads it (RFC 6749 §5.2)."""
        return self.handle_response(*error())

    def send_signal(self, name: str, *args: object, **kwargs: object) -> None:
        """Authlib's signals; the log has events of its own."""
