"""An installation of its own for each test of a command, run in process."""

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from connector import cli
from connector.app import Vademecum
from connector.settings import Settings

PASSPHRASE = "correct horse battery staple"
COMMANDS = (
    "clients",
    "evaluate",
    "exports",
    "ingest",
    "keys",
    "memories",
    "owner",
    "reindex",
    "spaces",
    "tokens",
)


@pytest.fixture
def parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Vademecum]:
    parts = Vademecum(Settings(state_dir=tmp_path, embedder="none"))
    for module in COMMANDS:
        monkeypatch.setattr(f"connector.commands.{module}.open_installation", lambda: parts)
    yield parts
    parts.database.close()


class Run:
    """Runs a command; the exit code, standard output and standard error."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self._monkeypatch = monkeypatch
        self._capsys = capsys

    def __call__(self, *arguments: str) -> tuple[int, str, str]:
        self._monkeypatch.setattr(sys, "argv", ["vademecum", *arguments])
        with pytest.raises(SystemExit) as exited:
            cli.main()
        captured = self._capsys.readouterr()
        code = exited.value.code
        return int(code or 0), captured.out, captured.err

    def json(self, *arguments: str) -> Any:
        code, out, err = self(*arguments, "--json")
        assert code == 0, err
        return json.loads(out)


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    return Run(monkeypatch, capsys)


@pytest.fixture
def owned(parts: Vademecum, run: Run, stdin: Callable[[str], None]) -> Vademecum:
    stdin(PASSPHRASE + "\n")
    assert run("owner", "passphrase")[0] == 0
    return parts


@pytest.fixture
def stdin(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Callable[[str], None]]:
    opened = []

    def give(text: str) -> None:
        file = tmp_path / "stdin.txt"
        file.write_text(text, encoding="utf-8")
        opened.append(file.open(encoding="utf-8"))
        monkeypatch.setattr(sys, "stdin", opened[-1])

    yield give
    for file in opened:
        file.close()
