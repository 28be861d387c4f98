"""Backups of a server that is being written to, and restores elsewhere that keep everyone signed in."""

import json
import shutil
import sqlite3
import stat
import subprocess
import threading
import zipfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from store import backup
from store.sqlite.backup import SQLiteBackup
from tests.crash.conftest import Client, client_of, mortal_server, rows, serving
from tests.processes import Server


def attempt(server: Server, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A command that may fail."""
    return subprocess.run(
        (*server.command, *arguments), env=server.env(), capture_output=True, text=True, timeout=120
    )


def back_up(server: Server, *arguments: str) -> Path:
    return Path(json.loads(server.run("backup", *arguments, "--json"))["file"])


def restored(server: Server, archive: Path, *arguments: str) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(server.run("restore", str(archive), *arguments, "--json"))
    return answer


def refusals(server: Server, archive: Path, *arguments: str) -> list[str]:
    done = attempt(server, "restore", str(archive), *arguments, "--json")
    assert done.returncode == 1
    return [each["name"] for each in json.loads(done.stdout)["obstacles"]]


def elsewhere(tmp_path: Path, like: Server, with_key: bool = True) -> Server:
    """A new machine that takes over the public name, with the state key if it was kept."""
    state_dir = tmp_path / "elsewhere"
    state_dir.mkdir()
    if with_key:
        shutil.copy(like.state_dir / "state.key", state_dir)
    return mortal_server(state_dir, VADEMECUM_PUBLIC_URL=like.url)


def save_until(client: Client, access_token: str, enough: threading.Event, saved: list[str]) -> None:
    while not enough.is_set():
        answer = client.call(access_token, "save_context", content=f"Under load {len(saved)}")
        saved.append(answer["structuredContent"]["item"]["id"])


@pytest.mark.parametrize("kind", ["full", "portable"])
def test_a_backup_under_load_restored_elsewhere_is_whole_and_keeps_everyone_signed_in(
    server: Server, client: Client, tmp_path: Path, kind: str
) -> None:
    tokens = client.connect()
    enough, saved = threading.Event(), list[str]()
    writer = threading.Thread(target=save_until, args=(client, tokens["access_token"], enough, saved))
    writer.start()
    try:
        while len(saved) < 20:
            pass
        before = list(saved)
        archive = back_up(server, *(["--portable"] if kind == "portable" else []))
    finally:
        enough.set()
        writer.join()
    other = elsewhere(tmp_path, server)
    tried = restored(other, archive)
    assert (tried["applied"], tried["obstacles"], tried["lost"]) == (False, [], 0)
    assert not (other.state_dir / "vademecum.db").exists()
    assert restored(other, archive, "--apply")["applied"]

    snapshot = SQLiteBackup(other.state_dir / "vademecum.db").inspect(other.state_dir / "vademecum.db")
    assert snapshot == backup.read(archive).snapshot
    server.stop()
    with serving(other):
        refreshed = client.refresh(tokens["refresh_token"], other)
        assert refreshed.status_code == 200, refreshed.text
        assert client.is_alive(refreshed.json()["access_token"], other)
        assert set(before) <= {row[0] for row in rows(other.state_dir, "SELECT id FROM memories")}


def test_a_backup_is_for_its_owner_s_eyes_and_without_the_key(server: Server) -> None:
    archive = back_up(server)
    assert archive.parent == server.state_dir / "backups"
    assert stat.S_IMODE(archive.stat().st_mode) == 0o600
    assert stat.S_IMODE(archive.parent.stat().st_mode) == 0o700
    key = (server.state_dir / "state.key").read_bytes()
    with zipfile.ZipFile(archive) as opened:
        assert set(opened.namelist()) == {"manifest.json", "vademecum.db"}
        assert all(key not in opened.read(name) for name in opened.namelist())
    assert [path.name for path in archive.parent.iterdir()] == [archive.name]


def test_with_the_key_inside_one_file_is_enough(server: Server, client: Client, tmp_path: Path) -> None:
    tokens = client.connect()
    archive = back_up(server, "--with-key")
    server.stop()
    other = elsewhere(tmp_path, server, with_key=False)
    assert restored(other, archive, "--apply")["applied"]
    key = other.state_dir / "state.key"
    assert key.read_bytes() == (server.state_dir / "state.key").read_bytes()
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    with serving(other):
        assert client.refresh(tokens["refresh_token"], other).status_code == 200


def test_without_the_key_a_restore_says_so_and_waits(server: Server, tmp_path: Path) -> None:
    archive = back_up(server)
    other = elsewhere(tmp_path, server, with_key=False)
    assert refusals(other, archive, "--apply") == ["state_key_missing"]
    assert not (other.state_dir / "vademecum.db").exists()
    (other.state_dir / "state.key").write_bytes(b"x" * 32)
    (other.state_dir / "state.key").chmod(0o600)
    assert refusals(other, archive, "--apply") == ["state_key_differs"]


def test_nothing_is_restored_under_a_running_server(server: Server) -> None:
    archive = back_up(server)
    before = rows(server.state_dir, "SELECT count(*) FROM records")
    done = attempt(server, "restore", str(archive), "--apply")
    assert done.returncode == 1 and "in use" in done.stderr
    assert rows(server.state_dir, "SELECT count(*) FROM records") == before
    server.stop()
    assert restored(server, archive, "--apply")["applied"]


def test_more_than_a_tenth_of_the_memories_is_not_given_up_unasked(state_dir: Path) -> None:
    server = mortal_server(state_dir)
    server.run("save", "The first memory")
    archive = back_up(server)
    server.run("save", "The second memory")
    assert refusals(server, archive, "--apply") == ["memories_lost"]
    assert rows(state_dir, "SELECT count(*) FROM memories") == [(2,)]
    outcome = restored(server, archive, "--apply", "--force")
    assert (outcome["present"], outcome["lost"]) == (2, 1)
    assert rows(state_dir, "SELECT count(*) FROM memories") == [(1,)]
    with closing(sqlite3.connect(outcome["kept"])) as kept:
        assert kept.execute("SELECT count(*) FROM memories").fetchone() == (2,)


def rewrite(archive: Path, name: str, change: Callable[[bytes], bytes]) -> None:
    """The same archive with one member changed."""
    with zipfile.ZipFile(archive) as opened:
        members = {each: opened.read(each) for each in opened.namelist()}
    members[name] = change(members[name])
    with zipfile.ZipFile(archive, "w") as rewritten:
        for each, content in members.items():
            rewritten.writestr(each, content)


def _newer(manifest: bytes) -> bytes:
    return json.dumps(json.loads(manifest) | {"version": 2}).encode()


def _other_row(manifest: bytes) -> bytes:
    value = json.loads(manifest)
    value["snapshot"]["tables"]["memories"]["sha256"] = "0" * 64
    return json.dumps(value).encode()


@pytest.mark.parametrize(
    ("name", "change", "said"),
    [
        ("vademecum.db", lambda content: content[:-1] + b"\1", "is not what its manifest says"),
        ("vademecum.db", lambda content: content[:-1], "is not what its manifest says"),
        ("manifest.json", lambda content: b"{}", "no readable manifest"),
        ("manifest.json", _newer, "newer version"),
        ("manifest.json", _other_row, "memories is not what its manifest says"),
    ],
)
def test_an_archive_that_is_not_what_it_says_changes_nothing(
    state_dir: Path, name: str, change: Callable[[bytes], bytes], said: str
) -> None:
    server = mortal_server(state_dir)
    archive = back_up(server)
    rewrite(archive, name, change)
    server.run("save", "Still here")
    done = attempt(server, "restore", str(archive), "--apply", "--force")
    assert done.returncode == 1 and said in done.stderr
    assert rows(state_dir, "SELECT content FROM memories") == [("Still here",)]
    assert not [*state_dir.glob(".unfinished*"), *state_dir.glob("replaced*")]


@pytest.mark.parametrize("content", [b"", b"no archive", b"PK\3\4 torn"])
def test_another_file_is_no_backup(state_dir: Path, tmp_path: Path, content: bytes) -> None:
    (tmp_path / "file.zip").write_bytes(content)
    done = attempt(mortal_server(state_dir), "restore", str(tmp_path / "file.zip"))
    assert done.returncode == 1 and "is no backup" in done.stderr


def test_a_backup_of_a_newer_schema_is_refused(state_dir: Path) -> None:
    server = mortal_server(state_dir)
    with closing(sqlite3.connect(state_dir / "vademecum.db")) as connection:
        connection.execute("PRAGMA user_version=999")
    archive = back_up(server)
    with closing(sqlite3.connect(state_dir / "vademecum.db")) as connection:
        connection.execute("PRAGMA user_version=1")
    done = attempt(server, "restore", str(archive), "--apply")
    assert done.returncode == 1 and "update the program first" in done.stderr


def damage(path: Path) -> None:
    """Overwrites the middle of the file, as a failing disk would."""
    with path.open("r+b") as file:
        file.seek(path.stat().st_size // 2 // 4096 * 4096)
        file.write(b"\xff" * 4096 * 4)


def test_a_damaged_database_is_refused_with_instructions_and_a_restore_mends_it(state_dir: Path) -> None:
    server = mortal_server(state_dir)
    with closing(sqlite3.connect(state_dir / "vademecum.db")) as connection:
        pages = [(number, "a refusal that fills a page " * 100) for number in range(100)]
        connection.executemany("INSERT INTO rejections (at, value) VALUES (?, ?)", pages)
        connection.commit()
    server.run("save", "Worth keeping")
    archive = back_up(server)
    damage(state_dir / "vademecum.db")
    done = attempt(server, "serve")
    assert done.returncode == 1
    assert "vademecum restore" in done.stderr and "damaged" in done.stderr
    failed = attempt(server, "backup")
    assert failed.returncode == 1 and "damaged" in failed.stderr
    assert restored(server, archive, "--apply")["kept"]
    assert rows(state_dir, "SELECT content FROM memories") == [("Worth keeping",)]
    with serving(server):
        pass


def test_a_file_that_is_no_database_any_more_is_replaced_and_kept(state_dir: Path) -> None:
    server = mortal_server(state_dir)
    server.run("save", "Worth keeping")
    archive = back_up(server)
    for log in state_dir.glob("vademecum.db-*"):
        log.unlink()
    (state_dir / "vademecum.db").write_bytes(b"lost" * 5000)
    done = attempt(server, "serve")
    assert done.returncode == 1 and "vademecum restore" in done.stderr
    outcome = restored(server, archive, "--apply")
    assert Path(outcome["kept"]).read_bytes() == b"lost" * 5000
    assert rows(state_dir, "SELECT content FROM memories") == [("Worth keeping",)]


def test_old_backups_go_when_new_ones_are_verified(state_dir: Path) -> None:
    server = mortal_server(state_dir)
    first, second = back_up(server), back_up(server)
    portable = back_up(server, "--portable")
    third = back_up(server, "--keep", "2")
    listed = json.loads(server.run("backup", "list", "--json"))
    assert [Path(each["file"]) for each in listed] == [third, portable, second]
    assert not first.exists()
    server.run("backup", "delete", second.name)
    assert not second.exists()
    assert attempt(server, "backup", "delete", "../vademecum.db").returncode == 1
    assert (state_dir / "vademecum.db").exists()


def test_a_backup_that_fails_leaves_the_old_ones_and_no_piece(state_dir: Path) -> None:
    server = mortal_server(state_dir)
    archive = back_up(server)
    with closing(sqlite3.connect(state_dir / "vademecum.db")) as connection:
        connection.execute("INSERT INTO identities VALUES ('k', 'nobody', 'p', 'l', 0)")
        connection.commit()
    done = attempt(server, "backup", "--keep", "1")
    assert done.returncode == 1 and "damaged" in done.stderr
    assert list((state_dir / "backups").iterdir()) == [archive]


def test_a_client_of_the_old_machine_is_unknown_to_none(server: Server, tmp_path: Path) -> None:
    """Registrations come along as well."""
    with client_of(server) as client:
        archive = back_up(server)
        server.stop()
        other = elsewhere(tmp_path, server)
        restored(other, archive, "--apply")
        with serving(other):
            answer = client.token(other, grant_type="refresh_token", refresh_token="vmc_rt_unknown")
            assert answer.json()["error"] == "invalid_grant"
