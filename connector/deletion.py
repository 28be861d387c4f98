"""Deleting an account: everything of the owner's, resumable, and once for all.

In this order: a tombstone, which makes the rest a promise; what opens the account, in one transaction; then
what it holds, step by step. Whatever ends the process in between, the next start goes on, and a restored
older database is treated alike.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from oauth import grants, personal_tokens
from oauth.server import AuthorizationServer
from store.owners import Holdings, Owners
from store.tombstones import Tombstones

log = logging.getLogger(__name__)

STEP = 200
"""Rows of each sort in one transaction: a fraction of a second in which others wait."""


@dataclass(frozen=True)
class Preview:
    """What deleting the account deletes."""

    holdings: Holdings
    apps: int
    tokens: int


@dataclass(frozen=True)
class Backup:
    """A file that still holds what was deleted since it was made."""

    name: str
    made_at: datetime
    size_bytes: int


@dataclass(frozen=True)
class AccountDeletion:
    """Deletes accounts; synchronous, for a worker thread or the command line."""

    server: AuthorizationServer
    owners: Owners
    tombstones: Tombstones
    state_dir: Path
    now: Callable[[], datetime]

    def preview(self, owner: str) -> Preview:
        """Counts, for the person who is about to decide."""
        return Preview(
            self.owners.holdings(owner),
            len(grants.of_subject(self.server, owner)),
            len(personal_tokens.of_subject(self.server, owner)),
        )

    def backups(self) -> list[Backup]:
        """The copies of the database in the state directory, newest first; others only the operator knows."""
        found = [*self.state_dir.glob("backups/*"), *self.state_dir.glob("*.before-*.db")]
        found += self.state_dir.glob("*replaced-*")
        stats = [(path.name, path.stat()) for path in found if path.is_file() and path.name[0] != "."]
        backups = [
            Backup(name, datetime.fromtimestamp(stat.st_mtime, self.now().tzinfo), stat.st_size)
            for name, stat in stats
        ]
        return sorted(backups, key=lambda backup: (backup.made_at, backup.name), reverse=True)

    def delete(self, owner: str, progress: Callable[[int], None] = lambda erased: None) -> None:
        """Both halves; `progress` is told how many memories a step erased at most.

        Raises:
            StoreError: `not_found`; `unavailable`, and then deleting again goes on where it ended.
        """
        self.close(owner)
        self.erase(owner, progress)

    def close(self, owner: str) -> None:
        """From now on the account does not exist for anybody: sessions, tokens and codes are dead.

        Raises:
            StoreError: `not_found`; `unavailable`.
        """
        self.owners.get(owner)
        self.tombstones.add(owner, self.now())
        self._close(owner)

    def erase(self, owner: str, progress: Callable[[int], None] = lambda erased: None) -> None:
        """Deletes what a closed account holds."""
        while self.owners.erase(owner, STEP):
            progress(STEP)
        log.info("account.deleted", extra={"owner": owner})

    def close_restored(self) -> None:
        """Closes what an older database has brought back; to be called before anybody is served."""
        for owner in self.owners.list():
            if self.tombstones.holds(owner.id):
                log.warning("account.restored_though_deleted", extra={"owner": owner.id})
                self._close(owner.id)

    def resume(self) -> int:
        """Finishes what was begun, here or elsewhere; returns how many accounts that was."""
        unfinished = self.owners.closed()
        for owner in unfinished:
            self.erase(owner)
        return len(unfinished)

    def _close(self, owner: str) -> None:
        apps = [grant.grant_id for grant in grants.of_subject(self.server, owner)]
        apps += [token.app for token in personal_tokens.of_subject(self.server, owner)]
        self.owners.close(owner)
        log.info("account.closed", extra={"owner": owner})
        for app in apps:
            self.server.tell_grant_changed(app)
