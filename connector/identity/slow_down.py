"""Failed sign-ins slow down; successful ones never do (OAUTH "Limits", OAuth 2.1 §7.7).

Two counters, kept as records so that every process and a restart agree. An account's counter doubles the
wait with each failure. The global one closes the door for the rest of its window, for browsers that no
owner has used: guessing at many accounts from many addresses ends there, and the owner still gets in.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from oauth.records import Records

KIND = "sign_in_failures"
FREE_FAILURES = 5
LONGEST_WAIT = timedelta(minutes=15)
REMEMBERED = timedelta(hours=24)
GLOBAL_WINDOW = timedelta(minutes=10)
GLOBAL_FAILURES = 100
_GLOBAL = "global"
_NOTHING = timedelta(0)


@dataclass(frozen=True)
class SlowDown:
    """Counts failures in records."""

    records: Records
    now: Callable[[], datetime]

    def remaining(self, account: str, *, known_browser: bool) -> timedelta:
        """How long this account, or this stranger, must still wait; zero when it need not."""
        own = self._left(_key(account))
        return own if known_browser else max(own, self._left(_GLOBAL))

    def failed(self, account: str) -> None:
        """Counts one wrong credential."""
        now = self.now()
        self._count(_key(account), REMEMBERED, lambda failures: now + _wait_after(failures))
        self._count(
            _GLOBAL, None, lambda failures: now if failures < GLOBAL_FAILURES else now + GLOBAL_WINDOW
        )

    def succeeded(self, account: str) -> None:
        """Forgets the account's failures."""
        self.records.delete(KIND, _key(account))

    def _left(self, key: str) -> timedelta:
        value = self.records.get(KIND, key)
        return (
            max(datetime.fromisoformat(value["blocked_until"]) - self.now(), _NOTHING) if value else _NOTHING
        )

    def _count(
        self, key: str, remembered: timedelta | None, blocked_until: Callable[[int], datetime]
    ) -> None:
        """Adds one failure; `remembered` since the last one, or within a fixed window when None."""
        while True:
            old = self.records.get(KIND, key)
            failures = old["failures"] + 1 if old else 1
            if remembered is None and old is not None:
                expires_at = datetime.fromisoformat(old["expires_at"])
            else:
                expires_at = self.now() + (remembered or GLOBAL_WINDOW)
            new = {
                "failures": failures,
                "blocked_until": min(blocked_until(failures), expires_at).isoformat(),
                "expires_at": expires_at.isoformat(),
            }
            if old is None and self.records.create(KIND, key, new, expires_at):
                return
            if old is not None and self.records.swap(KIND, key, old, new, expires_at):
                return


def _wait_after(failures: int) -> timedelta:
    if failures < FREE_FAILURES:
        return _NOTHING
    return min(timedelta(seconds=2.0 ** min(failures - FREE_FAILURES, 20)), LONGEST_WAIT)


def _key(account: str) -> str:
    """A digest: what somebody types as an account's name is never a key of the store."""
    return hashlib.sha256(b"account\0" + account.encode()).hexdigest()
