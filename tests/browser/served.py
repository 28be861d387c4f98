"""The application on a port of this process, so that a browser test can turn its clock."""

import contextlib
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import uvicorn

from connector.app import Vademecum, create_app
from connector.settings import Settings
from connector.wire import BoundedProtocol
from tests.processes import free_port


@dataclass
class MovableClock:
    """The real time, and what a test has added to it: providers' tokens bear the real one."""

    ahead: timedelta = timedelta(0)

    def __call__(self) -> datetime:
        return datetime.now(UTC) + self.ahead

    def advance(self, **delta: float) -> None:
        self.ahead += timedelta(**delta)


@dataclass
class Served:
    """A running installation."""

    parts: Vademecum
    clock: MovableClock
    url: str


@dataclass(frozen=True)
class Installation:
    """What is to be served; each test gets its own."""

    state_dir: Path
    values: dict[str, Any] = field(default_factory=dict)
    port: int = field(default_factory=free_port)

    @contextlib.contextmanager
    def serve(self) -> Iterator[Served]:
        port, clock = self.port, MovableClock()
        url = f"http://127.0.0.1:{port}"
        values = {"state_dir": self.state_dir, "embedder": "none", "public_url": url, "port": port}
        parts = Vademecum(Settings.model_validate(values | self.values), clock)
        config = uvicorn.Config(
            create_app(parts),
            port=port,
            http=BoundedProtocol,
            ws="none",
            log_config=None,
            proxy_headers=False,
        )
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, daemon=True)
        thread.start()
        deadline = time.monotonic() + 30
        while not server.started and time.monotonic() < deadline:
            time.sleep(0.01)
        assert server.started
        try:
            yield Served(parts, clock, url)
        finally:
            server.should_exit = True
            thread.join(timeout=30)
            parts.database.close()
