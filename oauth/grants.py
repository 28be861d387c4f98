"""A grant's life: issued with a code, redeemed once, refreshed, narrowed, ended.

One record of kind `grant`, keyed by grant id, is everything that an owner once allowed a client. Each change
is one `swap`, judged again when somebody else was faster. Ending a grant deletes its record: codes, refresh
tokens and access tokens all name it and die with it.
"""

import logging
import re
import secrets
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from oauth import clients, derived_tokens, personal_tokens
from oauth.access_tokens import CLOCK_SKEW, AccessToken
from oauth.clients import Client
from oauth.errors import AccessDenied, InvalidGrant, InvalidToken, TemporarilyUnavailable
from oauth.records import Value

if TYPE_CHECKING:
    from oauth.authorize import AuthorizationRequest
    from oauth.server import AuthorizationServer

log = logging.getLogger(__name__)

KIND = "grant"
MAX_ATTEMPTS = 16
MAX_REVOKED_TOKENS = 100

_GRANT_ID = re.compile(r"[0-9a-f]{32}")
_TIMES = ("created_at", "code_expires_at", "redeemed_at", "rotated_at", "previous_rotated_at", "last_used_at")
_SCOPES = ("scopes", "ever_granted")


@dataclass(frozen=True)
class Grant:
    """What an owner allowed a client, and how far the client has come with it."""

    grant_id: str
    subject: str
    client_id: str
    client_name: str
    redirect_uri: str
    code_challenge: str
    scopes: frozenset[str]
    """What is granted now."""
    ever_granted: frozenset[str]
    """What has been granted at any time: a refresh may name these without being wrong."""
    spaces: tuple[str, ...] | None
    """The spaces that the client may see; None means all of the subject's."""
    created_at: datetime
    code_expires_at: datetime
    epoch: str
    """The epoch of keys in which its codes and tokens are derived."""
    redeemed_at: datetime | None = None
    generation: int = 0
    """Of the newest refresh token."""
    rotated_at: datetime | None = None
    """When that refresh token was issued."""
    previous_rotated_at: datetime | None = None
    """When the one before it was issued."""
    last_used_at: datetime | None = None
    """When tokens were last issued for it."""
    revoked_jtis: tuple[tuple[str, int], ...] = ()
    """Access tokens that were revoked one by one, each with its `exp`."""

    @property
    def is_redeemed(self) -> bool:
        """Whether the code has been exchanged; until then there is nothing to use or to show."""
        return self.redeemed_at is not None

    def to_value(self) -> Value:
        """The record's value."""
        value: Value = dict(self.__dict__)
        for name in _TIMES:
            value[name] = value[name] and value[name].isoformat()
        for name in _SCOPES:
            value[name] = sorted(value[name])
        value["spaces"] = None if self.spaces is None else list(self.spaces)
        value["revoked_jtis"] = dict(self.revoked_jtis)
        return value

    @classmethod
    def from_value(cls, value: Value) -> "Grant":
        """The grant of a record's value."""
        members = dict(value)
        for name in _TIMES:
            members[name] = members[name] and datetime.fromisoformat(members[name])
        for name in _SCOPES:
            members[name] = frozenset(members[name])
        members["spaces"] = None if value["spaces"] is None else tuple(value["spaces"])
        members["revoked_jtis"] = tuple(value["revoked_jtis"].items())
        return cls(**members)


class _Spent(InvalidGrant):
    """An authentic code that somebody has already exchanged."""


