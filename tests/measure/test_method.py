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
    "bricks/programs.py",
    "models/sheets.py",
    "runtime/inside/measuring.py",
    "runtime/inside/mxnet_backend.py",
    "runtime/inside/onnx_backend.py",
    "runtime/inside/onnx_bytes.py",
    "runtime/inside/onnx_values.py",
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
        "runtime/inside/mxnet_profiler.py",
        "runtime/inside/openvino_graph.py",
        "runtime/inside/openvino_profiler.py",
        "runtime/inside/ort_profiler.py",
    ),
    Method.ALONE: (
        *_COMMON,
        "measure/alone.py",
        "measure/rounds.py",
        "measure/jobs.py",
        "bricks/contexts.py",
        "bricks/layouts.py",
        "bricks/feeding.py",
        "runtime/inside/backend.py",
    ),
}
# The digests of the code for which the ids in measure/method.py were last confirmed.
CONFIRMED = {Method.INSIDE: "c60848e9", Method.ALONE: "c3149162"}


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
