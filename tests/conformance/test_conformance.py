"""The official conformance suite against a real server: the authorization leg, and both server eras.

The expected failures list only scenarios that need the suite's own fixtures (tools, resources and prompts of
a demonstration server); the suite fails when one of them starts passing, or any other fails.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from tests.engines import require
from tests.processes import Browser, Server, free_port, running

HERE = Path(__file__).parent
NODE = HERE / "node_modules" / ".bin" / "node"
SUITE = HERE / "node_modules" / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
SECONDS = 300


@pytest.fixture(autouse=True)
def _suite_is_installed() -> None:
    require(
        NODE.exists() and SUITE.exists(),
        "the conformance suite needs `npm ci` in tests/conformance (it brings its own Node.js 22)",
    )


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with running(Server(tmp_path / "state")) as started:
        yield started


def register(server: Server, redirect_uri: str) -> str:
    answer = httpx2.post(
        f"{server.url}/register", json={"client_name": "Conformance", "redirect_uris": [redirect_uri]}
    )
    client_id: str = answer.json()["client_id"]
    return client_id


def test_authorization_server_conforms(server: Server) -> None:
    port = free_port()
    client_id = register(server, f"http://127.0.0.1:{port}/callback")
    command = [
        str(NODE),
        str(SUITE),
        "authorization",
        "--url",
        server.url,
        "--client-id",
        client_id,
        "-p",
        str(port),
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as suite:
        assert suite.stdout is not None
        output = []
        for line in suite.stdout:
            output.append(line)
            if asked := re.search(rf"{re.escape(server.url)}/authorize\?\S+", line):
                with Browser(server.url) as browser:
                    httpx2.get(browser.authorize(asked.group()))
    assert suite.returncode == 0, "".join(output)


@pytest.fixture
def injected(server: Server) -> Iterator[Server]:
    """The same installation, served with a valid token added to every request."""
    token = access_token(server)
    server.stop()
    environment = {**server.env(), "VADEMECUM_TEST_TOKEN": token, "PYTHONPATH": str(HERE.parents[1])}
    wrapped = Server(
        server.state_dir, environment, server.port, (sys.executable, str(HERE / "injected_auth.py"))
    )
    wrapped.start()
    yield wrapped
    wrapped.stop()


def access_token(server: Server) -> str:
    """A token as any client gets one (RFC 7636 Appendix B's verifier and challenge)."""
    redirect_uri = "http://127.0.0.1:33418/callback"
    client_id = register(server, redirect_uri)
    request = httpx2.Request(
        "GET",
        f"{server.url}/authorize",
        params={
            "response_type": "code",
            "client_id": client_id,
            "redirect_uri": redirect_uri,
            "code_challenge": "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM",
            "code_challenge_method": "S256",
        },
    )
    with Browser(server.url) as browser:
        callback = httpx2.URL(browser.authorize(str(request.url)))
    answer = httpx2.post(
        f"{server.url}/token",
        data={
            "grant_type": "authorization_code",
            "client_id": client_id,
            "redirect_uri": redirect_uri,
            "code": callback.params["code"],
            "code_verifier": "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk",
        },
    )
    token: str = answer.json()["access_token"]
    return token


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
def test_mcp_server_conforms(injected: Server, revision: str) -> None:
    command = [str(NODE), str(SUITE), "server", "--url", f"{injected.url}/mcp", "--requirements", revision]
    command += ["--expected-failures", str(HERE / f"expected-failures-{revision}.yml")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, env={**os.environ})
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
