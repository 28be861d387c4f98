"""The house has rooms, and lines stay in theirs: import direction, module names and sizes."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGES = ("connector", "oauth", "store")
MAY_IMPORT = {"connector": {"connector", "oauth", "store"}, "oauth": {"oauth"}, "store": {"store"}}
MODULES = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
VAGUE_NAMES = {"utils.py", "helpers.py", "common.py", "base.py", "misc.py", "manager.py", "service.py"}
MAX_MODULE_LINES = 400
MAX_FUNCTION_LINES = 50


def _imported(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            assert node.module is not None
            yield node.module


def _name(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", MODULES, ids=_name)
def test_a_package_imports_only_the_packages_below_it(path: Path) -> None:
    package = path.relative_to(ROOT).parts[0]
    roots = {module.split(".")[0] for module in _imported(ast.parse(path.read_text()))}
    assert roots & set(PACKAGES) <= MAY_IMPORT[package]


@pytest.mark.parametrize("path", MODULES, ids=_name)
def test_modules_and_functions_stay_small_and_named_for_their_concern(path: Path) -> None:
    text = path.read_text()
    assert path.name not in VAGUE_NAMES
    assert text.count("\n") <= MAX_MODULE_LINES
    long = [
        node.name
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (node.end_lineno or 0) - node.lineno + 1 > MAX_FUNCTION_LINES
    ]
    assert long == []


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_says_what_it_owns_and_nothing_else_at_its_top(package: str) -> None:
    tree = ast.parse((ROOT / package / "__init__.py").read_text())
    assert [type(node) for node in tree.body] == [ast.Expr]
    assert ast.get_docstring(tree)
