from dlbricks_tui.documents.estimates import NOTHING_TO_SCORE, score_parts
from dlbricks_tui.documents.layout import TEXT, laid_out
from dlbricks_tui.estimate.prediction.score import PredictionBasis, Score

GOOD = Score("resnet50_v1", PredictionBasis.HISTORY, 31.0, 27.0, 36.0, 0.4, 30.0, 0.0)
BAD = Score("mobilenet0.25", PredictionBasis.LEFT_OUT, 2.0, 1.5, 2.6, 1.0, 2.9, 0.02)


def texts(*found: Score) -> list[str]:
    return ["".join(span.text for span in line) for line in laid_out(score_parts(found), 120, TEXT)]


def test_the_worst_model_comes_first_below_the_summary() -> None:
    summary, history, left_out, refused, _, heading, worst, best = texts(GOOD, BAD)
    assert summary == "2 models: median error 17.2 %, 1 within 20 %; the 95 % interval was right 1 of 2 times"
    assert history == "1 predicted from earlier results"
    assert left_out == "1 predicted from the results of other models, as there are no earlier ones"
    assert refused.startswith("1 without some layers")
    assert heading.split()[-5:] == ["TO", "MEASURED", "ERROR", "IN", "INTERVAL"]
    assert worst.split() == ["mobilenet0.25", "2.000", "1.500", "2.600", "2.900", "-31.0", "%", "no"]
    assert best.split()[-1] == "yes"


def test_nothing_to_score_says_what_to_do() -> None:
    assert texts() == [NOTHING_TO_SCORE]
