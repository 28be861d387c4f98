"""docs/rfcs.md tells where each rule is kept; what it names must exist."""

import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "rfcs.md").read_text()
ROWS = [row.split(" | ") for row in re.findall(r"^\| (.+?) \|$", TEXT, re.MULTILINE) if "`test_" in row]


def test_every_section_has_a_row() -> None:
    assert len(ROWS) > 40


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_function_and_test_exist(row: list[str]) -> None:
    for module, name in re.findall(r"`((?:connector\.)?\w+)\.(\w+)`", row[1]):
        qualified = module if module.startswith("connector.") else f"oauth.{module}"
        assert hasattr(importlib.import_module(qualified), name)
    ((file, name),) = re.findall(r"`(test_\w+\.py)::(test_\w+)`", row[2])
    files = (ROOT / "tests").glob(f"*/{file}")
    assert any(f"def {name}(" in path.read_text() for path in files)
