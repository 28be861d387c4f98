"""The state key: 32 random bytes from which every other secret of the server is derived.

From the settings where they bring it, otherwise a file of its own beside the database, so that the database
alone opens nothing (RFC 6819 §5.1.4.1).
"""

import hashlib
import hmac
import os
import secrets
from pathlib import Path

from connector.settings import STATE_KEY_BYTES, SettingsError

FILE_NAME = "state.key"


def load(configured: bytes | None, state_dir: Path) -> bytes:
    """The configured key, or that of the file, which is made at the first start.

    Raises:
        SettingsError: the file holds something else, or others may read it.
    """
    key = find(configured, state_dir)
    if key is None:
        path = state_dir / FILE_NAME
        try:
            _create(path, secrets.token_bytes(STATE_KEY_BYTES))
        except OSError as error:
            raise SettingsError([f"{path}: {error}"]) from error
        key = find(configured, state_dir)
    if key is None:
        raise SettingsError([f"{state_dir / FILE_NAME}: it vanished as it was made"])
    return key


def find(configured: bytes | None, state_dir: Path) -> bytes | None:
    """The configured key, or that of the file; None when there is neither yet.

    Raises:
        SettingsError: as `load`.
    """
    if configured is not None:
        return configured
    path = state_dir / FILE_NAME
    try:
        key = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise SettingsError([f"{path}: {error}"]) from error
    if len(key) != STATE_KEY_BYTES:
        raise SettingsError([f"{path}: {STATE_KEY_BYTES} bytes expected, {len(key)} found"])
    if path.stat().st_mode & 0o077:
        raise SettingsError([f"{path}: others may read it; run: chmod 600 {path}"])
    return key


def put(key: bytes, state_dir: Path) -> None:
    """Makes the file; one that is there stays.

    Raises:
        SettingsError: it cannot be written.
    """
    try:
        _create(state_dir / FILE_NAME, key)
    except OSError as error:
        raise SettingsError([f"{state_dir / FILE_NAME}: {error}"]) from error


def key_id(key: bytes) -> str:
    """Tells one key from another without giving it away."""
    return hmac.digest(key, b"key id", hashlib.sha256).hex()[:16]


def _create(path: Path, key: bytes) -> None:
    """Writes the whole key under another name and links it into place: the first process wins."""
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(key)
            file.flush()
            os.fsync(file.fileno())
        os.link(draft, path)
    except FileExistsError:
        pass
    finally:
        draft.unlink()
