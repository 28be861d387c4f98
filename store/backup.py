"""Backups: one zip file of what a backend wrote down, with a manifest of counts and SHA-256 sums.

What is in the file's one data member is the backend's affair; that it is whole, where it lies, who may read
it and how long it is kept is decided here, the same for every backend.
"""

import hashlib
import json
import os
import re
import shutil
import tempfile
import time
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import IO, Any, Literal, Protocol

from pydantic import TypeAdapter, ValidationError

from store.errors import StoreError

FORMAT = "vademecum-backup"
VERSION = 1
MANIFEST = "manifest.json"
KEY = "state.key"
MAX_MANIFEST_BYTES = 1024 * 1024
CHUNK_BYTES = 1024 * 1024
UNFINISHED = ".unfinished-"
ABANDONED_SECONDS = 24 * 3600
Kind = Literal["full", "portable"]
_NAME = re.compile(r"vademecum-\d{8}T\d{12}Z-(full|portable)\.zip")


@dataclass(frozen=True)
class Part:
    """How many rows a table or collection has, and the SHA-256 of them all in order of their keys."""

    rows: int
    sha256: str


@dataclass(frozen=True)
class Snapshot:
    """What a backend wrote down: its schema's version, and its content table by table.

    The vectors stand apart, so that a portable backup and a full one of one moment can be compared.
    """

    schema: int
    memories: int
    tables: Mapping[str, Part]


@dataclass(frozen=True)
class Losses:
    """What a restore would cost, in memories: those here now, those gone after it, those older after it."""

    present: int
    lost: int
    reverted: int


class Backend(Protocol):
    """What a storage engine brings so that it can be backed up and restored."""

    engine: str
    member: str
    """The name of the data member within the archive."""

    def dump(self, target: Path, kind: Kind) -> Snapshot:
        """Writes one consistent moment to `target` while others go on writing, and checks it.

        Raises:
            StoreError: `unavailable`, the data are damaged or cannot be read.
        """

    def inspect(self, dumped: Path) -> Snapshot:
        """Reads what `dump` wrote, and checks it.

        Raises:
            StoreError: `unavailable`, it is damaged or was written by a newer program.
        """

    def losses(self, dumped: Path) -> Losses | None:
        """What a restore would cost; None when the present data cannot be read."""

    def replace(self, dumped: Path, kept: str) -> Path | None:
        """Puts `dumped` in the place of the present data, and says where those are kept, if there were any.

        Args:
            dumped: What `inspect` found good; it is used up.
            kept: The name under which the present data are kept.

        Raises:
            StoreError: `conflict` while any process uses the data; nothing was changed.
        """


@dataclass(frozen=True)
class File:
    """A member of the archive."""

    bytes: int
    sha256: str


@dataclass(frozen=True)
class Manifest:
    """What the archive says of itself."""

    created_at: datetime
    program: str
    engine: str
    kind: Kind
    snapshot: Snapshot
    files: Mapping[str, File]
    state_key_id: str | None
    """Tells one state key from another without holding it."""
    format: str = FORMAT
    version: int = VERSION


_MANIFEST: TypeAdapter[Manifest] = TypeAdapter(Manifest)


@dataclass(frozen=True)
class Found:
    """A backup in a directory; `manifest` is None when the file cannot be read."""

    path: Path
    bytes: int
    manifest: Manifest | None = field(repr=False)


def create(
    backend: Backend,
    directory: Path,
    kind: Kind,
    created_at: datetime,
    program: str,
    state_key_id: str | None,
    state_key: bytes | None = None,
) -> Found:
    """Makes a backup in `directory`, reads it again, and only then gives it its name.

    Args:
        backend: What is backed up.
        directory: Made if it is not there; for its owner's eyes only.
        kind: `full` with the vectors, `portable` without.
        created_at: Its moment, which is part of its name.
        program: The version of this program.
        state_key_id: Tells which state key belongs to it.
        state_key: Put inside, when it is given.

    Raises:
        StoreError: `unavailable`; nothing is left behind.
    """
    path = directory / f"vademecum-{created_at.astimezone(UTC):%Y%m%dT%H%M%S%f}Z-{kind}.zip"
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        with _scratch(directory) as scratch:
            dumped = scratch / backend.member
            snapshot = backend.dump(dumped, kind)
            files = {backend.member: _describe(dumped)}
            if state_key is not None:
                files[KEY] = File(len(state_key), hashlib.sha256(state_key).hexdigest())
            manifest = Manifest(created_at, program, backend.engine, kind, snapshot, files, state_key_id)
            draft = scratch / path.name
            _write(draft, manifest, dumped, backend.member, state_key)
            read(draft)
            os.replace(draft, path)
            _sync(directory)
    except OSError as error:
        raise StoreError("unavailable", f"the backup cannot be written: {error}") from error
    return Found(path, path.stat().st_size, manifest)


def _write(draft: Path, manifest: Manifest, dumped: Path, member: str, state_key: bytes | None) -> None:
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=3) as archive:
            archive.writestr(MANIFEST, json.dumps(_MANIFEST.dump_python(manifest, mode="json"), indent=2))
            archive.write(dumped, member)
            if state_key is not None:
                archive.writestr(KEY, state_key)
        file.flush()
        os.fsync(file.fileno())


def read(path: Path) -> Manifest:
    """The manifest of an archive whose every member is as it says.

    Raises:
        StoreError: `invalid_argument`, it is no backup, damaged or of a newer format.
    """
    with _opened(path) as archive:
        manifest = _manifest(path, archive)
        for name, expected in manifest.files.items():
            with archive.open(name) as member:
                _verify(path, name, expected, member, None)
    return manifest


