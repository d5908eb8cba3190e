"""An id of a method stands for the code that decides what a latency is."""

import ast
import hashlib
from pathlib import Path

import pytest

import dlbricks_tui
from dlbricks_tui.measure.method import DECIDING, Method

_PACKAGE = Path(dlbricks_tui.__file__).parent
_DIGITS = 8


def code_of(source: str) -> str:
    """A module without its comments, docstrings, imports and line breaks."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(body := getattr(node, "body", None), list):
            body[:] = [it for it in body if not _says_nothing(it)]
    return ast.unparse(tree)


def _says_nothing(statement: ast.stmt) -> bool:
    is_text = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
    return is_text or isinstance(statement, ast.Import | ast.ImportFrom)


def digest_of(method: Method) -> str:
    code = "\n".join(code_of((_PACKAGE / name).read_text()) for name in DECIDING[method])
    return hashlib.sha256(code.encode()).hexdigest()[:_DIGITS]


@pytest.mark.parametrize("method", Method)
def test_an_id_changes_with_the_code_that_decides_what_a_latency_is(method: Method) -> None:
    due = f"{method.value}-{digest_of(method)}"
    assert method.id == due, f"the code of `{method.value}` has changed: set its digest in measure/method.py"


def test_words_imports_and_layout_do_not_change_an_id() -> None:
    plain = "def f(x):\n    return x + 1\n"
    worded = '"""About."""\n\nimport os\n\ndef f(x):  # why\n    """Return more."""\n    return x + 1\n'
    assert code_of(worded) == code_of(plain)
    assert code_of(plain.replace("1", "2")) != code_of(plain)
