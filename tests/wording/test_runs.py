from typing import Any

from dlbricks_tui.wording.runs import how_far


def test_the_progress_leaves_out_what_is_zero_or_unknown() -> None:
    def words(*counts: Any) -> list[str]:
        return [phrase.text for phrase in how_far(*counts)]

    assert words(0, 0) == []
    assert words(8, 42) == ["8 of 42 done"]
    assert words(8, 42, 1, 100.0, 2) == ["8 of 42 done", "1 failed", "2 stopped at a limit", "2 min left"]
