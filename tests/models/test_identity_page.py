"""docs/reference/operators.md agrees with the code."""

import re
from pathlib import Path

import pytest

from dlbricks_tui.models.graph import ParamValue, TensorType
from dlbricks_tui.models.kinds import Kind
from dlbricks_tui.models.mxnet.neutral import IGNORED, IGNORED_OF_OP, neutral_operator
from dlbricks_tui.models.neutral import SHARED_OPS, Site

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "operators.md"
TEXT = PAGE.read_text(encoding="utf-8")
PARAMETER = re.compile(r"`(\w+)`(?: \(([^)]*)\))?")


def rows(heading: str) -> list[list[str]]:
    """Return the rows of the table under a heading."""
    section = TEXT.split(f"## {heading}\n")[1].split("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


OPERATORS = rows("Neutral operators")


def parameters_of(cell: str) -> dict[str, str]:
    """Return the parameters of a row with their defaults as written."""
    return dict(PARAMETER.findall(cell))


def written(default: ParamValue) -> str:
    return "" if default is None else str(default)


def test_the_page_lists_the_shared_operators() -> None:
    assert [row[0].strip("`") for row in OPERATORS] == list(SHARED_OPS)


@pytest.mark.parametrize("row", OPERATORS, ids=lambda row: str(row[0]))
def test_a_shared_operator_has_the_parameters_of_the_page(row: list[str]) -> None:
    expected = {name: written(default) for name, default in SHARED_OPS[row[0].strip("`")].items()}
    assert parameters_of(row[2]) == expected


@pytest.mark.parametrize("row", OPERATORS, ids=lambda row: str(row[0]))
def test_mxnet_spells_a_shared_operator_as_the_page_says(row: list[str]) -> None:
    op, *attributes = re.findall(r"`([^`]*)`", row[1])
    site = Site((TensorType((1, 8)),), (TensorType((1, 8)),))
    found = neutral_operator(op, dict(text.split("=") for text in attributes), site)
    assert found.op == row[0].strip("`")
    assert {name for name, _ in found.params} <= SHARED_OPS[found.op].keys()


def test_the_page_lists_the_parameters_that_do_not_count() -> None:
    section = TEXT.split("### Parameters that do not count")[1].split("\n## ")[0]
    assert set(re.findall(r"`(\w+)`", section)) == IGNORED.union(IGNORED_OF_OP, *IGNORED_OF_OP.values())


def test_the_page_lists_the_kinds() -> None:
    assert [row[0].strip("`") for row in rows("Kinds")] == [kind.value for kind in Kind]
