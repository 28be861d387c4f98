"""`vademecum support`: one file to send to whoever helps, without content or secrets."""

import contextlib
import json
import os
import platform
import re
import shutil
import sqlite3
import ssl
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Annotated, Any

import typer

from connector import state_key
from connector import support as bundles
from connector.app import Vademecum, utc_now
from connector.commands.output import Json, print_json
from connector.settings import Settings, SettingsError
from store.errors import StoreError

DOCTOR_SECONDS = 120
STANDARD = "-"


def support(
    log: Annotated[
        str | None,
        typer.Option("--log", help="The server's log, or - for standard input: its last 2,000 lines."),
    ] = None,
    output: Annotated[
        str | None, typer.Option("--output", help="Where to write it, or - for standard output.")
    ] = None,
    json: Json = False,
) -> None:
    """Collect what somebody who helps needs: versions, settings, counts, the log, and what doctor says.

    No memory, name, address, key or token is in it; look inside before you send it.
    """
    lines = bundles.log_lines(_lines(log)) if log is not None else None
    settings, problems = _settings()
    parts = None if settings is None else Vademecum(settings)
    members: dict[str, Any] = {
        "versions.json": _versions(),
        "settings.json": {"problems": problems} if settings is None else bundles.masked(settings),
        "counts.json": None if parts is None else _counts(parts),
        "doctor.json": _doctor(),
    }
    if lines is not None:
        members["log.json"] = lines
    content = bundles.bundle(members, [] if parts is None else _secrets(parts))
    where = _write(content, output or f"vademecum-support-{utc_now():%Y%m%dT%H%M%SZ}.zip")
    if json and where is not None:
        print_json({"file": str(where), "members": [*members]})
    elif where is not None:
        typer.echo(where)


def _settings() -> tuple[Settings | None, list[str]]:
    """What cannot be served can be told of all the same."""
    try:
        return Settings.from_env(), []
    except SettingsError as error:
        return None, error.problems


def _lines(log: str) -> Iterator[str]:
    if log == STANDARD:
        yield from sys.stdin
        return
    try:
        with Path(log).open(encoding="utf-8", errors="replace") as file:
            yield from file
    except OSError as error:
        raise StoreError("invalid_argument", f"{log}: {error.strerror}") from error


def _versions() -> dict[str, Any]:
    names = [re.split(r"[^\w.-]", each)[0] for each in requires("vademecum") or [] if "extra ==" not in each]
    return {
        "vademecum": version("vademecum"),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "processors": os.cpu_count(),
        "sqlite": sqlite3.sqlite_version,
        "openssl": ssl.OPENSSL_VERSION,
        "packages": {name: _version(name) for name in sorted(names)},
    }


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _counts(parts: Vademecum) -> dict[str, Any]:
    """How much there is of what; a database that cannot be opened is the answer too."""
    state_dir = parts.settings.state_dir
    free = shutil.disk_usage(state_dir).free if state_dir.exists() else None
    counts: dict[str, Any] = {"disk_free_bytes": free}
    if parts.settings.store == "sqlite":
        path = parts.settings.database_path
        counts["database_bytes"] = path.stat().st_size if path.exists() else None
        if not path.exists():
            # Opening would make one.
            return counts
    return counts | _answered(lambda: _stored(parts))


def _answered(ask: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    try:
        return ask()
    except StoreError as error:
        return {"problem": error.code}
    except sqlite3.Error as error:
        return {"problem": type(error).__name__}


def _stored(parts: Vademecum) -> dict[str, Any]:
    memories, owners = parts.stores.memories, []
    for owner in parts.owners.list():
        spaces = [space.id for space in memories.spaces(owner.id)]
        counts = memories.status(owner.id, spaces).counts
        owners.append({"spaces": len(spaces), "sign_ins": len(owner.identities), "memories": dict(counts)})
    return {"owners": owners, "rejections_beyond": parts.events.rejections_beyond()}


def _doctor() -> Any:
    """What `vademecum doctor` finds, asked as an operator would; None when it says nothing readable."""
    command = [sys.executable, "-m", "connector", "doctor", "--json"]
    try:
        # Nothing in it comes from outside, and a fault that ends doctor must not end this.
        done = subprocess.run(  # noqa: S603
            command, capture_output=True, text=True, timeout=DOCTOR_SECONDS, check=False
        )
        return json.loads(done.stdout)
    except (OSError, subprocess.TimeoutExpired, ValueError):
        return None


def _secrets(parts: Vademecum) -> list[str]:
    """Everything secret that this process can know."""
    found = bundles.secrets_of(parts.settings)
    path = parts.settings.state_dir / state_key.FILE_NAME
    with contextlib.suppress(OSError):
        found += bundles.spellings(path.read_bytes())
    return found


def _write(content: bytes, output: str) -> Path | None:
    """The file, for its owner's eyes only; None when it went to standard output."""
    if output == STANDARD:
        sys.stdout.buffer.write(content)
        return None
    path = Path(output)
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as error:
        raise StoreError("invalid_argument", f"{path}: {error.strerror}; see --output") from error
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
    return path
