"""From a bearer token to a `Principal`, cached so that a call costs no I/O.

A token's signature is checked once; its grant's liveness and current scopes at most five seconds ago
(OAUTH "Guard"), and again at once when this process changes the grant.
"""

import hashlib
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from threading import Lock
from urllib.parse import urlsplit

from starlette.concurrency import run_in_threadpool

from oauth import access_tokens, grants, personal_tokens
from oauth.personal_tokens import PersonalToken
from oauth.records import NEVER
from oauth.server import AuthorizationServer
from store.profiles import AppProfile, Surface

LIVENESS_SECONDS = 5.0
MAX_CACHED_TOKENS = 10_000
OPENAI_HOST = "chatgpt.com"


@dataclass(frozen=True)
class Principal:
    """Who calls: the owner and the app that acts for them, from the verified token and nothing else."""

    owner: str
    app: str
    client_name: str
    scopes: frozenset[str]
    """The token's scopes that the grant still allows."""
    spaces: tuple[str, ...] | None
    """The spaces that the grant allows; None means all of the owner's."""
    is_openai: bool
    """OpenAI's hosts step up through a tool result, not HTTP 403, and want the `search`/`fetch` pair."""
    tools: frozenset[str] | None = None
    """The tools that the app's profile allows; None means all that the scopes do."""
    states: frozenset[str] | None = None
    """The states of memories that it may see; None means all."""
    origins: frozenset[str] | None = None
    """The origins of memories that it may see; None means all."""
    surface: Surface = "default"
    """`full` lists every tool that is allowed."""
    episodes: bool = False
    """Whether it may keep and read turns of conversations."""


@dataclass(frozen=True)
class _Checked:
    principal: Principal
    expires_at: datetime
    checked_at: float


def _without_limits(owner: str, app: str) -> AppProfile:
    return AppProfile()


class Access:
    """Authenticates tokens against one authorization server; safe to share between tasks and threads."""

    def __init__(
        self,
        server: AuthorizationServer,
        now: Callable[[], datetime],
        profile_of: Callable[[str, str], AppProfile] = _without_limits,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._server = server
        self._verified = access_tokens.VerifiedTokens(server)
        self._now = now
        self._profile_of = profile_of
        self._monotonic = monotonic
        self._checked: OrderedDict[bytes, _Checked] = OrderedDict()
        self._epoch = 0
        self._lock = Lock()
        server.on_grant_changed.append(self._forget)

    async def authenticate(self, token: str) -> Principal:
        """The token's principal.

        Raises:
            InvalidToken: forged, expired, revoked, of another issuer or audience, or its grant has ended.
        """
        key = hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
        checked = self._checked.get(key)
        if checked is not None and self._is_fresh(checked):
            return checked.principal
        # The epoch is read first: what was looked up before a change is never kept after it.
        epoch = self._epoch
        checked = await run_in_threadpool(self._check, token)
        with self._lock:
            if epoch == self._epoch:
                self._checked[key] = checked
                self._checked.move_to_end(key)
                if len(self._checked) > MAX_CACHED_TOKENS:
                    self._checked.popitem(last=False)
        return checked.principal

    def _is_fresh(self, checked: _Checked) -> bool:
        age = self._monotonic() - checked.checked_at
        return age < LIVENESS_SECONDS and self._now() < checked.expires_at

    def _check(self, token: str) -> _Checked:
        checked_at = self._monotonic()
        if personal_tokens.is_personal_token(token):
            personal = personal_tokens.verify(self._server, token)
            principal = self._within_profile(_personal_principal(personal))
            return _Checked(principal, personal.expires_at or NEVER, checked_at)
        verified = self._verified.verify(token)
        scopes = grants.authorize_token(self._server, verified)
        grant = grants.get(self._server, verified.grant_id)
        principal = Principal(
            owner=grant.subject,
            app=grant.client_id,
            client_name=grant.client_name,
            scopes=scopes,
            spaces=grant.spaces,
            is_openai=OPENAI_HOST in (_host(grant.client_id), _host(grant.redirect_uri)),
        )
        return _Checked(self._within_profile(principal), verified.expires_at, checked_at)

    def _within_profile(self, principal: Principal) -> Principal:
        return within_profile(principal, self._profile_of(principal.owner, principal.app))

    def _forget(self, grant_id: str) -> None:
        with self._lock:
            self._epoch += 1
            self._checked.clear()


def within_profile(principal: Principal, profile: AppProfile) -> Principal:
    """Narrowed to what the owner allows this app, whatever its login allows."""
    return replace(
        principal,
        spaces=_both(principal.spaces, profile.spaces),
        tools=_frozen(_both(principal.tools, profile.tools)),
        states=_frozen(_both(principal.states, profile.states)),
        origins=_frozen(_both(principal.origins, profile.origins)),
        surface=profile.surface,
        episodes=profile.episodes,
    )


def _personal_principal(token: PersonalToken) -> Principal:
    """A personal access token is its own app, called by its own name."""
    profile = token.profile
    return Principal(
        owner=token.subject,
        app=token.app,
        client_name=token.name,
        scopes=profile.scopes,
        spaces=profile.spaces,
        is_openai=False,
        tools=_frozen(profile.tools),
        states=_frozen(profile.states),
        origins=_frozen(profile.origins),
    )


def _both(one: Iterable[str] | None, other: Iterable[str] | None) -> tuple[str, ...] | None:
    """What both allow, where None allows everything."""
    if one is None or other is None:
        allowed = one if other is None else other
        return None if allowed is None else tuple(allowed)
    within = frozenset(other)
    return tuple(name for name in one if name in within)


def _frozen(names: Iterable[str] | None) -> frozenset[str] | None:
    return None if names is None else frozenset(names)


def _host(uri: str) -> str | None:
    return urlsplit(uri).hostname if uri.startswith("https://") else None
