import pytest

from dlbricks_tui.evaluations.change import Verdict
from dlbricks_tui.report.comparing.changes import Group
from dlbricks_tui.report.comparing.columns import hosts_of, hosts_section, versions_of
from dlbricks_tui.report.comparing.sides import Side
from tests.report.comparing.exports import MXNET, NEWER, model, origin, side


def groups(*sides: Side) -> list[Group]:
    return [Group(it.name, it.results, it.contents) for it in sides]


def test_systems_are_relative_to_the_first_one() -> None:
    first = side("a", model("m", 10.0), model("n", 20.0), model("only", 1.0))
    second = side("b", model("m", 5.0, system="there"), model("n", 5.0, system="there"))
    hosts = hosts_of([first, second], groups(first, second))
    assert hosts is not None
    here, there = hosts.columns
    assert (here.group.name, there.group.name) == ("here", "there")
    assert there.mean is not None and there.mean.of == 2
    # The geometric mean of a half and a quarter.
    assert there.mean.ratio == pytest.approx(0.125**0.5)
    assert [(row.model, row.pairs[0].change.verdict) for row in hosts.rows if row.pairs[0]] == [
        ("m", Verdict.FASTER),
        ("n", Verdict.FASTER),
    ]


def test_a_system_in_two_sides_counts_with_the_first_side() -> None:
    first = side("a", model("m", 10.0), model("m", 20.0, system="there"))
    second = side("b", model("m", 1.0), model("m", 1.0, system="there"))
    hosts = hosts_of([first, second], groups(first, second))
    assert hosts is not None and hosts.columns[1].mean is not None
    assert hosts.columns[1].mean.ratio == pytest.approx(2.0)


def test_one_system_or_version_has_no_columns() -> None:
    first, second = side("a", model("m", 10.0)), side("b", model("m", 11.0))
    assert hosts_of([first, second], groups(first, second)) is None
    assert versions_of(groups(first, second)) == []
    assert hosts_section(None, {}).answer == "All results are of one system."


def test_a_system_without_models_of_the_first_one_is_named() -> None:
    first, second = side("a", model("m", 10.0)), side("b", model("n", 5.0, system="there"))
    section = hosts_section(hosts_of([first, second], groups(first, second)), {})
    assert section.answer == "there has no model to compare with here."
    assert section.missing == (
        "Of here and not compared with there: 1 model (m).",
        "Of there and not compared with here: 1 model (n).",
    )


def test_frameworks_versions_and_releases_of_dlbricks_stand_side_by_side() -> None:
    first = side("a", model("m", 10.0), origin())
    second = side(
        "b",
        model("m", 8.0, runtime=NEWER, run="r2"),
        model("m", 20.0, runtime=MXNET, run="r2"),
        origin(runtime=NEWER, run="r2", packages=(("dlbricks", "0.3.0"),)),
    )
    found = {it.what: it for it in versions_of(groups(first, second))}
    assert list(found) == ["framework", "version of ONNX Runtime", "version of dlbricks"]
    names = {what: [column.group.name for column in it.columns] for what, it in found.items()}
    assert names["framework"] == ["ONNX Runtime", "MXNet"]
    assert names["version of ONNX Runtime"] == ["ONNX Runtime 1.20", "ONNX Runtime 1.21"]
    assert names["version of dlbricks"] == ["dlbricks 0.2.0", "dlbricks 0.3.0"]
    newer = found["version of ONNX Runtime"].columns[1].mean
    assert newer is not None and newer.ratio == pytest.approx(0.8)