def describe(path: Path) -> Manifest:
    """The manifest alone, its members unread.

    Raises:
        StoreError: as `read`.
    """
    with _opened(path) as archive:
        return _manifest(path, archive)


@contextmanager
def extracted(path: Path, directory: Path) -> Iterator[tuple[Manifest, Mapping[str, Path]]]:
    """The members of an archive, verified, as files in `directory` that are gone when the block ends.

    Raises:
        StoreError: as `read`; `unavailable` when `directory` cannot be written.
    """
    try:
        with _scratch(directory) as scratch, _opened(path) as archive:
            manifest = _manifest(path, archive)
            files = {}
            for name, expected in manifest.files.items():
                files[name] = scratch / name
                descriptor = os.open(files[name], os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
                with archive.open(name) as member, os.fdopen(descriptor, "wb") as target:
                    _verify(path, name, expected, member, target)
                    target.flush()
                    os.fsync(target.fileno())
            yield manifest, files
    except OSError as error:
        raise StoreError("unavailable", f"{directory} cannot be written: {error}") from error


@contextmanager
def _opened(path: Path) -> Iterator[zipfile.ZipFile]:
    try:
        archive = zipfile.ZipFile(path)
    except FileNotFoundError as error:
        raise StoreError("not_found", f"there is no file {path}") from error
    except (OSError, zipfile.BadZipFile) as error:
        raise StoreError("invalid_argument", f"{path} is no backup: {error}") from error
    with archive:
        try:
            yield archive
        except (zipfile.BadZipFile, zipfile.LargeZipFile, EOFError, NotImplementedError) as error:
            raise StoreError("invalid_argument", f"{path} is damaged: {error}") from error


def _manifest(path: Path, archive: zipfile.ZipFile) -> Manifest:
    try:
        information = archive.getinfo(MANIFEST)
        if information.file_size > MAX_MANIFEST_BYTES:
            raise StoreError("invalid_argument", f"{path} is no backup: its manifest is too large")
        manifest = _MANIFEST.validate_json(archive.read(MANIFEST))
    except (KeyError, ValidationError) as error:
        raise StoreError("invalid_argument", f"{path} is no backup: it has no readable manifest") from error
    if manifest.format != FORMAT:
        raise StoreError("invalid_argument", f"{path} is no backup of this program")
    if manifest.version > VERSION:
        raise StoreError("invalid_argument", f"{path} was written by a newer version of this program")
    if set(manifest.files) | {MANIFEST} != set(archive.namelist()) or any(
        Path(name).name != name for name in manifest.files
    ):
        raise StoreError("invalid_argument", f"{path} is damaged: it does not hold what its manifest names")
    return manifest


def _verify(path: Path, name: str, expected: File, member: IO[bytes], target: IO[bytes] | None) -> None:
    digest, size = hashlib.sha256(), 0
    try:
        while chunk := member.read(CHUNK_BYTES):
            digest.update(chunk)
            size += len(chunk)
            if size > expected.bytes:
                break
            if target is not None:
                target.write(chunk)
    except (zipfile.BadZipFile, EOFError) as error:
        raise StoreError("invalid_argument", f"{path} is damaged: {name}: {error}") from error
    if (size, digest.hexdigest()) != (expected.bytes, expected.sha256):
        raise StoreError("invalid_argument", f"{path} is damaged: {name} is not what its manifest says")


def _describe(file: Path) -> File:
    with file.open("rb") as opened:
        return File(file.stat().st_size, hashlib.file_digest(opened, "sha256").hexdigest())


def listed(directory: Path) -> list[Found]:
    """The backups of a directory, newest first; files of other names are none of them."""
    found = []
    for path in directory.glob("vademecum-*.zip"):
        if _NAME.fullmatch(path.name):
            try:
                manifest = describe(path)
            except StoreError:
                manifest = None
            found.append(Found(path, path.stat().st_size, manifest))
    return sorted(found, key=lambda each: each.path.name, reverse=True)


def rotate(directory: Path, keep: int, max_age: timedelta | None, now: datetime) -> list[Path]:
    """Deletes all but the newest `keep`, and what is older than `max_age`; of each kind one always stays.

    Returns:
        What was deleted.
    """
    deleted = []
    for kind in ("full", "portable"):
        of_kind = [each for each in listed(directory) if each.manifest and each.manifest.kind == kind]
        for position, each in enumerate(of_kind[1:], 1):
            created_at = each.manifest.created_at if each.manifest else now
            if position >= keep or (max_age is not None and now - created_at > max_age):
                each.path.unlink()
                deleted.append(each.path)
    return deleted


def delete(directory: Path, name: str) -> Path:
    """Deletes one backup of the directory.

    Raises:
        StoreError: `not_found`.
    """
    for each in listed(directory):
        if name in (each.path.name, str(each.path)):
            each.path.unlink()
            return each.path
    raise StoreError("not_found", f"no backup {name} in {directory}; `vademecum backup list` names them")


@contextmanager
def _scratch(directory: Path) -> Iterator[Path]:
    """A directory for unfinished files; what processes that were killed left there long ago is removed."""
    for left in directory.glob(f"{UNFINISHED}*"):
        if time.time() - left.stat().st_mtime > ABANDONED_SECONDS:
            shutil.rmtree(left, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=UNFINISHED, dir=directory) as scratch:
        yield Path(scratch)


def _sync(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def as_json(manifest: Manifest) -> dict[str, Any]:
    """The manifest as it stands in the archive."""
    dumped: dict[str, Any] = _MANIFEST.dump_python(manifest, mode="json")
    return dumped
