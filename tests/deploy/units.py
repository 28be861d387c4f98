"""systemd's unit files as the tests read them."""

import shlex
from pathlib import Path

ROOT = Path(__file__).parents[2]
SYSTEMD = ROOT / "deploy" / "systemd"
INSTALLED = "/opt/vademecum/current/bin/vademecum"


def values(unit: str, key: str) -> list[str]:
    """Every assignment of the key in the unit, in order."""
    lines = (SYSTEMD / unit).read_text().splitlines()
    return [line.removeprefix(f"{key}=") for line in lines if line.startswith(f"{key}=")]


def command(unit: str, binary: str) -> list[str]:
    """What the unit starts, with the installed command replaced by the one under test."""
    (line,) = values(unit, "ExecStart")
    program, *arguments = shlex.split(line)
    assert program == INSTALLED
    return [binary, *arguments]
