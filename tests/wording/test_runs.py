from typing import Any

from dlbricks_tui.wording.runs import NONE_DONE, Done, how_far


def test_the_progress_leaves_out_what_is_zero_or_unknown() -> None:
    def words(*counts: Any) -> list[str]:
        return [phrase.text for phrase in how_far(*counts)]

    assert words(NONE_DONE, NONE_DONE) == []
    assert words(Done(8, 42), NONE_DONE) == ["8 of 42 bricks"]
    assert words(Done(8, 42), Done(0, 1)) == ["8 of 42 bricks", "0 of 1 model"]
    told = ["8 of 42 bricks", "1 failed", "2 stopped at a limit", "2 min left"]
    assert words(Done(8, 42), NONE_DONE, 1, 100.0, 2) == told
