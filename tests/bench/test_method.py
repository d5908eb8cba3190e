"""An id of a method stands for the code that decides what a latency is."""

import ast
import hashlib
import io
import tokenize
from pathlib import Path

import pytest

import dlbricks_tui
from dlbricks_tui.bench.method import DECIDING, Method

_PACKAGE = Path(dlbricks_tui.__file__).parent
_DIGITS = 8
_NO_CODE = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENCODING)


def code_of(source: str) -> str:
    """A module without its comments, docstrings and line breaks."""
    docstrings = {
        (it.lineno, it.col_offset)
        for it in ast.walk(ast.parse(source))
        if isinstance(it, ast.Expr) and isinstance(it.value, ast.Constant) and isinstance(it.value.value, str)
    }
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    kept = [it.string for it in tokens if it.type not in _NO_CODE and it.start not in docstrings]
    return " ".join("".join(it.split()) for it in kept)


def digest_of(method: Method) -> str:
    code = "\n".join(code_of((_PACKAGE / name).read_text()) for name in DECIDING[method])
    return hashlib.sha256(code.encode()).hexdigest()[:_DIGITS]


@pytest.mark.parametrize("method", Method)
def test_an_id_changes_with_the_code_that_decides_what_a_latency_is(method: Method) -> None:
    due = f"{method.value}-{digest_of(method)}"
    assert method.id == due, f"the code of `{method.value}` has changed: set its digest in bench/method.py"


def test_words_and_layout_do_not_change_an_id() -> None:
    plain = "def f(x):\n    return x + 1\n"
    worded = '"""About."""\n\n\ndef f(x):  # why\n    """Return more."""\n    return x + 1\n'
    assert code_of(worded) == code_of(plain)
    assert code_of(plain.replace("1", "2")) != code_of(plain)
