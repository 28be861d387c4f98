"""What a browser has begun and not finished: an authorization request, or the way to a page behind sign-in.

Kept on the server for ten minutes, bound to the browser by its cookie's digest, handed out once. Nothing of
it travels through the browser but its id, so nothing in a form or a URL can change it (OAuth 2.1 §7.11).
"""

import secrets
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from oauth.authorize import AuthorizationRequest
from oauth.records import Records, Value

KIND = "pending"
LIFETIME = timedelta(minutes=10)


@dataclass(frozen=True)
class Pending:
    """One unfinished matter of one browser."""

    id: str
    browser: str
    expires_at: datetime
    request: AuthorizationRequest | None
    path: str
    """Where signing in leads to; one of our own paths, made here."""
    setup_link: str = ""
    """The key of the setup link that signing in spends, if there is one."""


@dataclass(frozen=True)
class PendingMatters:
    """The unfinished matters of all browsers."""

    records: Records
    now: Callable[[], datetime]

    def open_request(self, browser: str, request: AuthorizationRequest) -> Pending:
        """Keeps an authorization request until its owner has decided."""
        pending_id = secrets.token_urlsafe(24)
        return self._open(pending_id, browser, request, f"/consent?request={pending_id}")

    def open_path(self, browser: str, path: str) -> Pending:
        """Keeps the way to a page until somebody has signed in."""
        return self._open(secrets.token_urlsafe(24), browser, None, path)

    def open_setup(self, browser: str, setup_link: str, path: str) -> Pending:
        """Keeps the key of a setup link until somebody has signed in by it."""
        return self._open(secrets.token_urlsafe(24), browser, None, path, setup_link)

    def _open(
        self,
        pending_id: str,
        browser: str,
        request: AuthorizationRequest | None,
        path: str,
        setup_link: str = "",
    ) -> Pending:
        pending = Pending(pending_id, browser, self.now() + LIFETIME, request, path, setup_link)
        self.records.create(KIND, pending_id, _value(pending), pending.expires_at)
        return pending

    def find(self, pending_id: str) -> Pending | None:
        """The matter; whose browser it is, is for the caller to compare."""
        value = self.records.get(KIND, pending_id)
        return _parse(pending_id, value) if value else None

    def take(self, pending_id: str) -> Pending | None:
        """The matter, for the one who asks first."""
        value = self.records.take(KIND, pending_id)
        return _parse(pending_id, value) if value else None

    def hand_over(self, pending: Pending, browser: str) -> None:
        """Binds it to the cookie that signing in made; nothing happens if it was decided meanwhile."""
        bound = replace(pending, browser=browser)
        self.records.swap(KIND, pending.id, _value(pending), _value(bound), pending.expires_at)


def _value(pending: Pending) -> Value:
    return {
        "browser": pending.browser,
        "expires_at": pending.expires_at.isoformat(),
        "request": pending.request.to_value() if pending.request else None,
        "path": pending.path,
        "setup_link": pending.setup_link,
    }


def _parse(pending_id: str, value: Value) -> Pending:
    request = AuthorizationRequest.from_value(value["request"]) if value["request"] else None
    return Pending(
        pending_id,
        value["browser"],
        datetime.fromisoformat(value["expires_at"]),
        request,
        value["path"],
        value["setup_link"],
    )
