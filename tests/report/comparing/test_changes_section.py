from dlbricks_tui.answers.changes import compare
from dlbricks_tui.report.comparing.changes import changes_section, letters
from tests.answers.comparisons.exports import TWO, layer, model, side


def test_limits_of_a_comparison_are_named() -> None:
    shared = layer(0, 0.0)
    first = side("a", shared, model("gone", 1.0), layer(1, 0.0, protocol="cold"))
    section = changes_section([compare(first, side("b", shared, layer(2, 1.0)))])
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
    first, second = side("a", layer(0, 0.0)), side("b", layer(0, 0.0, runtime=TWO))
    section = changes_section([compare(first, second)])
    assert "Different, and compared all the same: threads (1 thread in A, 2 threads in B)." in section.missing


def test_sides_have_letters() -> None:
    assert [letters(it) for it in (0, 1, 25, 26)] == ["A", "B", "Z", "27"]
