"""Personal access tokens: long-lived bearer tokens that an owner makes for an agent without a browser.

A record of kind `personal_token` per token, with a hash of its secret and the profile that it carries. To
everything else the token is an app named `pat:<id>`.
"""

import hashlib
import hmac
import logging
import re
import secrets
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from oauth.client_metadata import displayable
from oauth.errors import InvalidToken
from oauth.records import NEVER, Value

if TYPE_CHECKING:
    from oauth.server import AuthorizationServer

log = logging.getLogger(__name__)

KIND = "personal_token"
PREFIX = "vmc_pat_"
USE_NOTED_AFTER = timedelta(minutes=10)
"""How exact the last use is; noting each would cost a write per call."""

_TOKEN = re.compile(r"vmc_pat_([0-9a-f]{32})\.([A-Za-z0-9_-]{43})")
_LIMITS = ("tools", "states", "spaces", "origins")
_TIMES = ("created_at", "expires_at", "last_used_at")
_TOKEN_ID = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True)
class Profile:
    """What a token may do and see; None means no limit but the owner's own."""

    scopes: frozenset[str]
    tools: tuple[str, ...] | None = None
    states: tuple[str, ...] | None = None
    spaces: tuple[str, ...] | None = None
    origins: tuple[str, ...] | None = None

    def to_value(self) -> Value:
        """A JSON object."""
        limits: Value = {
            name: None if limit is None else list(limit) for name, limit in self.__dict__.items()
        }
        return limits | {"scopes": sorted(self.scopes)}

    @classmethod
    def from_value(cls, value: Value) -> "Profile":
        """The profile that `to_value` wrote down."""
        limits = {name: None if value[name] is None else tuple(value[name]) for name in _LIMITS}
        return cls(frozenset(value["scopes"]), **limits)


@dataclass(frozen=True)
class PersonalToken:
    """A token as its owner sees it; its secret was shown once."""

    token_id: str
    subject: str
    name: str
    profile: Profile
    created_at: datetime
    expires_at: datetime | None
    """None until it is revoked."""
    last_used_at: datetime | None
    epoch: str
    secret_hash: str = field(repr=False)

    @property
    def app(self) -> str:
        """The name of the app that the token is."""
        return f"pat:{self.token_id}"

    def to_value(self) -> Value:
        """The record's value."""
        times = {name: time and time.isoformat() for name, time in self.__dict__.items() if name in _TIMES}
        return {**self.__dict__, **times, "profile": self.profile.to_value()}

    @classmethod
    def from_value(cls, value: Value) -> "PersonalToken":
        """The token of a record's value."""
        times = {name: value[name] and datetime.fromisoformat(value[name]) for name in _TIMES}
        return cls(**{**value, **times, "profile": Profile.from_value(value["profile"])})


def create(
    server: "AuthorizationServer",
    subject: str,
    name: str,
    profile: Profile,
    expires_at: datetime | None = None,
) -> tuple[PersonalToken, str]:
    """Makes a token for a person.

    Args:
        server: where it is kept.
        subject: whose memories it opens.
        name: what the owner calls it; it stands for the client in events.
        profile: what it may do; at least one scope that exists.
        expires_at: None for a token that only revocation ends.

    Returns:
        The token, and the string to show once.
    """
    token_id, secret = secrets.token_hex(16), secrets.token_urlsafe(32)
    token = PersonalToken(
        token_id=token_id,
        subject=subject,
        name=displayable(name) or "Unnamed token",
        profile=replace(profile, scopes=profile.scopes & frozenset(server.scopes.supported)),
        created_at=server.now(),
        expires_at=expires_at,
        last_used_at=None,
        epoch=server.keys.ring().epoch,
        secret_hash=_hash(secret),
    )
    server.records.create(KIND, token_id, token.to_value(), expires_at or NEVER)
    log.info("personal_token.created", extra={"token_id": token_id, "subject": subject})
    return token, f"{PREFIX}{token_id}.{secret}"


def is_personal_token(bearer: str) -> bool:
    """Whether a bearer token is meant to be one of these."""
    return bearer.startswith(PREFIX)


def verify(server: "AuthorizationServer", bearer: str) -> PersonalToken:
    """The token that a bearer shows; reads the store, and notes the use every now and then.

    Raises:
        InvalidToken: unknown, revoked or expired.
    """
    match = _TOKEN.fullmatch(bearer)
    value = server.records.get(KIND, match[1]) if match is not None else None
    if match is None or value is None:
        raise InvalidToken("the token is unknown, expired or revoked")
    token = PersonalToken.from_value(value)
    is_authentic = hmac.compare_digest(token.secret_hash, _hash(match[2]))
    if not is_authentic or token.epoch != server.keys.ring_of(token.epoch).epoch:
        raise InvalidToken("the token is unknown, expired or revoked")
    return _note_use(server, token, value)


def _note_use(server: "AuthorizationServer", token: PersonalToken, value: Value) -> PersonalToken:
    now = server.now()
    if token.last_used_at is not None and now < token.last_used_at + USE_NOTED_AFTER:
        return token
    used = replace(token, last_used_at=now)
    # Losing the race is fine: whoever won noted the same.
    server.records.swap(KIND, token.token_id, value, used.to_value(), token.expires_at or NEVER)
    return used


def of_subject(server: "AuthorizationServer", subject: str) -> list[PersonalToken]:
    """All of a person's tokens, oldest first."""
    values = server.records.select(KIND, "subject", subject)
    return sorted((PersonalToken.from_value(value) for value in values), key=lambda token: token.created_at)


def revoke(server: "AuthorizationServer", token_id: str) -> None:
    """Ends the token; whoever caches it by `on_grant_changed` hears `pat:<id>`."""
    if _TOKEN_ID.fullmatch(token_id):
        server.records.delete(KIND, token_id)
        log.info("personal_token.revoked", extra={"token_id": token_id})
        server.tell_grant_changed(f"pat:{token_id}")


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