def issue_code(
    server: "AuthorizationServer",
    request: "AuthorizationRequest",
    client: Client,
    subject: str,
    scopes: frozenset[str],
    spaces: tuple[str, ...] | None,
) -> str:
    """The owner has consented: creates the grant and its authorization code (RFC 6749 §4.1.2).

    Args:
        server: where the grant is kept.
        request: the request that was consented to; the code is bound to it.
        client: who asked.
        subject: who consented.
        scopes: what the owner ticked.
        spaces: what the client may see; None means all.

    Raises:
        AccessDenied: nothing was ticked.
    """
    scopes &= frozenset(server.scopes.supported)
    if not scopes:
        raise AccessDenied("the owner granted nothing")
    now = server.now()
    grant = Grant(
        grant_id=secrets.token_hex(16),
        subject=subject,
        client_id=client.client_id,
        client_name=client.client_name,
        redirect_uri=request.redirect_uri,
        code_challenge=request.code_challenge,
        scopes=scopes,
        ever_granted=scopes,
        spaces=spaces,
        created_at=now,
        code_expires_at=now + server.lifetimes.code,
        epoch=server.keys.ring().epoch,
    )
    clients.touch(server, client)
    server.records.create(KIND, grant.grant_id, grant.to_value(), _expires_at(server, grant))
    log.info("code.issued", extra=_fields(grant))
    return derived_tokens.derive_code(server, grant.grant_id)


def redeem(server: "AuthorizationServer", grant_id: str) -> Grant:
    """Exchanges the code of a request that is right in everything else, once.

    Raises:
        InvalidGrant: it was exchanged before, so the whole grant has now ended (OAuth 2.1 §7.5.3).
    """

    def redeemed(grant: Grant) -> Grant:
        if grant.is_redeemed:
            raise _Spent("the code was used before")
        now = server.now()
        if now < grant.created_at - CLOCK_SKEW:
            # The clock was set back: the code may have expired long ago.
            raise InvalidGrant("the code comes from the future")
        return replace(grant, redeemed_at=now, rotated_at=now, last_used_at=now)

    try:
        grant = step(server, grant_id, redeemed)
    except _Spent:
        log.warning("code.replayed", extra={"grant_id": grant_id})
        end(server, grant_id)
        raise
    if grant is None:
        raise InvalidGrant("the code is unknown or expired")
    log.info("code.redeemed", extra=_fields(grant))
    return grant


def find(server: "AuthorizationServer", grant_id: str) -> Grant | None:
    """The grant, unless it has ended or expired."""
    value = server.records.get(KIND, grant_id) if _GRANT_ID.fullmatch(grant_id) else None
    return Grant.from_value(value) if value is not None else None


def get(server: "AuthorizationServer", grant_id: str) -> Grant:
    """The grant that a verified access token names.

    Raises:
        InvalidToken: the grant has ended.
    """
    grant = find(server, grant_id)
    if grant is None:
        raise InvalidToken("the grant has ended")
    return grant


def of_subject(server: "AuthorizationServer", subject: str) -> list[Grant]:
    """All of a person's grants, oldest first, those included whose code was never exchanged."""
    values = server.records.select(KIND, "subject", subject)
    return sorted((Grant.from_value(value) for value in values), key=lambda grant: grant.created_at)


def narrow(server: "AuthorizationServer", grant_id: str, scopes: frozenset[str]) -> Grant | None:
    """Keeps only these of the grant's scopes; the guard follows within seconds."""
    return _change(server, grant_id, lambda grant: replace(grant, scopes=grant.scopes & scopes))


def widen(server: "AuthorizationServer", grant_id: str, scopes: frozenset[str]) -> Grant | None:
    """The owner adds scopes; the client has them after its next refresh."""

    def widened(grant: Grant) -> Grant:
        return replace(grant, scopes=grant.scopes | scopes, ever_granted=grant.ever_granted | scopes)

    return _change(server, grant_id, widened)


def set_spaces(server: "AuthorizationServer", grant_id: str, spaces: tuple[str, ...] | None) -> Grant | None:
    """The owner chooses anew what the client may see; None means all."""
    return _change(server, grant_id, lambda grant: replace(grant, spaces=spaces))


def end(server: "AuthorizationServer", grant_id: str) -> None:
    """Ends the grant and everything issued from it."""
    if _GRANT_ID.fullmatch(grant_id):
        server.records.delete(KIND, grant_id)
        log.info("grant.ended", extra={"grant_id": grant_id})
        server.tell_grant_changed(grant_id)


