"""What other owners' memories cost an owner's search: nothing, or the data layout is wrong.

Run with `python -m bench.tenants [FOREIGN]`. One owner with 2,000 memories searches before and after so many
memories of twenty other owners are added. Vectors are random: this measures the store, not the embedder.
"""

import random
import sys
import tempfile
import time
import zlib
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

import numpy as np
from numpy.typing import NDArray

from bench.server import PROSE, SENTENCE_WORDS
from store.engine import Engine
from store.memory import Draft
from store.sqlite.database import Database
from store.sqlite.memories import SQLiteMemories
from store.sqlite.owners import SQLiteOwners

OWN = 2_000
OTHERS = 20
BATCH = 1_000
SEARCHES = 400


class RandomEmbedder:
    """A unit vector for every text, the same each time."""

    name = "random"
    dimensions = 384

    def embed_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        vectors = [np.random.default_rng(zlib.crc32(text.encode())).normal(size=384) for text in texts]
        stacked = np.asarray(vectors, np.float32)
        unit: NDArray[np.float32] = stacked / np.linalg.norm(stacked, axis=1, keepdims=True)
        return unit

    embed_passages = embed_queries


def sentence(source: random.Random) -> str:
    return " ".join(source.choice(PROSE) for _ in range(SENTENCE_WORDS))


def fill(engine: Engine, owner: str, count: int, source: random.Random) -> None:
    space = engine.spaces(owner)[0].id
    for start in range(0, count, BATCH):
        drafts = [Draft(sentence(source)) for _ in range(min(BATCH, count - start))]
        engine.import_many(owner, space, "bench", drafts)


def measure(engine: Engine, owner: str, source: random.Random) -> float:
    """Median milliseconds of a search."""
    space = engine.spaces(owner)[0].id
    times = []
    for _ in range(SEARCHES):
        query = sentence(source)[:40]
        began = time.perf_counter()
        engine.search(owner, space, query)
        times.append((time.perf_counter() - began) * 1000)
    return median(times)


def main(foreign: int) -> None:
    source = random.Random(7)  # noqa: S311 - a load, not a secret
    with tempfile.TemporaryDirectory() as directory:
        now = lambda: datetime.now(UTC)  # noqa: E731 - the clock
        database = Database(Path(directory) / "vademecum.db", now)
        engine = Engine(SQLiteMemories(database), RandomEmbedder(), now)
        owners = SQLiteOwners(database)
        owner = owners.create("bench", "issuer", "owner", "o").id
        fill(engine, owner, OWN, source)
        measure(engine, owner, source)
        before = measure(engine, owner, source)
        for number in range(OTHERS):
            other = owners.create("bench", "issuer", str(number), "x").id
            fill(engine, other, foreign // OTHERS, source)
        measure(engine, owner, source)
        after = measure(engine, owner, source)
        database.close()
    print(f"search among {OWN} memories: {before:.2f} ms")
    print(f"with {foreign} of other owners: {after:.2f} ms ({after / before - 1:+.1%})")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000)
