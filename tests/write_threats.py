"""Writes docs/threats.md anew from the tests' marks; run as `python -m tests.write_threats`.

The reasons of rows without a test are kept.
"""

import re

from tests.test_threats import TABLE, marked_tests


def main() -> None:
    text = TABLE.read_text()
    tests = marked_tests()

    def row(match: re.Match[str]) -> str:
        threat, said = match.groups()
        named = ", ".join(f"`{test}`" for test in tests.get(threat, ()))
        return f"| {threat} | {named or said} |"

    TABLE.write_text(re.sub(r"^\| ([A-Z]{2}-\d\d) \| (.*) \|$", row, text, flags=re.MULTILINE))


if __name__ == "__main__":
    main()
