"""The built encoder, kept in the state directory so that only the first start builds it.

The file is the SHA-256 of the model followed by the model: a torn or altered one is noticed and built again.
Processes that start together build one after another, the later ones finding the first one's file.
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
FILE_NAME = f"encoder-{SHA256[:16]}-{BUILD}"
DIGEST_BYTES = 32


def load_encoder(weights: Weights, directory: Path) -> bytes:
    """The encoder of these weights as an ONNX model; built and kept in `directory` if not there yet.

    Raises:
        StoreError: `unavailable`, the directory cannot be written.
    """
    path = directory / FILE_NAME
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        model = _read(path)
        if model is None:
            with _lock(directory):
                model = _read(path) or _build(weights, path)
    except OSError as error:
        raise StoreError("unavailable", f"the encoder cannot be kept on disk: {error.strerror}") from error
    return model


def _read(path: Path) -> bytes | None:
    try:
        with path.open("rb") as file:
            digest, model = file.read(DIGEST_BYTES), file.read()
    except FileNotFoundError:
        return None
    if hashlib.sha256(model).digest() != digest:
        log.warning("embedder.encoder_damaged", extra={"file": path.name})
        return None
    return model


def _build(weights: Weights, path: Path) -> bytes:
    from store.embedders.graph import build_encoder  # onnx is wanted on this path alone

    model = build_encoder(weights)
    _replace(path, hashlib.sha256(model).digest() + model)
    log.info("embedder.encoder_built", extra={"file": path.name})
    return model


def _replace(path: Path, content: bytes) -> None:
    """Writes a file that after a crash is whole or absent; under the lock a partial one is nobody's."""
    partial = path.with_name(f"{path.name}.partial")
    descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with open(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(descriptor)
    partial.replace(path)
    directory = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


@contextmanager
def _lock(directory: Path) -> Iterator[None]:
    """Held by one process at a time and released by the kernel if it dies."""
    with (directory / "lock").open("wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