def end_all(server: "AuthorizationServer") -> int:
    """The emergency: new keys, and every grant and personal token there is has ended.

    Returns: how many were ended.
    """
    epoch = server.keys.replace()
    ended = server.records.select(KIND, "epoch", epoch)
    for value in ended:
        end(server, str(value["grant_id"]))
    tokens = server.records.select(personal_tokens.KIND, "epoch", epoch)
    for value in tokens:
        personal_tokens.revoke(server, str(value["token_id"]))
    return len(ended) + len(tokens)


def authorize_token(server: "AuthorizationServer", token: AccessToken) -> frozenset[str]:
    """What a verified access token may do now: its scopes, as far as the grant still allows them.

    Raises:
        InvalidToken: the token was revoked, or its grant has ended.
    """
    grant = get(server, token.grant_id)
    if not grant.is_redeemed or any(jti == token.jti for jti, _ in grant.revoked_jtis):
        raise InvalidToken("the token was revoked")
    return token.scopes & grant.scopes


def revoke_access_token(server: "AuthorizationServer", token: AccessToken) -> None:
    """Revokes this one token (RFC 7009 §2.1); a client that revokes by the hundred loses the grant."""

    def revoked(grant: Grant) -> Grant:
        now = server.now().timestamp()
        live = {jti: exp for jti, exp in grant.revoked_jtis if exp > now}
        live[token.jti] = int(token.expires_at.timestamp())
        return replace(grant, revoked_jtis=tuple(live.items()))

    grant = _change(server, token.grant_id, revoked)
    if grant is not None and len(grant.revoked_jtis) > MAX_REVOKED_TOKENS:
        end(server, token.grant_id)


def step(server: "AuthorizationServer", grant_id: str, change: Callable[[Grant], Grant]) -> Grant | None:
    """Replaces the grant by what `change` makes of it, in one atomic swap; None when there is none.

    `change` is asked again with the newer grant when somebody else changed it meanwhile; it returns the very
    grant that it was given to leave it alone, and may raise.

    Raises:
        TemporarilyUnavailable: others kept being faster; nothing has changed.
    """
    for _ in range(MAX_ATTEMPTS):
        old = server.records.get(KIND, grant_id)
        if old is None:
            return None
        grant = Grant.from_value(old)
        new = change(grant)
        if new is grant or server.records.swap(KIND, grant_id, old, new.to_value(), _expires_at(server, new)):
            return new
    raise TemporarilyUnavailable("too many requests for one grant at once")


def _change(server: "AuthorizationServer", grant_id: str, change: Callable[[Grant], Grant]) -> Grant | None:
    """A step that the guard must hear of."""
    grant = step(server, grant_id, change) if _GRANT_ID.fullmatch(grant_id) else None
    if grant is not None:
        log.info("grant.changed", extra=_fields(grant))
        server.tell_grant_changed(grant_id)
    return grant


def refresh_expires_at(server: "AuthorizationServer", grant: Grant, issued_at: datetime) -> datetime:
    """When a refresh token issued then expires: idle too long, or the grant is too old."""
    lifetimes = server.lifetimes
    return min(issued_at + lifetimes.refresh_idle, grant.created_at + lifetimes.refresh_absolute)


def _expires_at(server: "AuthorizationServer", grant: Grant) -> datetime:
    """When the record goes: with the code until that is exchanged, then with the newest tokens."""
    if grant.rotated_at is None:
        return grant.code_expires_at
    tokens_end = grant.rotated_at + server.lifetimes.access_token + timedelta(minutes=2)
    return max(refresh_expires_at(server, grant, grant.rotated_at), tokens_end)


def _fields(grant: Grant) -> dict[str, str]:
    """What a log entry says of a grant."""
    scope = " ".join(sorted(grant.scopes))
    return {
        "grant_id": grant.grant_id,
        "client_id": grant.client_id,
        "client_name": grant.client_name,
        "subject": grant.subject,
        "scope": scope,
    }
