"""Documents that must not fall behind the code."""

import re
from pathlib import Path

import typer

from connector import cli
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


def test_commands_in_documents_exist_with_their_options() -> None:
    root = typer.main.get_command(cli.app)
    lines = [
        line.split("#")[0].split()
        for document in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
        for block in re.findall(r"^```sh\n(.*?)^```", document.read_text(), re.MULTILINE | re.DOTALL)
        for line in block.splitlines()
        if line.startswith("vademecum ")
    ]
    assert len(lines) > 10
    for line in lines:
        command, options = root, set[str]()
        for word in line[1:]:
            commands = getattr(command, "commands", {})
            if word in commands:
                command = commands[word]
            options = {name for parameter in command.params for name in parameter.opts}
            if word.startswith("-") and word != "-":
                assert word in options, f"{' '.join(line)}: {word}"
        assert command is not root, " ".join(line)
