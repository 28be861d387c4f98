"""Real processes for the tests: the server as an operator starts it, and the owner's browser over HTTP."""

import contextlib
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urljoin

import httpx2

PASSPHRASE = "correct horse battery staple"
START_SECONDS = 60


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@dataclass
class Server:
    """`vademecum serve` on a port and state directory of its own; may be killed and started again."""

    state_dir: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    port: int = field(default_factory=free_port)
    command: tuple[str, ...] = (sys.executable, "-m", "connector")
    log_name: str = "server.log"
    directory: Path | None = None
    """Where the process runs; otherwise where the tests do."""
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def log_file(self) -> Path:
        return self.state_dir / self.log_name

    def env(self) -> dict[str, str]:
        return {
            **{name: value for name, value in os.environ.items() if not name.startswith("VADEMECUM_")},
            "VADEMECUM_PUBLIC_URL": self.url,
            "VADEMECUM_PORT": str(self.port),
            "VADEMECUM_STATE_DIR": str(self.state_dir),
            "VADEMECUM_EMBEDDER": "none",
            **self.environment,
        }

    def run(self, *arguments: str, stdin: str | None = None) -> str:
        """Runs a command of the same installation and returns its standard output."""
        done = subprocess.run(
            (*self.command, *arguments),
            cwd=self.directory,
            env=self.env(),
            input=stdin,
            capture_output=True,
            text=True,
            timeout=600,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def start(self) -> None:
        self.state_dir.mkdir(parents=True, exist_ok=True)
        with self.log_file.open("ab") as log:
            self.process = subprocess.Popen(
                (*self.command, "serve"), cwd=self.directory, env=self.env(), stderr=log
            )
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            assert self.process.poll() is None, self.log_file.read_text()
            with contextlib.suppress(httpx2.TransportError):
                if httpx2.get(f"{self.url}/health/ready").status_code == 200:
                    return
            time.sleep(0.05)
        raise AssertionError(f"not ready after {START_SECONDS} s:\n{self.log_file.read_text()}")

    def kill(self) -> None:
        """kill -9: no handler of the server runs."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def stop(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()
            self.process.wait(timeout=30)


@contextlib.contextmanager
def running(server: Server) -> Iterator[Server]:
    """Serves with the test passphrase set, and stops at the end."""
    server.state_dir.mkdir(parents=True, exist_ok=True)
    server.run("owner", "passphrase", stdin=PASSPHRASE + "\n")
    server.start()
    try:
        yield server
    finally:
        server.stop()


class _Form(HTMLParser):
    """The fields of the page's main form: hidden inputs and ticked boxes, as a browser would send them."""

    def __init__(self) -> None:
        super().__init__()
        self.action: str | None = None
        self.fields: list[tuple[str, str]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        if tag == "form" and self.action is None:
            self.action = values.get("action") or ""
        name = values.get("name")
        if tag == "input" and name and values.get("type") == "hidden":
            self.fields.append((name, values.get("value") or ""))
        if tag == "input" and name and values.get("type") == "checkbox" and "checked" in values:
            self.fields.append((name, values.get("value") or "on"))


@dataclass
class Browser:
    """The owner at his browser, reduced to HTTP: cookies, forms, redirects."""

    origin: str
    client: httpx2.Client = field(default_factory=lambda: httpx2.Client(follow_redirects=False, timeout=30))

    def __enter__(self) -> "Browser":
        return self

    def __exit__(self, *exception: object) -> None:
        self.client.close()

    def authorize(self, url: str, decision: str = "allow") -> str:
        """Signs in and decides; returns the address that the client's own redirect URI was called with."""
        response = self.client.get(url)
        for _ in range(10):
            location = response.headers.get("location")
            if location and not urljoin(self.origin, location).startswith(self.origin + "/"):
                return str(location)
            if location:
                response = self.client.get(urljoin(self.origin, location))
                continue
            assert response.status_code == 200, response.text
            extra = (
                {"passphrase": PASSPHRASE} if 'name="passphrase"' in response.text else {"decision": decision}
            )
            response = self.submit(response, extra)
        raise AssertionError("the pages lead nowhere")

    def submit(self, page: httpx2.Response, extra: Mapping[str, str]) -> httpx2.Response:
        """Fills in the page's form and sends it."""
        main = re.search(r"<main.*</main>", page.text, re.DOTALL)
        form = _Form()
        form.feed(main.group(0) if main else page.text)
        fields = [*form.fields, *extra.items()]
        data: dict[str, list[str]] = {}
        for name, value in fields:
            data.setdefault(name, []).append(value)
        target = urljoin(str(page.url), form.action or "")
        return self.client.post(target, data=data, headers={"Origin": self.origin})
