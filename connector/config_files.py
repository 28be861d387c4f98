"""Editing another program's configuration file: one entry is merged, everything else stays as it was."""

import difflib
import json
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import tomlkit
from tomlkit.exceptions import TOMLKitError

from connector.client_configs import ENTRY, TRANSPORT, ClientConfig
from store.errors import StoreError


@dataclass(frozen=True)
class Edit:
    """A file as it is and as it would be; `before` is None while there is none."""

    path: Path
    before: str | None
    after: str

    @property
    def is_needed(self) -> bool:
        """Whether anything would change."""
        return self.before != self.after

    def diff(self) -> str:
        """Unified."""
        before, after = (text.splitlines(keepends=True) for text in (self.before or "", self.after))
        return "".join(difflib.unified_diff(before, after, str(self.path), f"{self.path} (new)"))


def edit(client: ClientConfig, path: Path, entry: Mapping[str, Any]) -> Edit:
    """Prepares the change; nothing is written.

    Raises:
        StoreError: `invalid_argument`, the file cannot be read as what it is, with the entry to add by hand.
    """
    path = path.resolve()
    try:
        before = path.read_bytes().decode() if path.exists() else None
    except (OSError, UnicodeDecodeError) as error:
        raise StoreError(
            "invalid_argument", f"{path} cannot be read: {error}; nothing was changed"
        ) from error
    merge = {"json": _merge_json, "toml": _merge_toml}[client.format]
    try:
        return Edit(path, before, merge(before or "", client.table, entry))
    except (ValueError, TOMLKitError, RecursionError) as error:
        raise StoreError("invalid_argument", _refusal(path, client, entry, error)) from error


def _refusal(path: Path, client: ClientConfig, entry: Mapping[str, Any], error: Exception) -> str:
    by_hand = {
        "json": lambda: json.dumps({client.table: {ENTRY: entry}}, indent=2),
        "toml": lambda: tomlkit.dumps({client.table: {ENTRY: entry}}),
    }[client.format]()
    comments = " (comments would be lost)" if client.format == "json" else ""
    return (
        f"{path} is not plain {client.format.upper()}{comments}: {error}; nothing was changed. "
        f"Add this by hand:\n{by_hand}"
    )


def _merge_json(text: str, table: str, entry: Mapping[str, Any]) -> str:
    value = json.loads(text, object_pairs_hook=_unique) if text.strip() else {}
    servers = value.setdefault(table, {}) if isinstance(value, dict) else None
    if not isinstance(servers, dict):
        raise ValueError(f"{table} is no object")
    merged = _merged(servers.get(ENTRY), entry)
    if servers.get(ENTRY) == merged:
        return text
    servers[ENTRY] = merged
    return json.dumps(value, indent=_indent(text), ensure_ascii=False) + "\n"


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name stands twice in one object")
    return found


def _indent(text: str) -> int | str:
    """As the file has it."""
    found = re.search(r"^([ \t]+)\S", text, re.MULTILINE)
    return found.group(1) if found else 2


def _merge_toml(text: str, table: str, entry: Mapping[str, Any]) -> str:
    document = tomlkit.parse(text)
    servers = document.setdefault(table, tomlkit.table(is_super_table=True))
    if not isinstance(servers, dict):
        raise ValueError(f"{table} is no table")
    known = servers.get(ENTRY)
    merged = _merged(known, entry)
    if known is not None and known.unwrap() == merged:
        return text
    if known is None:
        servers[ENTRY] = {}
        known = servers[ENTRY]
    for name in [each for each in known if each not in merged]:
        del known[name]
    for name, value in merged.items():
        if known.get(name) != value:
            known[name] = value
    return tomlkit.dumps(document)


def _merged(known: Any, entry: Mapping[str, Any]) -> dict[str, Any]:
    """How the server is reached is ours, what else stands there the person's."""
    kept = known.unwrap() if hasattr(known, "unwrap") else known
    others = {} if not isinstance(kept, dict) else {k: v for k, v in kept.items() if k not in TRANSPORT}
    return {**entry, **others}


def write(change: Edit, now: datetime) -> Path | None:
    """Puts the change in place in one step, and returns where the old file is kept.

    Raises:
        StoreError: `conflict` when the file has changed meanwhile, `unavailable` when it cannot be written.
    """
    path = change.path
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if (path.read_bytes().decode() if path.exists() else None) != change.before:
            raise StoreError("conflict", f"{path} has changed meanwhile; nothing was written, try again")
        kept = None if change.before is None else _keep(path, now)
        descriptor, draft = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as file:
                file.write(change.after)
                file.flush()
                os.fsync(file.fileno())
            os.chmod(draft, stat.S_IMODE(path.stat().st_mode) if path.exists() else 0o600)
            os.replace(draft, path)
        finally:
            Path(draft).unlink(missing_ok=True)
    except OSError as error:
        raise StoreError("unavailable", f"{path} cannot be written: {error}") from error
    return kept


def _keep(path: Path, now: datetime) -> Path:
    kept = path.with_name(f"{path.name}.{now.astimezone(UTC):%Y%m%dT%H%M%S%f}Z.bak")
    shutil.copy2(path, kept)
    return kept
