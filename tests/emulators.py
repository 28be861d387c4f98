"""Firebase's Auth emulator, as npm ships it: one process per test session, with accounts made over REST."""

import contextlib
import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2

from tests.engines import require
from tests.processes import free_port

PACKAGES = Path(__file__).parent / "identity_providers"
FIREBASE = PACKAGES / "node_modules/firebase-tools/lib/bin/firebase.js"
PROJECT = "demo-vademecum"
START_SECONDS = 120
HOW_TO_GET_NODE = "the tests with real identity providers need Node.js 20 or newer and `make pytest` once"


def require_node(script: Path) -> None:
    require(shutil.which("node") is not None and script.exists(), HOW_TO_GET_NODE)


@dataclass(frozen=True)
class FirebaseEmulator:
    """Where it listens, and what an administrator does there."""

    host: str

    def add(self, email: str, password: str) -> str:
        """A confirmed account; its uid."""
        made = self._post("accounts:signUp", email=email, password=password, returnSecureToken=True)
        uid: str = made["localId"]
        self._post("accounts:update", localId=uid, emailVerified=True)
        return uid

    def disable(self, uid: str) -> None:
        self._post("accounts:update", localId=uid, disableUser=True)

    def delete(self, uid: str) -> None:
        self._post("accounts:delete", localId=uid)

    def clear(self) -> None:
        """No accounts."""
        url = f"http://{self.host}/emulator/v1/projects/{PROJECT}/accounts"
        httpx2.delete(url, headers={"Authorization": "Bearer owner"}).raise_for_status()

    def _post(self, call: str, **body: Any) -> dict[str, Any]:
        url = f"http://{self.host}/identitytoolkit.googleapis.com/v1/projects/{PROJECT}/{call}"
        if call == "accounts:signUp":
            url = f"http://{self.host}/identitytoolkit.googleapis.com/v1/{call}?key=any"
        answer = httpx2.post(url, json=body, headers={"Authorization": "Bearer owner"})
        assert answer.status_code == 200, answer.text
        result: dict[str, Any] = answer.json()
        return result


@contextlib.contextmanager
def firebase_emulator(directory: Path) -> Iterator[FirebaseEmulator]:
    """Runs it with its files in this directory."""
    require_node(FIREBASE)
    port = free_port()
    listen = {name: {"host": "127.0.0.1", "port": free_port()} for name in ("hub", "logging")}
    emulators = listen | {"auth": {"host": "127.0.0.1", "port": port}, "ui": {"enabled": False}}
    (directory / "firebase.json").write_text(json.dumps({"emulators": emulators}))
    command = ["node", str(FIREBASE), "emulators:start", "--only", "auth", "--project", PROJECT]
    environment = {"PATH": os.environ["PATH"], "HOME": str(directory), "NO_UPDATE_NOTIFIER": "1"}
    with (directory / "emulator.log").open("wb") as log:
        process = subprocess.Popen(command, cwd=directory, env=environment, stdout=log, stderr=log)
    try:
        _await(process, f"http://127.0.0.1:{port}/", directory / "emulator.log")
        yield FirebaseEmulator(f"127.0.0.1:{port}")
    finally:
        process.terminate()
        process.wait(timeout=30)


def _await(process: subprocess.Popen[bytes], url: str, log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        assert process.poll() is None, log.read_text()
        with contextlib.suppress(httpx2.TransportError):
            if httpx2.get(url).status_code == 200:
                return
        time.sleep(0.1)
    raise AssertionError(f"no identity provider after {START_SECONDS} s:\n{log.read_text()}")


@dataclass(frozen=True)
class OpenIdProvider:
    """A real issuer on loopback."""

    issuer: str

    def end(self, account: str) -> None:
        """Deletes an account."""
        httpx2.post(f"{self.issuer}/test/end?{account}").raise_for_status()

    @contextlib.contextmanager
    def outage(self) -> Iterator[None]:
        httpx2.post(f"{self.issuer}/test/down").raise_for_status()
        yield
        httpx2.post(f"{self.issuer}/test/up").raise_for_status()


@contextlib.contextmanager
def openid_provider(redirect_uri: str, log_file: Path) -> Iterator[OpenIdProvider]:
    """Runs it for one client."""
    require_node(PACKAGES / "node_modules/oidc-provider/package.json")
    issuer = f"http://127.0.0.1:{(port := free_port())}"
    with log_file.open("wb") as log:
        command = ["node", "openid.mjs", str(port), redirect_uri]
        process = subprocess.Popen(command, cwd=PACKAGES, stdout=log, stderr=log)
    try:
        _await(process, f"{issuer}/.well-known/openid-configuration", log_file)
        yield OpenIdProvider(issuer)
    finally:
        process.terminate()
        process.wait(timeout=30)
