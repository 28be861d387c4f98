"""Refresh token rotation that survives the real world (OAuth 2.1 §4.3.1, RFC 9700 §4.14.2).

Hosts refresh from several nodes and lose answers. So the previous token, presented again shortly after and
while its successor is unused, gets that same successor; presented later it is reuse, and the grant ends.
"""

import logging
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from oauth import derived_tokens, grants
from oauth.derived_tokens import RefreshToken
from oauth.errors import InvalidGrant
from oauth.grants import Grant

if TYPE_CHECKING:
    from oauth.server import AuthorizationServer

log = logging.getLogger(__name__)


class _Reused(InvalidGrant):
    """An authentic refresh token whose successor is in use: one of the two was stolen."""


def rotate(server: "AuthorizationServer", token: RefreshToken) -> tuple[Grant, str]:
    """The next refresh token, after the step is committed: a crash costs an answer, never the session.

    Args:
        server: where the grant is kept.
        token: authentic, presented by the grant's own client in a request that is right in everything else.

    Returns:
        The grant and its new refresh token.

    Raises:
        InvalidGrant: expired, or reused, and then the whole grant has ended.
        TemporarilyUnavailable: the identity provider does not answer; nothing has changed.
    """
    _renew_identity(server, token)
    try:
        grant = grants.step(server, token.grant_id, lambda grant: _rotated(server, grant, token.generation))
    except _Reused:
        log.warning(
            "refresh_token.reused", extra={"grant_id": token.grant_id, "generation": token.generation}
        )
        grants.end(server, token.grant_id)
        raise
    if grant is None:
        raise InvalidGrant("the refresh token is unknown or expired")
    log.info("tokens.refreshed", extra=_fields(grant) | {"generation": grant.generation})
    return grant, derived_tokens.derive_refresh_token(server, grant.grant_id, grant.generation)


def _renew_identity(server: "AuthorizationServer", token: RefreshToken) -> None:
    """Asks the identity provider whether the subject may still come in; never for a replay."""
    grant = grants.find(server, token.grant_id)
    if server.renew_identity is None or grant is None or token.generation < grant.generation:
        return
    try:
        server.renew_identity(grant.subject)
    except InvalidGrant:
        grants.end(server, grant.grant_id)
        raise


def _rotated(server: "AuthorizationServer", grant: Grant, generation: int) -> Grant:
    """What presenting this generation makes of the grant."""
    now = server.now()
    if generation >= grant.generation:
        # A generation from the future is authentic too: the store came back from a backup.
        _check_expiry(server, grant, grant.rotated_at, now)
        return replace(
            grant,
            generation=generation + 1,
            rotated_at=now,
            previous_rotated_at=grant.rotated_at,
            last_used_at=now,
        )
    if generation == grant.generation - 1 and _is_recent(server, grant.rotated_at, now):
        _check_expiry(server, grant, grant.previous_rotated_at, now)
        log.info("refresh_token.repeated", extra=_fields(grant))
        return grant
    raise _Reused("the refresh token was used before")


def _check_expiry(
    server: "AuthorizationServer", grant: Grant, issued_at: datetime | None, now: datetime
) -> None:
    if issued_at is None or now >= grants.refresh_expires_at(server, grant, issued_at):
        raise InvalidGrant("the refresh token has expired")


def _is_recent(server: "AuthorizationServer", rotated_at: datetime | None, now: datetime) -> bool:
    """Within the replay window, whichever of two instances has the faster clock."""
    return rotated_at is not None and abs(now - rotated_at) <= server.lifetimes.replay_window


def _fields(grant: Grant) -> dict[str, str | int]:
    """What a log entry says of a grant."""
    return {"grant_id": grant.grant_id, "client_id": grant.client_id, "client_name": grant.client_name}
