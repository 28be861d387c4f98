"""The built encoder, kept in the state directory so that only the first start builds it.

Its name ends in the SHA-256 of its content: a torn or altered file is noticed and built again. Processes that
start together build one after another, the later ones finding the first one's file.
"""

import fcntl
import hashlib
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from store.embedders.weights import SHA256, Weights
from store.errors import StoreError

log = logging.getLogger(__name__)

BUILD = 1
"""Raised whenever `graph.py` changes what it builds."""
NAME = f"encoder-{SHA256[:8]}-{BUILD}"


def encoder_file(weights: Weights, directory: Path) -> Path:
    """The encoder of these weights as an ONNX file; built and kept in `directory` if not there yet.

    Raises:
        StoreError: `unavailable`, the directory cannot be read or written.
    """
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = _find(directory)
        if path is None:
            with _lock(directory):
                path = _find(directory) or _build(weights, directory)
    except OSError as error:
        raise StoreError("unavailable", f"the encoder cannot be kept on disk: {error.strerror}") from error
    return path


def _find(directory: Path) -> Path | None:
    for path in directory.glob(f"{NAME}-*.onnx"):
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        if path.stem == f"{NAME}-{digest}":
            return path
        log.warning("embedder.encoder_damaged", extra={"file": path.name})
    return None


def _build(weights: Weights, directory: Path) -> Path:
    from store.embedders.graph import build_encoder  # brings in onnx, which nothing else needs

    model = build_encoder(weights)
    path = directory / f"{NAME}-{hashlib.sha256(model).hexdigest()}.onnx"
    _write(path, model)
    for other in directory.glob("encoder-*.onnx"):
        if other != path:
            other.unlink()
    log.info("embedder.encoder_built", extra={"file": path.name})
    return path


def _write(path: Path, content: bytes) -> None:
    """Writes a file that after a crash is whole or absent; under the lock a partial one is nobody's."""
    partial = path.with_name("partial")
    descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with open(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(descriptor)
    partial.replace(path)
    parent = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(parent)
    finally:
        os.close(parent)


@contextmanager
def _lock(directory: Path) -> Iterator[None]:
    """Held by one process at a time and released by the kernel if it dies."""
    with (directory / "lock").open("wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
