from typing import Any

from dlbricks_tui.host.load import HostLoad
from dlbricks_tui.host.queue import Place
from dlbricks_tui.wording.runs import NONE_DONE, Done, host_in_words, how_far, line_of_work, load_in_words


def test_the_progress_leaves_out_what_is_zero_or_unknown() -> None:
    def words(*counts: Any) -> list[str]:
        return [phrase.text for phrase in how_far(*counts)]

    assert words(NONE_DONE, NONE_DONE) == []
    assert words(Done(8, 42), NONE_DONE) == ["8 of 42 bricks"]
    assert words(Done(8, 42), Done(0, 1)) == ["8 of 42 bricks", "0 of 1 model"]
    told = ["8 of 42 bricks", "1 failed", "2 noisy", "2 min left"]
    assert words(Done(8, 42), NONE_DONE, 1, 100.0, 2) == told


def test_the_work_on_a_host_is_one_line() -> None:
    running = Place(1, title="squeezenet1.1", measures=True, share=0.41, seconds_left=120.0)
    waiting = [Place(2, title="alexnet"), Place(3, title="vgg16")]
    assert line_of_work([running, *waiting]) == "squeezenet1.1 41 %, 2 min; then alexnet, vgg16"
    assert line_of_work(waiting) == "waiting: alexnet, vgg16"
    assert line_of_work([Place(1, title="alexnet", measures=True)]) == "alexnet"


def test_the_load_of_a_host_counts_busy_cores_and_what_other_guests_take() -> None:
    assert load_in_words(HostLoad((0.9, 1.0), (0.0, 0.0))) == "1.9 of 2 cores busy"
    assert host_in_words(HostLoad((0.1, 0.05), (0.0, 0.0))) == "host quiet"
    assert host_in_words(HostLoad((0.4, 0.05), (0.0, 0.0))) == "host busy: 1 of 2 cores"
    assert host_in_words(HostLoad((0.0,), (0.3,))) == "other guests take host time"
    assert load_in_words(HostLoad((1.0,), (0.01,))) == "1.0 of 1 core busy, 1 % taken by other guests"
