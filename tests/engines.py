"""Engines that a test needs and a machine may lack: Node.js, Chromium, Java, the Firestore emulator."""

import os
import shutil
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.processes import free_port

FIRESTORE_PROJECT = "demo-vademecum"
_JAR = "platform/cloud-firestore-emulator/cloud-firestore-emulator.jar"
_MAIN = "com.google.cloud.datastore.emulator.firestore.CloudFirestore"
_HOW_TO_GET_IT = (
    "Firestore emulator: install Java 17 and `gcloud components install cloud-firestore-emulator`, "
    "or name its jar in FIRESTORE_EMULATOR_JAR"
)


def require(present: bool, how_to_get_it: str) -> None:
    """Skips the test with one line saying how to get the engine; with CI=true its absence is a failure."""
    if present:
        return
    if os.environ.get("CI") == "true":
        pytest.fail(f"missing engine: {how_to_get_it}")
    pytest.skip(how_to_get_it)


@dataclass(frozen=True)
class FirestoreEmulator:
    """A running emulator; it keeps everything in memory."""

    host: str

    def reset(self, project: str = FIRESTORE_PROJECT) -> None:
        """Forgets all documents of the project."""
        path = f"emulator/v1/projects/{project}/databases/(default)/documents"
        request = urllib.request.Request(f"http://{self.host}/{path}", method="DELETE")
        urllib.request.urlopen(request, timeout=10).close()  # noqa: S310 - an address of this machine


def firestore_emulator_jar() -> Path | None:
    """By setting, else where gcloud keeps it."""
    if named := os.environ.get("FIRESTORE_EMULATOR_JAR"):
        return Path(named)
    if shutil.which("gcloud") is None:
        return None
    command = ["gcloud", "info", "--format=value(installation.sdk_root)"]
    found = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    jar = Path(found.stdout.strip()) / _JAR
    return jar if found.stdout.strip() and jar.is_file() else None


@contextmanager
def firestore_emulator(directory: Path) -> Iterator[FirestoreEmulator]:
    """Java itself, on a free port: gcloud's wrapper would leave it running behind."""
    jar = firestore_emulator_jar()
    require(jar is not None and shutil.which("java") is not None, _HOW_TO_GET_IT)
    host = f"127.0.0.1:{free_port()}"
    command = ["java", "-Duser.language=en", "-Xmx512m", "-XX:+UseSerialGC", "-cp", str(jar), _MAIN]
    log = directory / "firestore-emulator.log"
    with log.open("wb") as output:
        address, port = host.split(":")
        process = subprocess.Popen(
            [*command, "start", f"--host={address}", f"--port={port}"], stdout=output, stderr=output
        )
    try:
        _wait_for(process, f"http://{host}/", log)
        yield FirestoreEmulator(host)
    finally:
        process.terminate()
        process.wait(20)


def _wait_for(process: "subprocess.Popen[bytes]", url: str, log: Path) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and process.poll() is None:
        try:
            urllib.request.urlopen(url, timeout=5).close()  # noqa: S310 - an address of this machine
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            time.sleep(0.1)
        else:
            return
    pytest.fail(f"the Firestore emulator does not start:\n{log.read_text(errors='replace')}")
