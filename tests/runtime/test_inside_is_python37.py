"""Code for the other interpreter runs on Python 3.7 without our dependencies."""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "dlbricks_tui"
INSIDE = sorted((PACKAGE / "runtime" / "inside").glob("*.py"))
# The worker does not run the `__init__` of the package itself.
SHARED = [PACKAGE / "runtime" / f"{it}.py" for it in ("__init__", "protocol", "lines")]
OURS_THERE = ("dlbricks_tui.runtime.inside", "dlbricks_tui.runtime.protocol", "dlbricks_tui.runtime.lines")
INSTALLED_THERE = {"numpy", "mxnet", "onnxruntime"}


def imported(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@pytest.mark.parametrize("path", [*SHARED, *INSIDE], ids=lambda path: path.stem)
def test_the_worker_has_the_syntax_of_python_37(path: Path) -> None:
    tree = ast.parse(path.read_text(), feature_version=(3, 7))
    annotated = any(isinstance(node, (ast.arg, ast.AnnAssign)) and node.annotation for node in ast.walk(tree))
    # Python 3.7 must not evaluate annotations in today's syntax.
    assert not annotated or "from __future__ import annotations" in path.read_text()


@pytest.mark.parametrize("path", [*SHARED, *INSIDE], ids=lambda path: path.stem)
def test_the_worker_imports_only_available_modules(path: Path) -> None:
    for name in imported(ast.parse(path.read_text())):
        root = name.partition(".")[0]
        assert name.startswith(OURS_THERE) or root in sys.stdlib_module_names | INSTALLED_THERE
