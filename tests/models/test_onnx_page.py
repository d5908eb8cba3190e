"""The page of operators lists those that both formats share."""

import re
from pathlib import Path

from onnx import defs

from dlbricks_tui.models.kinds import Kind, kind_of
from dlbricks_tui.models.neutral import SHARED_OPS
from dlbricks_tui.models.onnx.neutral import ONNX_PREFIX, ONNX_TRANSLATIONS

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "operators.md"
ROW = re.compile(r"^\| `(\w+)` \| `(\w+)`", re.MULTILINE)


def test_every_operator_mapped_to_a_shared_one_is_an_onnx_operator_with_a_kind() -> None:
    for op in ONNX_TRANSLATIONS:
        assert defs.has(op), op
        assert kind_of(f"{ONNX_PREFIX}{op}") is not Kind.OTHER


def test_the_page_lists_each_operator_mapped_to_a_shared_one() -> None:
    section = PAGE.read_text(encoding="utf-8").split("## Operators that MXNet has too\n")[1].split("\n## ")[0]
    rows = ROW.findall(section)
    assert sorted(op for op, _ in rows) == sorted(ONNX_TRANSLATIONS)
    assert {shared for _, shared in rows} <= SHARED_OPS.keys()
