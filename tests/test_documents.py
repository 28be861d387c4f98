"""Documents that must not fall behind the code."""

import re
from pathlib import Path

from tests import write_tools

ROOT = Path(__file__).parent.parent


def test_every_kind_of_record_is_documented() -> None:
    sources = [
        path.read_text() for package in ("oauth", "connector") for path in (ROOT / package).rglob("*.py")
    ]
    used = {kind for source in sources for kind in re.findall(r'^\w*KIND = "(\w+)"', source, re.MULTILINE)}
    documented = set(re.findall(r"^\| `(\w+)` \|", (ROOT / "docs" / "records.md").read_text(), re.MULTILINE))
    assert used == documented
    assert used


def test_every_tool_is_documented_as_it_describes_itself() -> None:
    assert write_tools.PAGE.read_text(encoding="utf-8") == write_tools.written()


def test_links_between_documents_lead_somewhere() -> None:
    for document in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]:
        for target in re.findall(r"\]\((?!https?://|#)([^)#]+)", document.read_text()):
            assert (document.parent / target).exists(), f"{document.name}: {target}"
