import sys

import pytest

from tests import matrix


def test_this_python_is_found_and_one_that_no_one_has_is_not() -> None:
    assert matrix.interpreter("{}.{}".format(*sys.version_info)) is not None
    assert matrix.interpreter("3.1") is None


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
