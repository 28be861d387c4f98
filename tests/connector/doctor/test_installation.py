"""Faults put into a healthy installation, each found by its name with a way to mend it."""

import os
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from connector.app import Vademecum, utc_now
from connector.doctor import installation
from connector.doctor.installation import examine_installation
from connector.doctor.report import Check, is_healthy
from connector.identity.setup import set_passphrase
from connector.settings import Settings
from store.embedders import weights
from store.memory import Draft
from tests.processes import PASSPHRASE


@pytest.fixture
def environ(tmp_path: Path) -> Iterator[dict[str, str]]:
    """A healthy installation's environment."""
    state_dir = tmp_path / "state"
    parts = Vademecum(Settings(state_dir=state_dir, embedder="none"))
    set_passphrase(parts.passphrases, None, PASSPHRASE)
    owner = parts.owners.list()[0].id
    parts.engine.save(owner, parts.engine.spaces(owner)[0].id, "cli", Draft("Worth keeping"))
    parts.authorization_server.keys.ring()
    parts.database.close()
    yield {"VADEMECUM_STATE_DIR": str(state_dir), "VADEMECUM_EMBEDDER": "none"}


def found(environ: Mapping[str, str], now: Callable[[], datetime] = utc_now) -> dict[str, Check]:
    checks = [*examine_installation(environ, now)]
    return {check.name: check for check in checks}


def state(environ: Mapping[str, str]) -> Path:
    return Path(environ["VADEMECUM_STATE_DIR"])


def sql(environ: Mapping[str, str], statement: str) -> None:
    with closing(sqlite3.connect(state(environ) / "vademecum.db", isolation_level=None)) as connection:
        for each in statement.split("; "):
            connection.execute(each)


def test_a_healthy_installation_is_said_to_be_healthy_and_is_not_changed(environ: dict[str, str]) -> None:
    before = sorted(path.name for path in state(environ).iterdir())
    checks = found(environ)
    assert is_healthy(checks.values())
    assert {check.name for check in checks.values() if check.result != "ok"} == {"backup"}
    assert sorted(path.name for path in state(environ).iterdir()) == before


def a_wrong_setting(environ: dict[str, str]) -> None:
    environ["VADEMECUM_PUBLIC_URL"] = "memory.example.org"


def an_unknown_setting(environ: dict[str, str]) -> None:
    environ["VADEMECUM_PUBLIK_URL"] = "https://memory.example.org"


def no_state_directory(environ: dict[str, str]) -> None:
    environ["VADEMECUM_STATE_DIR"] += "/nowhere"


def an_open_state_directory(environ: dict[str, str]) -> None:
    state(environ).chmod(0o755)


def an_open_key(environ: dict[str, str]) -> None:
    (state(environ) / "state.key").chmod(0o644)


def a_lost_key(environ: dict[str, str]) -> None:
    (state(environ) / "state.key").unlink()


def another_key(environ: dict[str, str]) -> None:
    (state(environ) / "state.key").write_bytes(b"x" * 32)


def a_torn_key(environ: dict[str, str]) -> None:
    (state(environ) / "state.key").write_bytes(b"x" * 31)


def an_open_database(environ: dict[str, str]) -> None:
    (state(environ) / "vademecum.db").chmod(0o640)


def no_database_any_more(environ: dict[str, str]) -> None:
    (state(environ) / "vademecum.db").write_bytes(b"lost" * 5000)


def a_dangling_row(environ: dict[str, str]) -> None:
    sql(environ, "INSERT INTO identities VALUES ('k', 'nobody', 'p', 'l', 0)")


def a_newer_schema(environ: dict[str, str]) -> None:
    sql(environ, "PRAGMA user_version=999")


def nobody_can_sign_in(environ: dict[str, str]) -> None:
    sql(environ, "PRAGMA foreign_keys=ON; DELETE FROM records WHERE kind = 'passphrase'")


@pytest.mark.parametrize(
    ("fault", "name"),
    [
        (a_wrong_setting, "configuration"),
        (an_unknown_setting, "configuration"),
        (no_state_directory, "state_directory"),
        (an_open_state_directory, "state_directory_rights"),
        (an_open_key, "state_key"),
        (a_lost_key, "state_key"),
        (a_torn_key, "state_key"),
        (another_key, "signing_keys"),
        (an_open_database, "database_rights"),
        (no_database_any_more, "database"),
        (a_dangling_row, "database_integrity"),
        (a_newer_schema, "database_schema"),
        (nobody_can_sign_in, "identity"),
    ],
)
def test_each_fault_is_found_by_its_name(
    environ: dict[str, str], fault: Callable[[dict[str, str]], None], name: str
) -> None:
    fault(environ)
    failed = {check.name: check for check in found(environ).values() if check.result == "failed"}
    assert set(failed) == {name}
    assert failed[name].said and failed[name].mend


def test_a_clock_that_was_set_back_is_found(environ: dict[str, str]) -> None:
    checks = found(environ, lambda: utc_now() - timedelta(days=1))
    assert checks["clock"].result == "failed"
    assert found(environ, lambda: datetime(1970, 1, 1, tzinfo=UTC))["clock"].result == "failed"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_files_of_another_user_are_found(environ: dict[str, str]) -> None:
    os.chown(state(environ) / "vademecum.db", 65534, 65534)
    assert found(environ)["file_owners"].result == "failed"


def test_a_full_disk_is_found(environ: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installation, "MIN_FREE_BYTES", 1 << 60)
    assert found(environ)["disk_space"].result == "failed"


def test_changed_weights_are_found(environ: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    environ["VADEMECUM_EMBEDDER"] = "local"
    monkeypatch.setattr(weights, "SHA256", "0" * 64)
    checks = found(environ)
    assert (checks["model_files"].result, checks["embedder"].result) == ("failed", "skipped")


def test_an_https_server_without_a_trusted_proxy_is_warned(environ: dict[str, str]) -> None:
    environ["VADEMECUM_PUBLIC_URL"] = "https://memory.example.org"
    assert found(environ)["trusted_proxies"].result == "warning"
