"""The support bundle holds what a helper needs, and nothing that is the owner's or secret."""

import base64
import io
import json
import stat
import traceback
import zipfile
from pathlib import Path
from typing import Any

import httpx2
import pytest

from connector import support
from connector.settings import Settings
from tests.crash.conftest import Client
from tests.processes import PASSPHRASE, Server, running

KEY = bytes(range(7, 39))
SECRETS = {
    "VADEMECUM_STATE_KEY": base64.urlsafe_b64encode(KEY).decode(),
    "VADEMECUM_OPENAI_API_KEY": "sk-a-very-secret-openai-key",
    "VADEMECUM_GEMINI_API_KEY": "a-very-secret-gemini-key",
}
CONTENT = "the spare key hangs behind the pantry door"


def opened(content: bytes) -> dict[str, Any]:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: json.loads(archive.read(name)) for name in archive.namelist()}


def written(content: bytes) -> str:
    """Everything in the zip, unpacked."""
    return json.dumps(opened(content), ensure_ascii=False)


@pytest.mark.threat("LG-01")
def test_the_bundle_of_a_used_server_holds_no_content_and_no_secret(tmp_path: Path) -> None:
    server = Server(tmp_path / "state", SECRETS)
    with running(server), httpx2.Client(timeout=30) as http:
        client = Client(server, server.url, http=http).register()
        tokens = client.connect()
        saved = client.call(tokens["access_token"], "save_context", content=CONTENT, topic="pantry-topic")
        client.call(tokens["access_token"], "search_context", query="where is the pantry")
        client.refresh("vmc_refresh_not-a-token")
        personal = server.run("tokens", "add", "--scope", "memory:read").split()[-1]
        with server.log_file.open("a") as log:
            log.write(f"a line that is not ours: {personal}\n")
            log.write(json.dumps({"event": "later.version", "query": CONTENT, "token": personal}) + "\n")
            leak = {"event": "leak", "error": f"{personal} {SECRETS['VADEMECUM_STATE_KEY']}"}
            log.write(json.dumps(leak) + "\n")
            log.write(json.dumps({"event": f"A library says {CONTENT}"}) + "\n")
        target = tmp_path / "support.zip"
        said = json.loads(
            server.run("support", "--log", str(server.log_file), "--output", str(target), "--json")
        )

    assert said["file"] == str(target)
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    members = opened(target.read_bytes())
    assert (
        set(members) == set(said["members"]) >= {"versions.json", "settings.json", "counts.json", "log.json"}
    )
    assert members["versions.json"]["packages"]["mcp"]
    assert members["settings.json"]["state_key"] == members["settings.json"]["openai_api_key"] == "set"
    assert members["settings.json"]["public_url"] == server.url
    assert members["counts.json"]["owners"][0]["memories"]["active"] == 1
    events = [line["event"] for line in members["log.json"]]
    assert {"code.redeemed", "http.request", "later.version"} <= set(events)
    text = written(target.read_bytes())
    for secret in (
        *SECRETS.values(),
        *support.spellings(KEY),
        *(tokens[name] for name in ("access_token", "refresh_token")),
        personal,
        PASSPHRASE,
        "pantry",
        saved["structuredContent"]["item"]["id"],
    ):
        assert secret not in text, secret


def test_the_file_state_key_is_known_too(tmp_path: Path) -> None:
    server = Server(tmp_path / "state")
    server.state_dir.mkdir()
    server.run("keys", "rotate")
    key = (server.state_dir / "state.key").read_bytes()
    (tmp_path / "log").write_text(json.dumps({"event": "leak", "error": base64.b64encode(key).decode()}))
    server.run("support", "--log", str(tmp_path / "log"), "--output", str(tmp_path / "support.zip"))
    members = opened((tmp_path / "support.zip").read_bytes())
    assert members["log.json"] == [{"event": "leak", "error": support.BLOT}]


@pytest.mark.parametrize("environment", [{}, {"VADEMECUM_PORT": "no number"}])
def test_there_is_a_bundle_before_there_is_anything_else(tmp_path: Path, environment: dict[str, str]) -> None:
    server = Server(tmp_path / "state", environment)
    server.run("support", "--output", str(tmp_path / "support.zip"))
    members = opened((tmp_path / "support.zip").read_bytes())
    if environment:
        (problem,) = members["settings.json"]["problems"]
        assert problem.startswith("VADEMECUM_PORT:")
    assert not server.state_dir.exists()


def test_a_damaged_database_is_told_of(tmp_path: Path) -> None:
    server = Server(tmp_path / "state")
    server.state_dir.mkdir()
    (server.state_dir / "vademecum.db").write_bytes(b"no database at all " * 500)
    server.run("support", "--output", str(tmp_path / "support.zip"))
    assert opened((tmp_path / "support.zip").read_bytes())["counts.json"]["problem"] == "unavailable"


def test_a_file_that_is_there_is_never_written_over(tmp_path: Path) -> None:
    (tmp_path / "support.zip").write_text("mine")
    with pytest.raises(AssertionError, match="exists"):
        Server(tmp_path / "state").run("support", "--output", str(tmp_path / "support.zip"))
    assert (tmp_path / "support.zip").read_text() == "mine"


def test_a_traceback_keeps_its_places_and_its_kind_without_its_words() -> None:
    try:
        raise ValueError(CONTENT)
    except ValueError as error:
        text = "".join(traceback.format_exception(error))
    (line,) = support.log_lines([json.dumps({"event": "tool.failed", "tool": "x", "traceback": text})])
    assert line["traceback"][-1] == "ValueError"
    assert "test_support.py" in line["traceback"][0]
    assert "pantry" not in json.dumps(line)


def test_lines_of_journalctl_are_understood_and_only_the_last_kept() -> None:
    lines = [f'Mar 01 host vademecum[7]: {{"event": "e{n}"}}' for n in range(support.MAX_LOG_LINES + 5)]
    kept = support.log_lines(lines)
    assert len(kept) == support.MAX_LOG_LINES
    assert kept[0] == {"event": "e5"}


def test_every_secret_setting_is_masked() -> None:
    settings = Settings.from_env(SECRETS)
    shown = json.dumps(support.masked(settings))
    assert support.secrets_of(settings)
    assert not [secret for secret in support.secrets_of(settings) if secret in shown]


@pytest.mark.parametrize(
    "text",
    [
        "vmc_pat_" + "0" * 32 + "." + "a" * 43,
        "vmc_code_" + "0" * 32 + ".x.y",
        "Bearer abcdefghijklmnop",
        "eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJ4In0.c2lnbmF0dXJl",
        "owner@example.org",
    ],
)
def test_what_looks_like_a_token_or_an_address_is_blotted_out_wherever_it_stands(text: str) -> None:
    members = {"x.json": {"a": [f"before {text} after"], text: 1}}
    assert text not in written(support.bundle(members, []))
    assert "before" in written(support.bundle(members, []))
