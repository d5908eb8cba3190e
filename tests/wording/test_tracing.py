import pytest

from dlbricks_tui.jobs.events import Event, Waiting
from dlbricks_tui.traces.trace import LevelDone, LevelStarted, RoundStarted, TraceLevel
from dlbricks_tui.wording.jobs import signed_ms, trace_line, trace_question

LAYER = TraceLevel.LAYER


@pytest.mark.parametrize(
    ("message", "line"),
    [
        (Waiting(holder="run x"), "waiting for run x"),
        (RoundStarted(number=1, rounds=2), "round 1 of 2"),
        (RoundStarted(number=1, rounds=1), ""),
        (LevelStarted(level=LAYER), ""),
        (LevelDone(level=LAYER, inference_ms=3.6, overhead_ms=0.2), "layer level: 3.600 ms per inference, +0.2000 ms"),
        (LevelDone(level=LAYER, inference_ms=3.6, overhead_ms=None), "layer level: 3.600 ms per inference"),
        (LevelDone(level=LAYER, inference_ms=None, overhead_ms=None, missing="why"), "layer level: not traced: why"),
    ],
)
def test_a_message_of_a_trace_is_a_line(message: Event, line: str) -> None:
    assert trace_line(message) == line


def test_a_trace_has_a_question_and_differences_have_signs() -> None:
    assert trace_question("net\n") == "Where does the time of net\\n go, layer by layer?"
    assert [signed_ms(it) for it in (-0.2, 0.0, 0.2)] == ["-0.2000 ms", "+0 ms", "+0.2000 ms"]
