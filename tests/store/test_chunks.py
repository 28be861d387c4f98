"""A document is cut on its structure: nothing is lost, and every chunk says where it stands."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from store import chunks
from store.chunks import CHUNK_CHARACTERS, PATH_CHARACTERS, Chunk, split

SENTENCE = "This sentence is exactly as long as the others are. "


def paths(content: str, title: str = "Guide") -> list[str]:
    return [chunk.path for chunk in split(title, content)]


def source(found: list[Chunk]) -> str:
    return "".join(chunk.text for chunk in found)


def test_a_chunk_names_the_document_and_the_headings_it_stands_below() -> None:
    content = "Before.\n# Install\nAll.\n## Linux\napt\n### Arm\nslow\n## macOS\nbrew\n# Use\nrun\n"
    found = split("Guide", content)
    assert [chunk.path for chunk in found] == [
        "Guide",
        "Guide › Install",
        "Guide › Install › Linux",
        "Guide › Install › Linux › Arm",
        "Guide › Install › macOS",
        "Guide › Use",
    ]
    assert source(found) == content
    assert found[2].content == "Guide › Install › Linux\n\n## Linux\napt\n"


@pytest.mark.parametrize(
    ("content", "path"),
    [
        ("Setext\n===\ntext", "Guide › Setext"),
        ("Below\n---\ntext", "Guide › Below"),
        ("   ## Closed ##\ntext", "Guide › Closed"),
        (
            "# *Bold* `code` [link](http://x.example) ![alt](y) &amp; \\*\ntext",
            "Guide › Bold code link alt & *",
        ),
        ("# Deep <b>tag</b>\ntext", "Guide › Deep tag"),
        ("# guide\ntext", "Guide"),
        ("#\ntext", "Guide"),
        ("## Skipped\n#### levels\ntext", "Guide › Skipped › levels"),
        ("# One\r\ntext\r\n", "Guide › One"),
        ("    # code, not a heading\n", "Guide"),
        ("```\n# code, not a heading\n```\n", "Guide"),
        ("> # quoted\n> text", "Guide"),
        ("- # item\n", "Guide"),
        ("<!--\n# comment\n-->\n", "Guide"),
        ("#no heading without a space\n", "Guide"),
        ("---\ntitle: front matter\ndate: 2026-03-01\n---\ntext", "Guide"),
        ("---\r\ntitle: front matter\r\n---\r\ntext", "Guide"),
        ("# Überschrift – 見出し\ntext", "Guide › Überschrift – 見出し"),
    ],
)
def test_headings_are_what_commonmark_says_they_are(content: str, path: str) -> None:
    (found,) = split("Guide", content)
    assert (found.path, found.text) == (path, content)


def test_headings_with_nothing_below_them_go_on_with_the_next() -> None:
    (found,) = split("Guide", "# Install\n\n## Linux\n\napt\n")
    assert found == Chunk("Guide › Install › Linux", "# Install\n\n## Linux\n\napt\n")


def test_front_matter_stays_in_one_piece_before_the_first_heading() -> None:
    first, second = split("Guide", "---\ntags: [a]\n---\n# One\ntext\n")
    assert (first.text, second.path) == ("---\ntags: [a]\n---\n", "Guide › One")


FENCE = "```python\n" + "".join(f"line_{n} = {n}\n\n" for n in range(30)) + "```\n"
TABLE = "| a | b |\n|---|---|\n" + "".join(f"| {n} | value {n} |\n" for n in range(30))
INDENTED = "".join(f"    line {n}\n\n" for n in range(30))
LIST_WITH_CODE = "- item\n\n" + "".join(f"  {line}\n" for line in FENCE.splitlines())


@pytest.mark.parametrize(
    "block", [FENCE, TABLE, INDENTED, LIST_WITH_CODE], ids=["fence", "table", "code", "list"]
)
def test_code_and_tables_are_not_cut_while_they_fit(block: str) -> None:
    content = f"# One\n\n{SENTENCE * 15}\n\n{block}\n{SENTENCE * 15}\n"
    found = split("Guide", content)
    assert source(found) == content
    assert len(found) > 1
    assert sum(block.strip() in chunk.text for chunk in found) == 1


def test_code_in_a_list_too_long_for_a_chunk_is_not_cut_either() -> None:
    content = f"- {SENTENCE * 15}\n\n{LIST_WITH_CODE}\n- {SENTENCE * 15}\n"
    code = LIST_WITH_CODE.partition("\n\n")[2].strip()
    found = split("Guide", content)
    assert source(found) == content
    assert sum(code in chunk.text for chunk in found) == 1


def test_a_longer_table_is_cut_between_rows_and_a_longer_list_between_items() -> None:
    rows = "| a | b |\n|---|---|\n" + "".join(f"| {n} | value {n} |\n" for n in range(300))
    assert all(chunk.text.endswith("|\n") for chunk in split("Guide", rows))
    items = "".join(f"- item {n} of a long list\n" for n in range(300))
    assert all(chunk.text.startswith("- item") for chunk in split("Guide", items))
    assert source(split("Guide", rows)) == rows
    assert source(split("Guide", items)) == items


def test_paragraphs_are_cut_between_sentences() -> None:
    found = split("Guide", SENTENCE * 100)
    assert len(found) > 4
    assert all(chunk.text.rstrip().endswith(".") for chunk in found)


def test_long_titles_and_many_headings_leave_room_for_the_text() -> None:
    headings = "".join(f"{'#' * level} {'very long heading ' * 20}\n{SENTENCE}\n" for level in range(1, 7))
    found = split("A title " * 25, headings)
    assert all(len(chunk.path) <= PATH_CHARACTERS for chunk in found)
    assert all(chunk.path.startswith("A title") and "very long" in chunk.path for chunk in found)


@pytest.mark.parametrize(
    ("content", "heading"),
    [
        ("text\n# *One*\n# Two", "One"),
        ("#\n\n## Two", "Two"),
        ("text", None),
        ("> # quoted", None),
        ("", None),
    ],
)
def test_the_first_heading_is_the_document_s_own_title(content: str, heading: str | None) -> None:
    assert chunks.first_heading(content) == heading


LINES = st.sampled_from(
    [
        "# One", "## Two", "###### Six", "Setext", "===", "---", "...", "", "   ", "```", "~~~",
        "    code", "- item", "  - nested", "1. first", "> quoted", "> > deeper", "| a | b |", "|---|---|",
        "<div>", "<!--", "[a]: http://x.example", "[a]: <", "\\", "text", SENTENCE * 30, "word" * 400,
        "👨‍👩‍👧‍👦" * 200, "用户身份" * 300,
    ]
)  # fmt: skip
MARKDOWN = st.lists(st.tuples(LINES, st.sampled_from(["\n", "\r\n", "\r", "\n\n"])), max_size=60).map(
    lambda lines: "".join(line + end for line, end in lines)
)


@given(MARKDOWN | st.text(max_size=3000))
def test_every_character_is_in_a_chunk_and_bounds_hold(content: str) -> None:
    found = split("Guide", content)
    assert "".join(source(found).split()) == "".join(content.split())
    assert all(chunk.text.strip() for chunk in found)
    assert all(len(chunk.content) <= CHUNK_CHARACTERS for chunk in found)
    assert all(chunk.path == "Guide" or chunk.path.startswith("Guide › ") for chunk in found)
    assert found == split("Guide", content)


@given(MARKDOWN)
def test_stretches_in_order_are_the_source(content: str) -> None:
    assert source(split("Guide", content)) == (content if content.strip() else "")
