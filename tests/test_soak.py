"""The summary of the long tests."""

from typing import Literal

import pytest

from tests.soak import TOLD, summary

_Phase = Literal["setup", "call", "teardown"]


def _report(
    name: str, when: _Phase, *, failed: bool = False, seconds: float = 0.0, told: str = ""
) -> pytest.TestReport:
    properties = [(TOLD, told), ("other", "nothing")] if told else []
    outcome: Literal["passed", "failed"] = "failed" if failed else "passed"
    return pytest.TestReport(
        name, (name, 1, name), {}, outcome, None, when, duration=seconds, user_properties=properties
    )


def test_the_summary_has_a_row_for_each_area_and_what_tests_told() -> None:
    reports = [
        _report("tests/store/test_crashes.py::test_a", "setup", seconds=30),
        _report("tests/store/test_crashes.py::test_a", "call", seconds=60, told="100 kills, none lost"),
        _report("tests/store/test_crashes.py::test_a", "teardown", told="100 kills, none lost"),
        _report("tests/runs/test_run.py::test_b[x::y]", "call", failed=True, seconds=12),
        _report("tests/runs/test_run.py::test_c", "setup", failed=True),
    ]
    assert [line.split() for line in summary(reports)] == [
        ["area", "tests", "failed", "minutes"],
        ["tests/runs", "1", "2", "0.2"],
        ["tests/store", "1", "0", "1.5"],
        ["100", "kills,", "none", "lost"],
    ]
