from dlbricks_tui.answers.changes import hosts_of
from dlbricks_tui.answers.sides import facts_of, side_of
from dlbricks_tui.report.comparing.columns import hosts_section
from dlbricks_tui.report.comparing.comparison import sides_section
from tests.answers.comparisons.exports import DEFINITIONS, NEWER, layer, model, origin, side


def test_only_differences_are_repeated() -> None:
    sides = [side("a.json", model("m", 1.0), layer(0, 1.0)), side("b.json", model("m", 1.0, runtime=NEWER))]
    section = sides_section(sides, facts_of(sides))
    assert section.answer == "A is a.json, B is b.json. They differ in: framework."
    assert [row[0] for row in section.exhibits[1].numbers.rows] == ["framework"]


def test_a_side_that_does_not_tell_is_named() -> None:
    section = sides_section([side("a", model("m", 1.0)), side("b", model("n", 1.0), origin())], ())
    assert section.missing == (
        "A does not tell the versions of packages and the state of the host for 1 of its 1 run.",
    )


def test_lines_without_a_record_are_counted() -> None:
    broken = side_of("a", [*DEFINITIONS, model("m", 1.0)], ["line 7 of a is no JSON"])
    section = sides_section([broken], facts_of([broken]))
    assert "A has 1 line without a record, the first: line 7 of a is no JSON." in section.missing


def test_hosts_are_told_how_fast_they_are_or_why_not() -> None:
    assert hosts_section(None).answer == "All results are of one system."
    first = side("a", model("m", 10.0))
    for other, said in (("m", "there takes 0.500 times as long"), ("n", "there has no model to compare with here.")):
        second = side("b", model(other, 5.0, system="there"))
        section = hosts_section(hosts_of([first, second], lambda _: None))
        assert section.answer.startswith(said)
        told = "No estimate by system of 1 model (m)" if other == "m" else "Of there and not compared with here"
        assert section.missing[-1].startswith(told)
