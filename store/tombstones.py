"""Which accounts were deleted, so that they stay deleted when an older database is put back.

Kept beside the database and not in it: what is restored must not bring its own past along. Only a digest of
the owner's id stands there, and that id was random.
"""

import hashlib
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

from store.errors import StoreError

FILE_NAME = "deleted-accounts"


class Tombstones(Protocol):
    """Outlives the rest of the data. Nothing is ever taken away from it."""

    def add(self, owner: str, at: datetime) -> None:
        """Once this returns, it is on disk.

        Raises:
            StoreError: `unavailable`; then nothing may be deleted.
        """

    def holds(self, owner: str) -> bool:
        """Whether the account was deleted.

        Raises:
            StoreError: `unavailable`.
        """


class FileTombstones:
    """A line for each: digest, moment. Appending is atomic, so that several processes may share the file."""

    def __init__(self, state_dir: Path) -> None:
        self._path = state_dir / FILE_NAME

    def add(self, owner: str, at: datetime) -> None:
        """Adding again writes nothing."""
        if self.holds(owner):
            return
        # A line of its own whatever stands before it: a crash may have cut that short.
        line = f"\n{_digest(owner)} {at.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}\n"
        try:
            descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            try:
                os.write(descriptor, line.encode())
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
            _sync_directory(self._path.parent)
        except OSError as error:
            raise StoreError("unavailable", f"{self._path} cannot be written: {error}") from error

    def holds(self, owner: str) -> bool:
        """Reads the file: another process may have written to it."""
        try:
            lines = self._path.read_text().splitlines()
        except FileNotFoundError:
            return False
        except OSError as error:
            raise StoreError("unavailable", f"{self._path} cannot be read: {error}") from error
        return any(line.split(" ")[0] == _digest(owner) for line in lines)


def _digest(owner: str) -> str:
    return hashlib.sha256(owner.encode()).hexdigest()


def _sync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
