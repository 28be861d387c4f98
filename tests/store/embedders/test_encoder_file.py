"""The built encoder on disk: made once, never left broken, made again when damaged."""

import hashlib
import logging
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from store.embedders.encoder_file import encoder_file
from store.embedders.local import LocalEmbedder
from store.embedders.weights import Weights
from store.errors import StoreError

ROOT = Path(__file__).parents[3]


def _is_whole(path: Path) -> bool:
    return path.stem.endswith("-" + hashlib.sha256(path.read_bytes()).hexdigest())


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def _flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def _empty(path: Path) -> None:
    path.write_bytes(b"")


def test_the_first_start_builds_and_the_next_finds_it(weights: Weights, tmp_path: Path) -> None:
    path = encoder_file(weights, tmp_path)
    written = path.stat().st_mtime_ns
    assert encoder_file(weights, tmp_path) == path
    assert path.stat().st_mtime_ns == written


def test_only_the_owner_may_touch_it(weights: Weights, tmp_path: Path) -> None:
    path = encoder_file(weights, tmp_path / "embedder")
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("damage", [_cut, _flip, _empty])
def test_a_damaged_file_is_noticed_and_built_again(
    weights: Weights, tmp_path: Path, caplog: pytest.LogCaptureFixture, damage: Callable[[Path], None]
) -> None:
    damage(encoder_file(weights, tmp_path))
    with caplog.at_level(logging.WARNING):
        path = encoder_file(weights, tmp_path)
    assert "embedder.encoder_damaged" in caplog.messages
    assert _is_whole(path)
    assert list(tmp_path.glob("*.onnx")) == [path]


def test_what_a_crash_or_an_older_version_left_behind_is_cleared(weights: Weights, tmp_path: Path) -> None:
    (tmp_path / "partial").write_bytes(b"half an encoder")
    (tmp_path / "encoder-00000000-0-00.onnx").write_bytes(b"an older build")
    path = encoder_file(weights, tmp_path)
    assert {file.name for file in tmp_path.iterdir()} == {path.name, "lock"}


def test_the_same_weights_give_the_same_bytes(weights: Weights, tmp_path: Path) -> None:
    assert encoder_file(weights, tmp_path / "one").name == encoder_file(weights, tmp_path / "other").name


def test_processes_that_start_together_share_one_whole_file(embedder: LocalEmbedder, tmp_path: Path) -> None:
    script = (
        "import sys; from pathlib import Path; from store.embedders.local import LocalEmbedder;"
        "sys.stdout.buffer.write(LocalEmbedder(Path(sys.argv[1])).embed_queries(['hello']).tobytes())"
    )
    command = [sys.executable, "-c", script, str(tmp_path)]
    racers = [subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE) for _ in range(3)]
    vectors = [racer.communicate(timeout=60)[0] for racer in racers]
    assert [racer.returncode for racer in racers] == [0, 0, 0]
    assert set(vectors) == {embedder.embed_queries(["hello"]).tobytes()}
    (path,) = (tmp_path / "embedder").glob("*.onnx")
    assert _is_whole(path)
    assert not (tmp_path / "embedder" / "partial").exists()


def test_a_crash_while_writing_leaves_nothing_that_is_taken_for_an_encoder(
    weights: Weights, tmp_path: Path
) -> None:
    script = (
        "import os, sys; from pathlib import Path; from store.embedders.local import LocalEmbedder;"
        "os.fsync = lambda _: os._exit(70); LocalEmbedder(Path(sys.argv[1]))"
    )
    crashed = subprocess.run([sys.executable, "-c", script, str(tmp_path)], cwd=ROOT, check=False)
    assert crashed.returncode == 70
    assert list((tmp_path / "embedder").glob("*.onnx")) == []
    assert _is_whole(encoder_file(weights, tmp_path / "embedder"))


def test_a_directory_that_cannot_be_made_is_named_as_the_reason(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match="cannot be kept on disk: Not a directory") as refusal:
        LocalEmbedder(tmp_path / "file")
    assert refusal.value.code == "unavailable"
