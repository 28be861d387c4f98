"""A real Chromium at a real server, and a client that listens on loopback like Claude Code or Codex do."""

import base64
import contextlib
import hashlib
import secrets
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import httpx2
import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, sync_playwright

from tests.engines import require
from tests.processes import Server, running

CHROMIUM = Path("/usr/bin/chromium")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


# Playwright's synchronous interface keeps an event loop running in this thread, so it ends with its module:
# tests elsewhere run loops of their own.
@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    require(
        CHROMIUM.exists(), "the browser tests need Chromium at /usr/bin/chromium: apt-get install chromium"
    )
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, chromium: Browser) -> Iterator[Server]:
    with running(Server(tmp_path_factory.mktemp("state"))) as started:
        yield started


@pytest.fixture
def page(chromium: Browser, server: Server) -> Iterator[Page]:
    """A fresh profile at phone width; what the browser has to say against a page of ours fails the test."""
    context = chromium.new_context(viewport={"width": 390, "height": 844})
    page = context.new_page()
    complaints: list[str] = []

    def listen(message: ConsoleMessage) -> None:
        # A page with status 4xx counts as a failed load; everything else is a fault of ours.
        is_status = "the server responded with a status" in message.text
        if message.type in ("error", "warning") and message.location["url"].startswith(server.url):
            complaints.extend([] if is_status else [message.text])

    page.on("console", listen)
    yield page
    context.close()
    assert complaints == []


@dataclass
class LoopbackClient:
    """A client program: registers, opens the browser, waits for the code on a port of its own."""

    server_url: str
    page: str = "<title>Connected</title><h1>You may close this window</h1>"
    delay: float = 0
    answers: list[dict[str, str]] = field(default_factory=list)
    arrived: threading.Event = field(default_factory=threading.Event)
    verifier: str = field(default_factory=lambda: secrets.token_urlsafe(48))

    def __post_init__(self) -> None:
        client = self

        class Callback(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                pairs = parse_qs(urlsplit(self.path).query)
                if self.path.startswith("/callback"):
                    client.answers.append({name: values[0] for name, values in pairs.items()})
                    client.arrived.set()
                    time.sleep(client.delay)
                body = client.page.encode()
                self.send_response(200)
                self.send_header("Content-Type", "text/html")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                with contextlib.suppress(BrokenPipeError):
                    self.wfile.write(body)

            def log_message(self, format: str, *args: Any) -> None:
                return

        self.listener = ThreadingHTTPServer(("127.0.0.1", 0), Callback)
        self.listener.daemon_threads = True
        threading.Thread(target=self.listener.serve_forever, daemon=True).start()
        self.origin = f"http://127.0.0.1:{self.listener.server_port}"
        self.redirect_uri = f"{self.origin}/callback"
        body = {"client_name": "Test program", "redirect_uris": [self.redirect_uri]}
        self.client_id = httpx2.post(f"{self.server_url}/register", json=body).json()["client_id"]

    def close(self) -> None:
        self.listener.shutdown()
        self.listener.server_close()

    @property
    def authorization_url(self) -> str:
        challenge = base64.urlsafe_b64encode(hashlib.sha256(self.verifier.encode()).digest()).decode()
        return f"{self.server_url}/authorize?" + urlencode(
            {
                "response_type": "code",
                "client_id": self.client_id,
                "redirect_uri": self.redirect_uri,
                "code_challenge": challenge.rstrip("="),
                "code_challenge_method": "S256",
                "state": "opaque",
                "scope": "memory:read memory:write",
            }
        )

    def redeem(self) -> dict[str, Any]:
        """Exchanges the code that came last."""
        form = {
            "grant_type": "authorization_code",
            "code": self.answers[-1]["code"],
            "redirect_uri": self.redirect_uri,
            "client_id": self.client_id,
            "code_verifier": self.verifier,
        }
        tokens: dict[str, Any] = httpx2.post(f"{self.server_url}/token", data=form).json()
        return tokens

    def refresh(self, tokens: dict[str, Any]) -> dict[str, Any]:
        """What the server says to the refresh token."""
        form = {
            "grant_type": "refresh_token",
            "refresh_token": tokens["refresh_token"],
            "client_id": self.client_id,
        }
        answer: dict[str, Any] = httpx2.post(f"{self.server_url}/token", data=form).json()
        return answer


@pytest.fixture
def client(server: Server) -> Iterator[LoopbackClient]:
    client = LoopbackClient(server.url)
    yield client
    client.close()
