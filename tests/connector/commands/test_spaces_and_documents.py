"""Spaces and documents from the command line."""

from pathlib import Path

from connector.app import Vademecum
from store import documents
from store.memory import View
from tests.connector.commands.conftest import Run


def test_spaces_are_listed_added_renamed_and_deleted(owned: Vademecum, run: Run) -> None:
    work = run.json("spaces", "add", " work ")
    assert work["name"] == "work"
    run("save", "the printer is on the third floor", "--space", "work")
    assert [(row["name"], row["memories"]) for row in run.json("spaces", "list")] == [
        ("default", 0),
        ("work", 1),
    ]
    assert run.json("spaces", "rename", "work", "office") == work | {"name": "office"}
    code, _, err = run("spaces", "delete", "office")
    assert code == 1 and "holds 1 memories" in err
    assert run("spaces", "delete", "office", "--confirm", "office")[0] == 0
    assert [row["name"] for row in run.json("spaces", "list")] == ["default"]
    for wrong in (["add", "default"], ["add", "\u200b"], ["add", "a\nb"], ["rename", "nowhere", "x"]):
        code, _, err = run("spaces", *wrong)
        assert code == 1 and err.startswith("vademecum: ") and err.count("\n") == 1


def test_a_folder_is_ingested_and_what_did_not_change_is_skipped(
    owned: Vademecum, run: Run, tmp_path: Path
) -> None:
    folder = tmp_path / "notes"
    (folder / "garden").mkdir(parents=True)
    (folder / ".hidden").mkdir()
    (folder / "garden" / "roses.md").write_text("# Roses\n\nRoses are cut in March.\n")
    (folder / "plain.txt").write_text("the boiler is serviced in October")
    (folder / ".hidden" / "secret.md").write_text("# Hidden\n\nnobody asked for this\n")
    (folder / "photo.png").write_bytes(b"\x89PNG")
    assert run.json("ingest", str(folder)) == {"created": 2, "updated": 0, "unchanged": 0, "failed": {}}
    assert run.json("ingest", str(folder)) == {"created": 0, "updated": 0, "unchanged": 2, "failed": {}}
    (folder / "garden" / "roses.md").write_text("# Roses\n\nRoses are cut in April.\n")
    changed = run.json("ingest", str(folder / "garden" / "roses.md"))
    assert changed == {"created": 0, "updated": 1, "unchanged": 0, "failed": {}}
    (match, *_) = run.json("search", "when are roses cut")["matches"]
    assert "April" in match["summary"] and match["metadata"]["source"]["origin"] == "import"
    assert run.json("search", "nobody asked")["matches"] == []


def test_a_file_that_cannot_be_stored_is_named_and_the_others_go_on(
    owned: Vademecum, run: Run, tmp_path: Path
) -> None:
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "a.md").write_bytes(b"\xff\xfe\xfa")
    (folder / "b.md").write_text("fine")
    code, out, err = run("ingest", str(folder))
    assert code == 1 and "1 created" in out and "a.md: not UTF-8" in err
    for nothing in (str(folder / "none"), str(folder / "a.md" / "x")):
        assert run("ingest", nothing)[0] == 1


def test_a_document_of_5_megabytes_is_stored_whole_and_a_larger_one_refused(
    owned: Vademecum, run: Run, tmp_path: Path
) -> None:
    line = "Paragraph {:06}: the quick brown fox jumps over the lazy dog again and again.\n\n"
    text = "".join(line.format(number) for number in range(5 * 1024 * 1024 // len(line.format(0)) - 100))
    file = tmp_path / "large.md"
    file.write_text(text)
    assert run.json("ingest", str(file))["created"] == 1
    owner = owned.owners.list()[0].id
    space = owned.engine.spaces(owner)[0].id
    document = owned.engine.memories.find_document(owner, space, "cli", f"id:{file}")
    assert document is not None
    found, memories = documents.get(owned.engine, View(owner, (space,)), document.id)
    assert documents.text(found, memories) == text
    file.write_text(text + "x" * 500_000)
    assert run("ingest", str(file))[0] == 1
