"""Writes the table of `docs/tools.md` from the catalogue: `python -m tests.write_tools`."""

from pathlib import Path

from connector.tools.catalogue import TOOLS

PAGE = Path(__file__).parents[1] / "docs" / "tools.md"
BEGIN, END = "<!-- table -->\n", "<!-- end of table -->\n"


def table() -> str:
    """A row for each tool, in the catalogue's order."""
    rows = ["| tool | permission | listed | what it does |", "|---|---|---|---|"]
    for tool in TOOLS.values():
        listed = {"default": "always", "openai": "to OpenAI's clients", "full": "on the full surface"}
        rows.append(f"| `{tool.name}` | `{tool.scope}` | {listed[tool.listed]} | {tool.description} |")
    return "\n".join(rows) + "\n"


def written() -> str:
    """The page with the table as it must be."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    return before + BEGIN + table() + END + after


if __name__ == "__main__":
    PAGE.write_text(written(), encoding="utf-8")
