"""Links that work once, within 24 hours: their reader becomes the first owner, a new one, or an owner again.

The link's token is random and only its digest is kept. Looking at the page spends nothing (mail scanners and
link previews look); signing in by it does.
"""

import hashlib
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from connector.identity.provider import IdentityProvider
from oauth.records import Records, Value

KIND = "setup_link"
LIFETIME = timedelta(hours=24)


class SetupLinkSpent(Exception):
    """The link was used, has expired, or never was; or the server has got its first owner meanwhile."""


@dataclass(frozen=True)
class SetupLink:
    """What a link is good for; without either field it makes the first owner."""

    owner: str = ""
    """The owner to whom it gives another way in."""
    new_owner: str = ""
    """The name of an owner who is made when it is used."""


@dataclass(frozen=True)
class SetupLinks:
    """The links of one installation, by the digest of their token."""

    records: Records
    now: Callable[[], datetime]

    def issue(self, link: SetupLink, public_url: str) -> str:
        """The address to hand over."""
        token = secrets.token_urlsafe(32)
        value = {"owner": link.owner, "new_owner": link.new_owner}
        self.records.create(KIND, digest(token), value, self.now() + LIFETIME)
        return f"{public_url}/setup/{token}"

    def find(self, key: str) -> SetupLink | None:
        """The link, unless it was used or has expired."""
        return _parse(self.records.get(KIND, key))

    def take(self, key: str) -> SetupLink | None:
        """The link, for the one who asks first."""
        return _parse(self.records.take(KIND, key))


def issue_setup_link(provider: IdentityProvider, owner: str | None, public_url: str) -> str:
    """A link by which this owner gets a passphrase or account; None means the first owner."""
    return SetupLinks(provider.records, provider.now).issue(SetupLink(owner=owner or ""), public_url)


def digest(token: str) -> str:
    """The name under which a link is kept."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def _parse(value: Value | None) -> SetupLink | None:
    return None if value is None else SetupLink(value["owner"], value.get("new_owner", ""))
