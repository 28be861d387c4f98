"""The local embedder on this machine: `python -m bench.embedder`.

Loading is measured in this process and building in another, because a build's memory would blur what a load
needs. The texts are made up of common words in five languages; every one is different.
"""

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from store.embedders.local import LocalEmbedder

TEXT = (
    "the billing service keeps its invoices in a database that we chose because of transactions and backups "
    "mi hija es alérgica a los cacahuetes y lleva siempre un inyector en la mochila del colegio "
    "o trem noturno parte da plataforma quatro às nove e meia e chega a Viena de manhã cedo "
    "今天 天气 很好 我们 去 公园 散步 然后 一起 吃饭 請求 サービス には トランザクション が 必要 です"
)
WORDS = TEXT.split()
BUILD = """
import sys
from pathlib import Path
from store.embedders.local import LocalEmbedder
LocalEmbedder(Path(sys.argv[1]))
"""
SHORT, MEDIUM, LONG = 8, 60, 600
"""Words in a text: a question, a memory, and more than the 512 tokens of the window."""


def text(number: int, words: int) -> str:
    """A text of its own for each number."""
    step = 1 + number % 5
    return " ".join([str(number), *(WORDS[(number * 7 + step * n) % len(WORDS)] for n in range(words))])


def resident_mb() -> float:
    """What of this process is in memory now (Linux only)."""
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) / 1024


def percentiles(durations: list[float]) -> str:
    """p50 and p95 in milliseconds."""
    ordered = sorted(durations)
    p50, p95 = (ordered[int(len(ordered) * share)] * 1000 for share in (0.50, 0.95))
    return f"{p50:.2f} / {p95:.2f}"


def ask(embedder: LocalEmbedder, numbers: Iterable[int]) -> list[float]:
    """The duration of each query."""
    durations = []
    for number in numbers:
        started = time.perf_counter()
        embedder.embed_queries([text(number, SHORT)])
        durations.append(time.perf_counter() - started)
    return durations


def ask_together(embedder: LocalEmbedder, callers: int) -> tuple[list[float], float]:
    """The duration of each query, and queries per second, of callers that ask without pause."""
    with ThreadPoolExecutor(callers) as pool:
        started = time.perf_counter()
        each = pool.map(lambda n: ask(embedder, range(n * 1000, n * 1000 + 100)), range(1, callers + 1))
        durations = [duration for caller in each for duration in caller]
        return durations, len(durations) / (time.perf_counter() - started)


def store_rate(embedder: LocalEmbedder, count: int, words: int) -> float:
    """Passages per second of one caller that brings them by 64."""
    batches = [[text(n, words) for n in range(start, start + 64)] for start in range(0, count, 64)]
    started = time.perf_counter()
    for batch in batches:
        embedder.embed_passages(batch)
    return count / (time.perf_counter() - started)


def load() -> tuple[LocalEmbedder, float, float]:
    """A loaded embedder, the seconds of a first start in a process of its own, and those of a load here."""
    with tempfile.TemporaryDirectory() as state_dir:
        started = time.perf_counter()
        subprocess.run([sys.executable, "-c", BUILD, state_dir], check=True)
        built = time.perf_counter()
        embedder = LocalEmbedder(Path(state_dir))
        return embedder, built - started, time.perf_counter() - built


def main() -> None:
    """Prints the table."""
    rows = [("resident before, MB", f"{resident_mb():.0f}")]
    embedder, first_start, loading = load()
    rows.append(("first start with build and imports, s", f"{first_start:.2f}"))
    rows.append(("load, s", f"{loading:.2f}"))
    rows.append(("resident after loading, MB", f"{resident_mb():.0f}"))
    ask(embedder, range(50))
    rows.append(("query alone, ms p50 / p95", percentiles(ask(embedder, range(50, 550)))))
    for callers in (2, 8):
        durations, rate = ask_together(embedder, callers)
        rows.append((f"query among {callers} callers, ms p50 / p95", percentiles(durations)))
        rows.append((f"queries/s of {callers} callers", f"{rate:.0f}"))
    for name, count, words in (("short", 1024, SHORT), ("60 words", 512, MEDIUM), ("512 tokens", 64, LONG)):
        rows.append((f"passages/s, {name}", f"{store_rate(embedder, count, words):.0f}"))
    rows.append(("resident at the end, MB", f"{resident_mb():.0f}"))
    for name, value in rows:
        print(f"{name:<40}{value:>16}")


if __name__ == "__main__":
    main()
