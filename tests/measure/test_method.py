"""The code that decides latencies cannot change without a decision about the ids of the methods."""

import ast
import hashlib
from pathlib import Path

import pytest

import dlbricks_tui
from dlbricks_tui.measure.method import Method

_PACKAGE = Path(dlbricks_tui.__file__).parent
_DIGITS = 8

# The worker, the programs that are written for it, and the statistics of samples.
_COMMON = (
    "measure/stopping.py",
    "models/networks.py",
    "bricks/programs.py",
    "runtime/inside/measuring.py",
    "runtime/inside/mxnet_backend.py",
    "runtime/inside/onnx_backend.py",
    "runtime/inside/openvino_backend.py",
    "runtime/inside/openvino_models.py",
    "runtime/inside/ort_backend.py",
    "runtime/inside/ort_session.py",
    "runtime/inside/values.py",
    "runtime/runtime.py",
    "runtime/traits.py",
    "store/statistics.py",
)
DECIDING = {
    Method.INSIDE: (
        *_COMMON,
        "measure/inside.py",
        "measure/carriers.py",
        "measure/jobs.py",
        "bricks/carriers.py",
    ),
    Method.ALONE: (
        *_COMMON,
        "measure/alone.py",
        "measure/rounds.py",
        "measure/jobs.py",
        "bricks/contexts.py",
        "bricks/layouts.py",
        "bricks/contexts.py",
        "runtime/inside/backend.py",
    ),
}
# The digests of the code for which the ids in measure/method.py were last confirmed.
CONFIRMED = {Method.INSIDE: "cc4967e4", Method.ALONE: "d64729b3"}


def code_of(source: str) -> str:
    """A module without its comments, docstrings, imports and line breaks, alike on every Python."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(body := getattr(node, "body", None), list):
            body[:] = [it for it in body if not _says_nothing(it)]
    return _spelled(tree)


def _says_nothing(statement: ast.stmt) -> bool:
    is_text = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
    return is_text or isinstance(statement, ast.Import | ast.ImportFrom)


def _spelled(node: object) -> str:
    """Spell a node by its filled fields: `ast.unparse` and `ast.dump` write the same code differently by version."""
    if isinstance(node, list):
        return f"[{' '.join(map(_spelled, node))}]"
    if isinstance(node, ast.JoinedStr):
        # Python 3.12 ends some formats with an empty text.
        texts = [it for it in node.values if not (isinstance(it, ast.Constant) and it.value == "")]
        return f"(JoinedStr {_spelled(texts)})"
    if isinstance(node, ast.AST):
        filled = [(name, value) for name, value in ast.iter_fields(node) if value not in (None, [])]
        # A constant None is a value and no empty field.
        fields = filled or ([("value", None)] if isinstance(node, ast.Constant) else [])
        return f"({' '.join([type(node).__name__, *(f'{name}={_spelled(value)}' for name, value in fields)])})"
    return repr(node)


def digest_of(method: Method) -> str:
    code = "\n".join(code_of((_PACKAGE / name).read_text()) for name in DECIDING[method])
    return hashlib.sha256(code.encode()).hexdigest()[:_DIGITS]


@pytest.mark.parametrize("method", Method)
def test_a_change_of_code_that_affects_latencies_needs_a_new_id_or_a_confirmation(method: Method) -> None:
    digest = digest_of(method)
    assert digest == CONFIRMED[method], (
        f"the code of `{method.value}` has changed: if it gives other latencies, change its id in measure/method.py; "
        f"then write {digest!r} into CONFIRMED"
    )


def test_docstrings_imports_and_layout_do_not_change_a_digest() -> None:
    plain = "def f(x):\n    return x + 1\n"
    worded = '"""About."""\n\nimport os\n\ndef f(x):  # why\n    """Return more."""\n    return x + 1\n'
    assert code_of(worded) == code_of(plain)
    assert code_of(plain.replace("1", "2")) != code_of(plain)
