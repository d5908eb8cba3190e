from hypothesis import given
from hypothesis import strategies as st

from dlbricks_tui.bricks.regions import Repetition, repeated_runs


def runs_of(text: str) -> list[Repetition]:
    """The runs in a text whose capital letters are opening."""
    return repeated_runs([ord(letter) for letter in text], [letter.isupper() for letter in text])


@given(st.text("abC", max_size=40))
def test_runs_are_disjoint_and_hold_equal_neighbours(text: str) -> None:
    done = 0
    for start, period, times in runs_of(text):
        assert start >= done
        assert times >= 2
        done = start + period * times
        assert text[start:done] == text[start : start + period] * times


@given(
    st.text("abc", min_size=1, max_size=6).flatmap(lambda piece: st.tuples(st.just(piece), st.integers(2, 5))),
    st.text("de", max_size=1),
)
def test_repeated_pieces_are_covered_by_a_run(planted: tuple[str, int], after: str) -> None:
    piece, times = planted
    (run,) = runs_of(piece * times + after)
    # The piece may itself be a repeat of something shorter.
    assert run.start == 0
    assert run.period * run.times == len(piece) * times
    assert len(piece) % run.period == 0


def test_a_list_without_equal_neighbours_has_no_runs() -> None:
    assert runs_of("abcabdac") == []
    assert runs_of("") == []


def test_the_longest_run_wins_and_others_get_the_rest() -> None:
    assert runs_of("aabaabaab") == [Repetition(0, 3, 3)]
    assert runs_of("cpcppcppcp") == [Repetition(1, 3, 3)]
    assert runs_of("ababababbcbcbcbcbc") == [Repetition(0, 2, 4), Repetition(8, 2, 5)]
    assert runs_of("aBaBaBcBcBcBcB") == [Repetition(1, 2, 2), Repetition(5, 2, 4)]
    assert runs_of("bcbcbcbcbabab") == [Repetition(1, 2, 4), Repetition(9, 2, 2)]


def test_a_run_ends_where_the_equal_stretch_ends() -> None:
    # abc-bc-bc and not ab-cb-cb: what follows the last piece does not fit.
    assert runs_of("xbcbcbcd") == [Repetition(1, 2, 3)]
    assert runs_of("cbcbcbcd") == [Repetition(1, 2, 3)]


def test_a_run_starts_at_an_opening_if_possible() -> None:
    assert runs_of("EbCbrDbCbrDbCbr") == [Repetition(5, 5, 2)]
    assert runs_of("bCbCbCb") == [Repetition(1, 2, 3)]
    assert runs_of("CbbCbbCb") == [Repetition(0, 3, 2)]


def test_equal_pieces_longer_than_a_module_are_ignored() -> None:
    piece = list(range(65))
    assert repeated_runs(piece * 2, [False] * 130) == []
    assert repeated_runs(piece[1:] * 2, [False] * 128) == [Repetition(0, 64, 2)]
