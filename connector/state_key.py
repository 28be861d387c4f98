"""The state key: 32 random bytes from which every other secret of the server is derived.

From the settings where they bring it, otherwise a file of its own beside the database, so that the database
alone opens nothing (RFC 6819 §5.1.4.1).
"""

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
    if configured is not None:
        return configured
    path = state_dir / FILE_NAME
    try:
        if not path.exists():
            _create(path)
        key = path.read_bytes()
    except OSError as error:
        raise SettingsError([f"{path}: {error}"]) from error
    if len(key) != STATE_KEY_BYTES:
        raise SettingsError([f"{path}: {STATE_KEY_BYTES} bytes expected, {len(key)} found"])
    if path.stat().st_mode & 0o077:
        raise SettingsError([f"{path}: others may read it; run: chmod 600 {path}"])
    return key


def _create(path: Path) -> None:
    """Writes the whole key under another name and links it into place: the first process wins."""
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(secrets.token_bytes(STATE_KEY_BYTES))
            file.flush()
            os.fsync(file.fileno())
        os.link(draft, path)
    except FileExistsError:
        pass
    finally:
        draft.unlink()
