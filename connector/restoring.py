"""Restoring a backup: what it would change, what stands against it, and then the change itself."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC
from pathlib import Path
from typing import Any

from connector import state_key
from connector.app import Vademecum
from connector.tools.dates import rfc3339
from store import backup
from store.backup import Losses, Manifest, Snapshot
from store.errors import StoreError

MAX_LOST_SHARE = 0.1


@dataclass(frozen=True)
class Obstacle:
    """A reason not to restore; `--force` goes past it."""

    name: str
    message: str


@dataclass(frozen=True)
class Outcome:
    """What restoring a file changes here, or has changed; `losses` is None when what is here is damaged."""

    file: Path
    manifest: Manifest
    losses: Losses | None
    obstacles: tuple[Obstacle, ...]
    is_applied: bool = False
    kept: Path | None = None

    def as_json(self) -> dict[str, Any]:
        """For scripts."""
        return {
            "file": str(self.file),
            "created_at": rfc3339(self.manifest.created_at),
            "kind": self.manifest.kind,
            "memories": self.manifest.snapshot.memories,
            "present": self.losses and self.losses.present,
            "lost": self.losses and self.losses.lost,
            "reverted": self.losses and self.losses.reverted,
            "obstacles": [{"name": each.name, "message": each.message} for each in self.obstacles],
            "applied": self.is_applied,
            "kept": self.kept and str(self.kept),
        }

    def lines(self) -> Iterator[str]:
        """For people."""
        taken = rfc3339(self.manifest.created_at)
        yield f"{self.manifest.kind} backup of {taken}: {self.manifest.snapshot.memories} memories, intact"
        if self.losses is None:
            yield "What is here now cannot be read; it is kept as it is."
        elif self.losses.present:
            yield (
                f"Here are {self.losses.present} memories: {self.losses.lost} are not in the backup, "
                f"{self.losses.reverted} go back to an older revision."
            )
        for each in self.obstacles:
            yield f"{'Forced' if self.is_applied else 'Refused'}: {each.message}"
        if self.is_applied:
            yield "Restored." if self.kept is None else f"Restored. What was here is kept as {self.kept}"
        elif not self.obstacles:
            yield "Nothing was changed; run it again with --apply."


def restore(parts: Vademecum, file: Path, apply: bool, force: bool) -> Outcome:
    """Checks the file against itself and against what is here; puts it in place when asked to.

    Raises:
        StoreError: the file is damaged, of another engine or a newer program, or the data are in use; nothing
            was changed.
    """
    backend = parts.backup_backend
    with backup.extracted(file, parts.settings.state_dir) as (manifest, members):
        if manifest.engine != backend.engine:
            raise StoreError(
                "invalid_argument",
                f"{file} is a backup of {manifest.engine} and this installation keeps its memories in "
                f"{backend.engine}: use `vademecum export` there and `vademecum import` here",
            )
        dumped = members[backend.member]
        _compare(file, manifest.snapshot, backend.inspect(dumped))
        key = members[backup.KEY].read_bytes() if backup.KEY in members else None
        losses = backend.losses(dumped)
        obstacles = tuple(_obstacles(parts, manifest, losses, key))
        outcome = Outcome(file, manifest, losses, obstacles)
        if not apply or (obstacles and not force):
            return outcome
        kept = backend.replace(dumped, f"replaced-{parts.now().astimezone(UTC):%Y%m%dT%H%M%S%f}Z")
        if key is not None and parts.present_state_key is None:
            state_key.put(key, parts.settings.state_dir)
        return replace(outcome, is_applied=True, kept=kept)


def _compare(file: Path, expected: Snapshot, found: Snapshot) -> None:
    for name in sorted({*expected.tables, *found.tables}):
        if expected.tables.get(name) != found.tables.get(name):
            raise StoreError("invalid_argument", f"{file} is damaged: {name} is not what its manifest says")


def _obstacles(
    parts: Vademecum, manifest: Manifest, losses: Losses | None, key: bytes | None
) -> Iterator[Obstacle]:
    if losses is not None and losses.lost > losses.present * MAX_LOST_SHARE:
        yield Obstacle(
            "memories_lost",
            f"{losses.lost} of {losses.present} memories here are not in the backup; --force gives them up",
        )
    present = parts.present_state_key or key
    belonging = manifest.state_key_id
    if belonging is None:
        return
    path = parts.settings.state_dir / state_key.FILE_NAME
    if present is None:
        yield Obstacle(
            "state_key_missing",
            f"the state key is not here, and without it nobody stays signed in: copy it to {path} first",
        )
    elif state_key.key_id(present) != belonging:
        yield Obstacle(
            "state_key_differs",
            "the state key here is not the one of the backup, so that the server would not start: put the "
            f"backup's own key to {path} first",
        )
