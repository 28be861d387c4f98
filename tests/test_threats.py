"""docs/threats.md and the tests speak of the same attacks."""

import ast
import re
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parent.parent
TABLE = ROOT / "docs" / "threats.md"


def marked_tests() -> dict[str, list[str]]:
    """Each id with the tests that carry it, as `path::name`."""
    found = defaultdict(list)
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        if "node_modules" in path.parts:
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                for threat in _marks(node):
                    found[threat].append(f"{path.relative_to(ROOT / 'tests')}::{node.name}")
    return dict(found)


def _marks(node: ast.FunctionDef | ast.AsyncFunctionDef) -> list[str]:
    """The ids in `@pytest.mark.threat(…)` decorators."""
    return [
        argument.value
        for decorator in node.decorator_list
        if isinstance(decorator, ast.Call) and ast.unparse(decorator.func) == "pytest.mark.threat"
        for argument in decorator.args
        if isinstance(argument, ast.Constant) and isinstance(argument.value, str)
    ]


def test_the_table_names_every_attack_with_its_tests_or_the_reason_for_none() -> None:
    rows = dict(re.findall(r"^\| ([A-Z]{2}-\d\d) \| (.+) \|$", TABLE.read_text(), re.MULTILINE))
    tests = marked_tests()
    assert len(rows) == 168
    for threat, said in rows.items():
        if threat in tests:
            assert set(re.findall(r"`([^`]+)`", said)) == set(tests[threat]), threat
        else:
            assert said.startswith("none: ") and len(said) > len("none: because")
    assert set(tests) <= set(rows)
