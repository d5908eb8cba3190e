from dlbricks_tui.report.comparing.changes import compare
from dlbricks_tui.report.comparing.regressions import labels_of, regressions_section
from tests.report.comparing.exports import TWO, group, layer, model, side


def test_limits_of_a_comparison_are_named() -> None:
    shared = layer(0, 0.0)
    first = group("a", shared, model("gone", 1.0), layer(1, 0.0, protocol="cold"))
    section = regressions_section([compare(first, group("b", shared, layer(2, 1.0)))])
    assert section.answer == "From A to B, nothing can be compared."
    assert section.missing == (
        "Of A and not compared with B: 1 model (gone) and 2 bricks: a latency of zero (1); "
        "no corresponding execution there (1); no result there (1).",
        "Of B and not compared with A: 2 bricks: a latency of zero (1); no result there (1).",
        "Results of methods that only one of A and B has are not compared: cold.",
        "A and B share 1 result.",
        "A or B has results of one run only, so the intervals leave out how much processes differ, often some percent. "
        "Measure twice before you trust a small change.",
    )


def test_circumstances_that_are_compared_are_named() -> None:
    first, second = group("a", layer(0, 0.0)), group("b", layer(0, 0.0, runtime=TWO))
    section = regressions_section([compare(first, second)])
    assert "Different, and compared all the same: threads (1 thread in A, 2 threads in B)." in section.missing


def test_labels_tell_executions_apart() -> None:
    found = side("a", model("m", 1.0), model("m", 1.0, runtime=TWO)).results
    assert labels_of([(it.name, it.execution) for it in found]) == ["m, 1 thread", "m, 2 threads"]
    assert labels_of([(it.name, it.execution) for it in found[:1]]) == ["m"]
