"""Sessions: which browser is signed in as whom. Kept on the server under the cookie's digest.

Signing in always makes a new cookie, so that one planted before is worthless after (CWE-384); signing out
deletes the record, so that a copied cookie is worthless too.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from connector.pages import cookies
from oauth.records import Records, Value

KIND = "session"
KNOWN_KIND = "known_browser"
IDLE_LIFETIME = timedelta(days=14)
ABSOLUTE_LIFETIME = timedelta(days=90)
KNOWN_LIFETIME = timedelta(days=400)
FRESH_LIFETIME = timedelta(minutes=5)
"""What cannot be undone asks for a sign-in no older than this."""
TOUCH_INTERVAL = timedelta(hours=1)
"""How stale `seen_at` may become: a page view should seldom cost a write."""


@dataclass(frozen=True)
class Session:
    """A signed-in browser."""

    key: str
    owner: str
    earlier: str
    """The browser's key before it signed in: what it began then, in another tab, is still its own."""
    created_at: datetime
    seen_at: datetime

    @property
    def expires_at(self) -> datetime:
        """Idle or absolute, whichever ends first."""
        return min(self.seen_at + IDLE_LIFETIME, self.created_at + ABSOLUTE_LIFETIME)

    def is_fresh(self, now: datetime) -> bool:
        """Whether whoever sits there has shown who they are within the last minutes: each sign-in is a new
        session."""
        return timedelta(0) <= now - self.created_at <= FRESH_LIFETIME

    def is_browser(self, key: str) -> bool:
        """Whether `key` is this browser's, now or before it signed in."""
        return key in (self.key, self.earlier)


@dataclass(frozen=True)
class Sessions:
    """The sessions of all browsers."""

    records: Records
    now: Callable[[], datetime]

    def find(self, cookie: str) -> Session | None:
        """The cookie's session; None when nobody is signed in with it."""
        value = self.records.get(KIND, cookies.digest(cookie))
        session = _parse(value) if value else None
        if session is None or session.expires_at <= self.now():
            return None
        if self.now() - session.seen_at >= TOUCH_INTERVAL:
            touched = Session(session.key, session.owner, session.earlier, session.created_at, self.now())
            self.records.swap(KIND, session.key, _value(session), _value(touched), touched.expires_at)
        return session

    def start(self, owner: str, cookie: str) -> str:
        """Signs the browser of `cookie` in; returns the new cookie, which replaces it."""
        new, now = cookies.new_value(), self.now()
        session = Session(cookies.digest(new), owner, cookies.digest(cookie), now, now)
        self.records.create(KIND, session.key, _value(session), session.expires_at)
        self._remember(new, owner)
        self._forget(cookie)
        return new

    def end(self, cookie: str) -> str:
        """Signs out; returns the new cookie. The browser stays known to its owner."""
        owner, new = self.known_owner(cookie), cookies.new_value()
        self._forget(cookie)
        if owner is not None:
            self._remember(new, owner)
        return new

    def end_all(self, owner: str) -> None:
        """Signs every browser of the owner out."""
        for value in self.records.select(KIND, "owner", owner):
            self.records.delete(KIND, value["key"])

    def known_owner(self, cookie: str) -> str | None:
        """Who last signed in with this browser, whether or not the session still lives."""
        value = self.records.get(KNOWN_KIND, cookies.digest(cookie))
        owner: str | None = value["owner"] if value else None
        return owner

    def _remember(self, cookie: str, owner: str) -> None:
        expires_at = self.now() + KNOWN_LIFETIME
        self.records.create(KNOWN_KIND, cookies.digest(cookie), {"owner": owner}, expires_at)

    def _forget(self, cookie: str) -> None:
        self.records.delete(KIND, cookies.digest(cookie))
        self.records.delete(KNOWN_KIND, cookies.digest(cookie))


def _value(session: Session) -> Value:
    return {
        "key": session.key,
        "owner": session.owner,
        "earlier": session.earlier,
        "created_at": session.created_at.isoformat(),
        "seen_at": session.seen_at.isoformat(),
    }


def _parse(value: Value) -> Session:
    created_at, seen_at = (datetime.fromisoformat(value[name]) for name in ("created_at", "seen_at"))
    return Session(value["key"], value["owner"], value["earlier"], created_at, seen_at)
