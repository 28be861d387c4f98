"""The real command line, on records that kill their own process at one write and a clock that a file turns.

Files in the state directory rule it, so that a test can change its mind while the process runs: `trap` holds
`before:3` or `after:3` (SIGKILL before or right after the third write from now on), and `clock` the seconds
that are added to the time. `erase-trap` holds the step of an account's deletion to die before.
`TEST_BUSY_MS` is how long a write waits for another process's lock.
"""

import os
import signal
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import Any

import connector.app
from connector.access import Access
from connector.app import Vademecum, utc_now
from connector.cli import main
from connector.commands import output
from connector.settings import Settings
from oauth.records import Value
from oauth.server import AuthorizationServer
from store.profiles import AppProfile
from store.sqlite import database


class MortalRecords:
    """Counts the writes while a trap is set, and dies at the chosen one."""

    def __init__(self, records: Any, trap: Path) -> None:
        self._records = records
        self._trap = trap
        self._count = 0

    def _write(self, verb: str, *arguments: Any) -> Any:
        is_set = self._trap.exists()
        self._count = self._count + 1 if is_set else 0
        when, _, number = self._trap.read_text().partition(":") if is_set else ("never", "", "0")
        is_this_one = self._count == int(number)
        if is_this_one and when == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        result = getattr(self._records, verb)(*arguments)
        if is_this_one and when == "after":
            os.kill(os.getpid(), signal.SIGKILL)
        return result

    def create(self, kind: str, key: str, value: Value, expires_at: datetime) -> bool:
        return bool(self._write("create", kind, key, value, expires_at))

    def take(self, kind: str, key: str) -> Value | None:
        taken: Value | None = self._write("take", kind, key)
        return taken

    def swap(self, kind: str, key: str, old: Value, new: Value, expires_at: datetime) -> bool:
        return bool(self._write("swap", kind, key, old, new, expires_at))

    def delete(self, kind: str, key: str) -> None:
        self._write("delete", kind, key)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._records, name)


class MortalOwners:
    """Counts the steps of a deletion, and dies before the chosen one."""

    def __init__(self, owners: Any, trap: Path) -> None:
        self._owners = owners
        self._trap = trap
        self._count = 0

    def erase(self, owner: str, limit: int) -> bool:
        self._count += 1
        if self._trap.exists() and self._count == int(self._trap.read_text()):
            os.kill(os.getpid(), signal.SIGKILL)
        return bool(self._owners.erase(owner, limit))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._owners, name)


class MortalVademecum(Vademecum):
    """An installation on mortal records."""

    @cached_property
    def owners(self) -> Any:
        return MortalOwners(super().owners, self.settings.state_dir / "erase-trap")

    @cached_property
    def records(self) -> Any:
        return MortalRecords(super().records, self.settings.state_dir / "trap")


def turned_clock(file: Path) -> Callable[[], datetime]:
    """The time, as many seconds off as the file says now."""

    def now() -> datetime:
        return utc_now() + timedelta(seconds=float(file.read_text()) if file.exists() else 0)

    return now


def mortal(settings: Settings) -> Vademecum:
    return MortalVademecum(settings, turned_clock(settings.state_dir / "clock"))


def access(
    server: AuthorizationServer, now: Callable[[], datetime], profile_of: Callable[[str, str], AppProfile]
) -> Access:
    """The guard's five seconds pass on the turned clock too."""
    return Access(server, now, profile_of, monotonic=lambda: now().timestamp())


if __name__ == "__main__":
    vars(output)["Vademecum"] = mortal
    vars(connector.app)["Access"] = access
    database.BUSY_MS = int(os.environ.get("TEST_BUSY_MS", database.BUSY_MS))
    main()
