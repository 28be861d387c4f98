"""Owners: a random id each, made once, and the identities by which a provider knows the person."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol


@dataclass(frozen=True)
class Identity:
    """One way to sign in as the owner; `label` is masked where it is an e-mail address."""

    provider: str
    label: str
    created_at: datetime


@dataclass(frozen=True)
class Owner:
    """A tenant."""

    id: str
    created_at: datetime
    identities: tuple[Identity, ...]

    @property
    def label(self) -> str:
        """How the owner is named on pages and in `memory_status`."""
        return self.identities[0].label if self.identities else "an owner without a sign-in"


@dataclass(frozen=True)
class Holdings:
    """How much is kept for an owner."""

    memories: int
    revisions: int
    spaces: int
    events: int


class Owners(Protocol):
    """Who the memories belong to. An account that was closed is found by none of these, whoever asks."""

    def find(self, provider: str, issuer: str, subject: str) -> Owner | None:
        """The owner whom this identity signs in."""

    def create(self, provider: str, issuer: str, subject: str, label: str) -> Owner:
        """A new owner with this identity and a space called `default`; the present one if it exists."""

    def link(self, owner: str, provider: str, issuer: str, subject: str, label: str) -> None:
        """Lets a further identity sign in as the owner.

        Raises:
            StoreError: `not_found` for no such owner, `conflict` when it signs in as another owner.
        """

    def get(self, owner: str) -> Owner:
        """The owner.

        Raises:
            StoreError: `not_found`.
        """

    def list(self) -> Sequence[Owner]:
        """All owners, oldest first."""

    def holdings(self, owner: str) -> Holdings:
        """What deleting the account would delete; forgotten memories count."""

    def close(self, owner: str) -> None:
        """Ends the account: its identities and every record whose field `owner` or `subject` names it go.

        Closing again changes nothing, or goes on where a crash has ended it.
        """

    def erase(self, owner: str, limit: int) -> bool:
        """Deletes up to `limit` rows of each sort that a closed account still has, in one transaction.

        Returns:
            Whether anything is left; when nothing is, the owner itself is gone.
        """

    def closed(self) -> Sequence[str]:
        """The ids of closed accounts of which something is left."""


def identity_key(provider: str, issuer: str, subject: str) -> str:
    """The name under which an identity is stored: the subject itself is not needed again."""
    parts = "".join(f"{len(part)}:{part}" for part in (provider, issuer, subject))
    return hashlib.sha256(parts.encode()).hexdigest()
