"""The real server, which kills itself at one write of its records, and whose clock a file turns.

`TEST_DIE=before:3` is SIGKILL before the third write after the trap is armed, `after:3` right after it;
the trap is armed by the existence of the file `armed` in the state directory. The file `clock` there holds
seconds that are added to the time.
"""

import os
import signal
from datetime import datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import Any

import uvicorn

from connector.app import Vademecum, create_app, utc_now
from connector.settings import Settings
from connector.wire import BoundedProtocol
from oauth.records import Value


class MortalRecords:
    """Counts writes, and dies at the chosen one."""

    def __init__(self, records: Any, when: str, number: int, armed: Path) -> None:
        self._records = records
        self._when = when
        self._left = number
        self._armed = armed

    def _write(self, verb: str, *arguments: Any) -> Any:
        is_armed = self._armed.exists()
        self._left -= int(is_armed)
        if is_armed and self._left == 0 and self._when == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        result = getattr(self._records, verb)(*arguments)
        if is_armed and self._left == 0:
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


class MortalVademecum(Vademecum):
    """An installation on mortal records."""

    @cached_property
    def records(self) -> Any:
        when, _, number = os.environ.get("TEST_DIE", "never:0").partition(":")
        armed = self.settings.state_dir / "armed"
        return MortalRecords(super().records, when, int(number), armed)


def main() -> None:
    settings = Settings.from_env()
    clock = settings.state_dir / "clock"

    def now() -> datetime:
        return utc_now() + timedelta(seconds=float(clock.read_text()) if clock.exists() else 0)

    app = create_app(MortalVademecum(settings, now))
    uvicorn.run(app, port=settings.port, http=BoundedProtocol, ws="none", log_config=None, access_log=False)


if __name__ == "__main__":
    main()
