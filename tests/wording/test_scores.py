from dlbricks_tui.estimate.prediction.score import Basis, Score
from dlbricks_tui.wording.scores import NOTHING_TO_SCORE, score_lines

GOOD = Score("resnet50_v1", Basis.HISTORY, 31.0, 27.0, 36.0, 0.4, 30.0, 0.0)
BAD = Score("mobilenet0.25", Basis.LEFT_OUT, 2.0, 1.5, 2.6, 1.0, 2.9, 0.02)


def test_the_worst_model_comes_first_below_the_summary() -> None:
    summary, history, left_out, refused, _, heading, worst, best = score_lines([GOOD, BAD], 120)
    assert summary == "2 models: median error 17.2 %, 1 within 20 %; the 95 % interval held 1 of 2 times"
    assert history == "1 predicted from earlier results"
    assert left_out == "1 predicted from the results of other models, as there are no earlier ones"
    assert refused.startswith("1 without some layers")
    assert heading.split()[-6:] == ["predicted", "from", "to", "measured", "error", "held"]
    assert worst.split() == ["mobilenet0.25", "2.000", "1.500", "2.600", "2.900", "-31.0", "%", "no"]
    assert best.split()[-1] == "yes"


def test_a_long_name_is_cut_to_the_width() -> None:
    long = GOOD.__class__("x" * 200, Basis.HISTORY, 31.0, 27.0, 36.0, 0.4, 30.0, 0.0)
    assert all(len(line) <= 80 for line in score_lines([long], 80)[-2:])


def test_control_codes_in_names_are_spelled_out() -> None:
    name = "a\x1b[31mb"
    (*_, line) = score_lines([GOOD.__class__(name, Basis.HISTORY, 31.0, 27.0, 36.0, 0.4, 30.0, 0.0)], 120)
    assert "\x1b" not in line


def test_nothing_to_score_says_what_to_do() -> None:
    assert score_lines([], 80) == [NOTHING_TO_SCORE]
