"""Who may enter: those on a list, else the owners there are; newcomers by a link, or all if so set.

A list, where there is one, is the whole truth: it holds for owners too, and again whenever their account is
renewed. Somebody who was removed stays out, whatever else would let him in.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from connector.identity.provider import Identity
from connector.identity.setup_links import SetupLink, SetupLinks, SetupLinkSpent
from oauth.records import NEVER, Records
from store.errors import StoreError
from store.owners import Owner, Owners

log = logging.getLogger(__name__)

REMOVED_KIND = "removed_owner"
FIRST_KIND = "first_owner"
FIRST_CLAIM_LIFETIME = timedelta(minutes=1)

Reason = Literal["stranger", "unverified", "removed", "another_owner"]


class NotAdmitted(Exception):
    """Somebody whom the provider vouches for, and who may not enter here."""

    def __init__(self, identity: Identity, reason: Reason) -> None:
        super().__init__(reason)
        self.identity = identity
        self.reason = reason


@dataclass(frozen=True)
class AllowList:
    """Who may enter, by verified e-mail, by the domain of one, or by the provider's own id."""

    emails: frozenset[str] = frozenset()
    domains: frozenset[str] = frozenset()
    subjects: frozenset[str] = frozenset()

    @classmethod
    def of(
        cls, emails: tuple[str, ...] = (), domains: tuple[str, ...] = (), subjects: tuple[str, ...] = ()
    ) -> "AllowList":
        """The list as an operator spells it."""
        return cls(frozenset(map(_lower, emails)), frozenset(map(_lower, domains)), frozenset(subjects))

    def __bool__(self) -> bool:
        return bool(self.emails or self.domains or self.subjects)

    def admits(self, identity: Identity) -> bool:
        """Whether it names this account."""
        email = _lower(identity.verified_email)
        domain = email.rpartition("@")[2]
        return identity.subject in self.subjects or (
            bool(domain) and (email in self.emails or domain in self.domains)
        )


@dataclass(frozen=True)
class Admission:
    """The rules of one installation, and what its records say of owners who were removed."""

    provider: str
    records: Records
    owners: Owners
    now: Callable[[], datetime]
    allow_list: AllowList = AllowList()
    is_open: bool = False

    def is_set_up(self) -> bool:
        """Whether anybody could enter without a setup link."""
        return (
            self.is_open or bool(self.allow_list) or any(self._signs_in(each) for each in self.owners.list())
        )

    def _signs_in(self, owner: Owner) -> bool:
        return not self.is_removed(owner.id) and any(
            identity.provider == self.provider for identity in owner.identities
        )

    def is_removed(self, owner: str) -> bool:
        """Whether `vademecum owner remove` keeps this owner out."""
        return self.records.get(REMOVED_KIND, owner) is not None

    def remove(self, owner: str) -> None:
        """Keeps the owner out from now on; what is there to be ended, `end_access` ends."""
        self.records.create(REMOVED_KIND, owner, {"owner": owner}, NEVER)

    def readmit(self, owner: str) -> None:
        """Takes `remove` back."""
        self.records.delete(REMOVED_KIND, owner)

    def check(self, identity: Identity, owner: str) -> None:
        """Whether this owner may (still) come in with this account.

        Raises:
            NotAdmitted: removed, or no longer on the list.
        """
        if self.is_removed(owner):
            raise NotAdmitted(identity, "removed")
        self._check_list(identity)

    def admit(self, identity: Identity) -> Owner:
        """The owner whom this account signs in; a new one where the rules allow it.

        Raises:
            NotAdmitted: nobody here.
        """
        owner = self.owners.find(identity.provider, identity.issuer, identity.subject)
        if owner is not None:
            self.check(identity, owner.id)
            return owner
        self._check_list(identity)
        if not self.allow_list and not self.is_open:
            raise NotAdmitted(identity, "stranger")
        return self.create(identity)

    def admit_by_link(self, identity: Identity, links: SetupLinks, key: str) -> Owner:
        """Spends a setup link: the account is the owner's from now on, or a new owner's.

        Raises:
            NotAdmitted: removed, not on the list, or it signs in as somebody else; the link still works.
            SetupLinkSpent: nothing was changed.
        """
        link = links.find(key)
        if link is None or not self.is_good(link):
            raise SetupLinkSpent
        self._check_list(identity)
        known = self.owners.find(identity.provider, identity.issuer, identity.subject)
        if known is not None and known.id != link.owner:
            raise NotAdmitted(identity, "removed" if self.is_removed(known.id) else "another_owner")
        if links.take(key) is None:
            raise SetupLinkSpent
        if link.owner:
            return self.link(identity, link.owner)
        # Of two first links that race, one makes the owner. The claim need not outlive the race.
        is_first = not link.new_owner
        if is_first and not self.records.create(FIRST_KIND, "claim", {}, self.now() + FIRST_CLAIM_LIFETIME):
            raise SetupLinkSpent
        if is_first and self.has_owner():
            raise SetupLinkSpent
        return self.create(identity, link.new_owner)

    def is_good(self, link: SetupLink) -> bool:
        """Whether the link's time has not passed: its owner is not removed, the first owner not there yet."""
        if link.owner:
            return not self.is_removed(link.owner)
        return bool(link.new_owner) or not self.has_owner()

    def has_owner(self) -> bool:
        """Whether the server belongs to somebody, however they sign in."""
        return any(not self.is_removed(owner.id) for owner in self.owners.list())

    def create(self, identity: Identity, name: str = "") -> Owner:
        """A new owner with this account."""
        label = name or mask(identity.label)
        owner = self.owners.create(identity.provider, identity.issuer, identity.subject, label)
        log.info("owner.created", extra={"owner": owner.id, "provider": identity.provider})
        return owner

    def link(self, identity: Identity, owner: str) -> Owner:
        """Lets a further account sign in as the owner.

        Raises:
            NotAdmitted: it signs in as somebody else.
            StoreError: `not_found`.
        """
        label = mask(identity.label)
        try:
            self.owners.link(owner, identity.provider, identity.issuer, identity.subject, label)
        except StoreError as error:
            if error.code != "conflict":
                raise
            raise NotAdmitted(identity, "another_owner") from None
        log.info("owner.linked", extra={"owner": owner, "provider": identity.provider})
        return self.owners.get(owner)

    def _check_list(self, identity: Identity) -> None:
        if self.allow_list and not self.allow_list.admits(identity):
            by_email = self.allow_list.emails or self.allow_list.domains
            is_unverified = by_email and not identity.verified_email and "@" in identity.label
            raise NotAdmitted(identity, "unverified" if is_unverified else "stranger")


def mask(label: str) -> str:
    """An e-mail address as it is kept: enough to be recognised by whoever has it."""
    local, at, domain = label.rpartition("@")
    return f"{local[:2]}…@{domain}" if at and local else label


def _lower(text: str) -> str:
    """ASCII only: full Unicode folding would make look-alikes equal (the Kelvin sign is no k)."""
    return text.lower() if text.isascii() else text
