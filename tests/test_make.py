"""The ends of long runs of tests: the table of make matrix, and the summary of make soak."""

from typing import Literal

import pytest

from tests import matrix
from tests.soak import TOLD, summary


@pytest.mark.parametrize(
    ("log", "status", "ended"),
    [
        ("..F\n= 1 failed, 9 passed in 3.0s =\nmake: *** [test] Error 1\n", 2, "1 failed, 9 passed in 3.0s"),
        ("..\n9 passed, 4 skipped in 1067.77s (0:17:47)\n", 0, "9 passed, 4 skipped in 1067.77s (0:17:47)"),
        ("Found 8 errors in 3 files\nmake: *** [check] Error 1\n", 2, "exit code 2: make: *** [check] Error 1"),
        ("", 2, "exit code 2: no output"),
    ],
)
def test_the_end_of_a_log_is_told(log: str, status: int, ended: str) -> None:
    assert matrix.outcome(log, status) == ended


def test_a_named_python_that_is_missing_makes_the_matrix_red(capsys: pytest.CaptureFixture[str]) -> None:
    assert matrix.main(["3.1"]) == 1
    assert "3.1     not installed" in capsys.readouterr().out


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
