"""The units are clean and closed, and the server speaks sd_notify as a `Type=notify` unit needs it."""

import asyncio
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from connector.systemd import Supervisor
from tests.deploy.units import INSTALLED, SYSTEMD, values
from tests.engines import require
from tests.processes import Server

UNITS = sorted(path.name for path in SYSTEMD.iterdir() if path.suffix in (".service", ".timer"))
SERVICES = [name for name in UNITS if name.endswith(".service")]
VERDICTS_GOOD_ENOUGH = {"OK", "SAFE", "PERFECT"}


def analyze(*arguments: str) -> str:
    """The standard output and error of systemd-analyze, which must succeed."""
    binary = shutil.which("systemd-analyze")
    require(binary is not None, "systemd-analyze: apt-get install systemd")
    done = subprocess.run([str(binary), *arguments], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """The units in a directory, with a program that exists."""
    for name in UNITS:
        text = (SYSTEMD / name).read_text().replace(INSTALLED, sys.executable)
        (tmp_path / name).write_text(text)
    return tmp_path


def test_systemd_finds_nothing_to_complain_of(installed: Path) -> None:
    said = analyze("verify", "--man=no", *(str(installed / name) for name in UNITS))
    assert [line for line in said.splitlines() if "vademecum" in line] == []


@pytest.mark.parametrize("unit", SERVICES)
def test_a_service_is_closed_to_what_it_does_not_need(unit: str) -> None:
    said = analyze("security", "--offline=true", "--no-pager", str(SYSTEMD / unit))
    verdict = re.search(r"Overall exposure level for \S+: ([0-9.]+) (\w+)", said)
    assert verdict is not None, said
    assert verdict.group(2) in VERDICTS_GOOD_ENOUGH, said
    assert float(verdict.group(1)) < 2


def test_secrets_come_as_credentials_and_everything_that_is_kept_is_in_the_state_directory() -> None:
    for unit in SERVICES:
        assert values(unit, "LoadCredential") == ["VADEMECUM:/etc/vademecum/credentials"]
        assert values(unit, "StateDirectory") == ["vademecum"]
        assert values(unit, "ReadWritePaths") == []
        assert not [text for text in values(unit, "Environment") if "KEY" in text]


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[socket.socket]:
    """The socket of one who listens as systemd does."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(str(tmp_path / "notify"))
        listening.settimeout(60)
        yield listening


def told(manager: socket.socket) -> str:
    return manager.recv(1024).decode()


def test_the_server_says_when_it_is_ready_that_it_lives_and_when_it_ends(
    tmp_path: Path, manager: socket.socket
) -> None:
    # No WATCHDOG_PID: the test cannot know the process's id before it starts.
    environment = {"NOTIFY_SOCKET": str(tmp_path / "notify"), "WATCHDOG_USEC": "300000"}
    server = Server(tmp_path / "state", environment)
    server.start()
    try:
        first = [told(manager) for _ in range(4)]
        assert "READY=1" in first[:2]
        assert first.count("WATCHDOG=1") == 3
    finally:
        server.stop()
    while (last := told(manager)) == "WATCHDOG=1":
        pass
    assert last == "STOPPING=1"


def test_a_server_that_cannot_start_never_says_it_is_ready(tmp_path: Path, manager: socket.socket) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        environment = {"NOTIFY_SOCKET": str(tmp_path / "notify")}
        server = Server(tmp_path / "state", environment, port=taken.getsockname()[1])
        done = subprocess.run(
            (*server.command, "serve"), env=server.env(), capture_output=True, timeout=60, check=False
        )
    assert done.returncode != 0
    manager.setblocking(False)
    with pytest.raises(BlockingIOError):
        told(manager)


def test_signs_of_life_stop_when_the_event_loop_hangs(tmp_path: Path, manager: socket.socket) -> None:
    supervisor = Supervisor(str(tmp_path / "notify"), 0.03)

    async def live_then_hang() -> int:
        async with supervisor.watching():
            assert {await asyncio.to_thread(told, manager) for _ in range(2)} == {"READY=1", "WATCHDOG=1"}
            manager.settimeout(0.1)
            counted = 0
            try:
                while True:  # Blocks the loop: nothing but what was sent before can arrive.
                    told(manager)
                    counted += 1
            except TimeoutError:
                return counted

    assert asyncio.run(live_then_hang()) <= 1


def test_only_the_process_that_is_watched_gives_signs_and_without_a_supervisor_none_are_sent() -> None:
    watched = {"NOTIFY_SOCKET": "/run/x", "WATCHDOG_USEC": "30000000"}
    assert Supervisor.from_env(watched) == Supervisor("/run/x", 30.0)
    assert Supervisor.from_env({**watched, "WATCHDOG_PID": "1"}).watchdog_seconds is None
    assert Supervisor.from_env({**watched, "WATCHDOG_USEC": "soon"}).watchdog_seconds is None
    assert Supervisor.from_env({}) == Supervisor()
    Supervisor().tell("READY=1")
    Supervisor("/nobody/listens/here").tell("READY=1")


def test_an_abstract_socket_is_told_too() -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind("\0vademecum-test-notify")
        listening.settimeout(10)
        Supervisor("@vademecum-test-notify").tell("READY=1")
        assert told(listening) == "READY=1"
