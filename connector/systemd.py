"""What systemd is told of the server: that it is ready, that it lives, that it ends (sd_notify(3)).

systemd hands a service NOTIFY_SOCKET and WATCHDOG_USEC. They are no settings: nobody writes them, so they
are read here.
"""

import asyncio
import contextlib
import os
import socket
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass

import uvicorn


@dataclass(frozen=True)
class Supervisor:
    """The process that started this one, if it listens at all."""

    address: str | None = None
    """A path, or with a leading @ an abstract name."""
    watchdog_seconds: float | None = None
    """How long it waits for a sign of life; None when it does not watch."""

    @classmethod
    def from_env(cls, environ: Mapping[str, str] = os.environ) -> "Supervisor":
        """As the variables say; the watchdog only when it is this very process that is watched."""
        microseconds = environ.get("WATCHDOG_USEC", "")
        is_for_us = environ.get("WATCHDOG_PID", str(os.getpid())) == str(os.getpid())
        watched = microseconds.isdecimal() and int(microseconds) > 0 and is_for_us
        return cls(environ.get("NOTIFY_SOCKET") or None, int(microseconds) / 1e6 if watched else None)

    def tell(self, state: str) -> None:
        """Sends one line such as `READY=1`; a supervisor that does not listen is no reason to stop."""
        if self.address is None:
            return
        address = "\0" + self.address[1:] if self.address.startswith("@") else self.address
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as channel, contextlib.suppress(OSError):
            # A full queue must not hold up the event loop; the next sign of life follows soon.
            channel.setblocking(False)
            channel.sendto(state.encode(), address)

    @contextlib.asynccontextmanager
    async def watching(self) -> AsyncIterator[None]:
        """Ready from here on, with signs of life, and ending when the block does."""
        signs = asyncio.create_task(self._live())
        self.tell("READY=1")
        try:
            yield
        finally:
            signs.cancel()
            await asyncio.gather(signs, return_exceptions=True)
            self.tell("STOPPING=1")

    async def _live(self) -> None:
        """From the event loop itself: when that hangs, the signs stop and systemd starts the server anew."""
        while self.watchdog_seconds is not None:
            self.tell("WATCHDOG=1")
            await asyncio.sleep(self.watchdog_seconds / 3)


class SupervisedServer(uvicorn.Server):
    """uvicorn, which tells the supervisor between its sockets' opening and their end."""

    def __init__(self, config: uvicorn.Config, supervisor: Supervisor) -> None:
        super().__init__(config)
        self._supervisor = supervisor

    async def main_loop(self) -> None:
        """Runs while connections are accepted: after the start has succeeded, before the shutdown begins."""
        async with self._supervisor.watching():
            await super().main_loop()
