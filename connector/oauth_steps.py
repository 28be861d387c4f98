"""The steps of authorization by the names of their events, for the log and the metrics alike.

A step is where on its way a client or an owner is, an outcome how it went: both from fixed lists, so that no
stranger can make up a new one.
"""

from collections.abc import Mapping
from typing import NamedTuple


class Step(NamedTuple):
    """One step's name, and how it ended: `ok`, or a word for what went wrong."""

    step: str
    outcome: str


EVENTS = {
    "client.registered": Step("register", "ok"),
    "client.preregistered": Step("register", "ok"),
    "authorization.requested": Step("authorize", "ok"),
    "authorization.refused": Step("authorize", "refused"),
    "authorization.unidentified": Step("authorize", "unidentified"),
    "form.refused": Step("form", "refused"),
    "sign_in.succeeded": Step("sign_in", "ok"),
    "sign_in.refused": Step("sign_in", "refused"),
    "sign_in.delayed": Step("sign_in", "delayed"),
    "sign_in.not_an_owner": Step("sign_in", "not_admitted"),
    "sign_in.not_admitted": Step("sign_in", "not_admitted"),
    "sign_in.unavailable": Step("sign_in", "unavailable"),
    "consent.allowed": Step("consent", "ok"),
    "consent.denied": Step("consent", "denied"),
    "code.issued": Step("code", "ok"),
    "code.redeemed": Step("redeem", "ok"),
    "code.replayed": Step("redeem", "replayed"),
    "tokens.refreshed": Step("refresh", "ok"),
    "refresh_token.repeated": Step("refresh", "repeated"),
    "refresh_token.reused": Step("refresh", "reused"),
    "identity.renewed": Step("identity", "ok"),
    "identity.not_renewed": Step("identity", "unavailable"),
    "identity.ended": Step("identity", "ended"),
    "grant.ended": Step("end", "ok"),
    "personal_token.created": Step("personal_token", "ok"),
    "personal_token.revoked": Step("end", "ok"),
    "keys.rotated": Step("keys", "ok"),
    "keys.replaced": Step("keys", "replaced"),
}

REFUSED = "request.refused"
"""The programs' endpoints say by `path` and `error` what they refused."""
_PATHS = {"/token": "token", "/register": "register", "/revoke": "revoke"}
_ERRORS = frozenset(
    {
        "invalid_request",
        "invalid_client",
        "invalid_grant",
        "unauthorized_client",
        "unsupported_grant_type",
        "invalid_scope",
        "invalid_target",
        "invalid_redirect_uri",
        "invalid_client_metadata",
        "temporarily_unavailable",
    }
)


def step_of(event: str, fields: Mapping[str, object]) -> Step | None:
    """The step that a log entry tells of; None when it tells of something else.

    Args:
        event: The entry's fixed name.
        fields: What the entry says besides.
    """
    if event != REFUSED:
        return EVENTS.get(event)
    error = fields.get("error")
    return Step(_PATHS.get(str(fields.get("path")), "other"), str(error) if error in _ERRORS else "refused")
