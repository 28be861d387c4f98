"""A client's configuration is edited like a guest's luggage: one thing is put in, the rest is as it was."""

import json
import os
import stat
import tomllib
from pathlib import Path

import pytest

from connector.app import utc_now
from connector.client_configs import CLIENTS
from connector.config_files import edit, write
from store.errors import StoreError
from tests.connector.commands.conftest import Run

URL = "https://memory.example.org/mcp"
OTHERS = '{\n\t"a": "dark ☂",\n\t"TABLE": {"other": {"command": "x", "args": []}},\n\t"last": [1.0, null]\n}'


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("XDG_CONFIG_HOME", "CODEX_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("VADEMECUM_STATE_DIR", str(tmp_path / "state"))
    return tmp_path


def config_of(client: str) -> Path:
    return CLIENTS[client].path(os.environ)


def parsed(path: Path) -> dict[str, object]:
    text = path.read_text(encoding="utf-8")
    return tomllib.loads(text) if path.suffix == ".toml" else dict(json.loads(text))


ENTRIES = {
    "claude-code": {"type": "http", "url": URL},
    "codex": {"url": URL},
    "cursor": {"url": URL},
    "vscode": {"type": "http", "url": URL},
    "windsurf": {"serverUrl": URL},
    "cline": {"type": "streamableHttp", "url": URL},
    "roo-code": {"type": "streamable-http", "url": URL},
    "gemini-cli": {"httpUrl": URL},
}


@pytest.mark.parametrize("client", ENTRIES)
def test_a_client_without_a_configuration_gets_one(home: Path, run: Run, client: str) -> None:
    assert run("install", client, "--url", URL)[0] == 0
    path = config_of(client)
    assert parsed(path) == {CLIENTS[client].table: {"vademecum": ENTRIES[client]}}
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [each.name for each in path.parent.iterdir() if each.is_file()] == [path.name]


@pytest.mark.parametrize("client", [name for name in CLIENTS if name != "codex"])
def test_everything_else_in_a_json_file_stays(home: Path, run: Run, client: str) -> None:
    path, table = config_of(client), CLIENTS[client].table
    path.parent.mkdir(parents=True, exist_ok=True)
    before = OTHERS.replace("TABLE", table)
    path.write_text(before, encoding="utf-8")
    path.chmod(0o640)
    outcome = run.json("install", client, *(() if client == "claude-desktop" else ("--url", URL)))
    assert outcome["changed"]
    after = parsed(path)
    servers = after[table]
    assert isinstance(servers, dict) and set(servers) == {"other", "vademecum"}
    del servers["vademecum"]
    assert after == json.loads(before) and "☂" in path.read_text(encoding="utf-8")
    assert '\n\t"a"' in path.read_text(encoding="utf-8")
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert Path(outcome["kept"]).read_text(encoding="utf-8") == before


TOML = """# mine
model = "gpt"  # keep me

[mcp_servers.other]
command = "x"

[profiles.work]
a = 1
"""


def test_everything_else_in_a_toml_file_stays_comments_too(home: Path, run: Run) -> None:
    path = config_of("codex")
    path.parent.mkdir(parents=True)
    path.write_text(TOML)
    assert run("install", "codex", "--url", URL)[0] == 0
    after = path.read_text()
    assert all(line in after.splitlines() for line in TOML.splitlines())
    expected = tomllib.loads(TOML)
    expected["mcp_servers"]["vademecum"] = {"url": URL}
    assert tomllib.loads(after) == expected


@pytest.mark.parametrize("client", ["cursor", "codex"])
def test_running_it_again_repairs_the_entry_and_then_changes_nothing(
    home: Path, run: Run, client: str
) -> None:
    run("install", client, "--url", "https://old.example/mcp")
    path = config_of(client)
    text = path.read_text()
    if client == "codex":
        path.write_text(text + 'command = "x"\nenabled = false\n')
    else:
        path.write_text(text.replace('"url"', '"enabled": false, "headers": {"a": "b"}, "url"'))
    assert run.json("install", client, "--url", URL)["changed"]
    servers = parsed(path)[CLIENTS[client].table]
    assert servers == {"vademecum": {"url": URL, "enabled": False}}
    again = path.read_bytes()
    assert run.json("install", client, "--url", URL) == {
        "client": client, "file": str(path), "changed": False, "kept": None, "diff": "", "applied": True
    }  # fmt: skip
    assert path.read_bytes() == again


@pytest.mark.parametrize(
    ("client", "content"),
    [
        ("vscode", '{\n  // my servers\n  "servers": {}\n}'),
        ("cursor", '{"mcpServers": {},}'),
        ("cursor", '{"mcpServers": []}'),
        ("cursor", '{"mcpServers": {"a": 1, "a": 2}}'),
        ("cursor", "[]"),
        ("cursor", "{"),
        ("cursor", "[" * 100_000),
        ("codex", "model = \n"),
        ("codex", "mcp_servers = 7\n"),
        ("cursor", "\ufeff{}"),
    ],
)
def test_what_does_not_parse_is_left_alone_and_the_entry_is_shown(
    home: Path, run: Run, client: str, content: str
) -> None:
    path = config_of(client)
    path.parent.mkdir(parents=True)
    path.write_text(content, encoding="utf-8")
    code, out, err = run("install", client, "--url", URL)
    assert (code, out) == (1, "") and URL in err and "by hand" in err
    assert path.read_text(encoding="utf-8") == content
    assert [each.name for each in path.parent.iterdir()] == [path.name]


def test_a_dry_run_shows_the_difference_and_writes_nothing(home: Path, run: Run) -> None:
    code, out, _ = run("install", "cursor", "--url", URL, "--dry-run")
    assert code == 0 and f'+      "url": "{URL}"' in out
    assert not config_of("cursor").exists()


def test_a_link_to_a_configuration_stays_a_link(home: Path, run: Run) -> None:
    real = home / "dotfiles" / "mcp.json"
    real.parent.mkdir()
    real.write_text("{}")
    path = config_of("cursor")
    path.parent.mkdir()
    path.symlink_to(real)
    assert run("install", "cursor", "--url", URL)[0] == 0
    assert path.is_symlink() and "vademecum" in real.read_text()


def test_a_file_that_changes_meanwhile_is_not_overwritten(home: Path) -> None:
    path = home / "mcp.json"
    path.write_text("{}")
    change = edit(CLIENTS["cursor"], path, {"url": URL})
    path.write_text('{"a": 1}')
    with pytest.raises(StoreError, match="meanwhile"):
        write(change, utc_now())
    assert path.read_text() == '{"a": 1}'


def test_a_client_without_remote_servers_starts_the_bridge(home: Path, run: Run) -> None:
    assert run("install", "claude-desktop")[0] == 0
    (entry,) = json.loads(config_of("claude-desktop").read_text())["mcpServers"].values()
    assert Path(entry["command"]).is_absolute() and entry["args"] == ["stdio"]
    assert entry["env"] == {"VADEMECUM_STATE_DIR": str(home / "state")}
    code, _, err = run("install", "claude-desktop", "--url", URL)
    assert code == 1 and "--token-file" in err
    assert run("install", "claude-desktop", "--url", URL, "--token-file", str(home / "token"))[0] == 0
    (entry,) = json.loads(config_of("claude-desktop").read_text())["mcpServers"].values()
    assert entry["args"] == ["stdio", URL, "--token-file", str(home / "token")] and "env" not in entry


def test_an_unknown_client_is_refused_with_those_there_are(home: Path, run: Run) -> None:
    code, _, err = run("install", "nobody", "--url", URL)
    assert code == 1 and "claude-code" in err
