import pytest

from dlbricks_tui.answers.changes import Columns, EstimateOf, hosts_of, versions_of
from dlbricks_tui.answers.sides import Found, Side
from dlbricks_tui.store.change import Verdict
from tests.answers.comparisons.exports import MXNET, NEWER, model, origin, side


def nothing(_: Found) -> None:
    """Know no estimates."""


def hosts(*sides: Side, estimate: EstimateOf = nothing) -> Columns:
    found = hosts_of(sides, estimate)
    assert found is not None
    return found


def test_systems_are_relative_to_the_first_one() -> None:
    first = side("a", model("m", 10.0), model("n", 20.0), model("only", 1.0))
    second = side("b", model("m", 5.0, system="there"), model("n", 5.0, system="there"))
    found = hosts(first, second)
    (there,) = found.others
    assert (found.first, there.name, there.models) == ("here", "there", 2)
    # The geometric mean of a half and a quarter.
    assert there.ratio == pytest.approx(0.125**0.5)
    assert [(row.model, *(it.verdict for it in row.others)) for row in found.models] == [
        ("m", Verdict.FASTER),
        ("n", Verdict.FASTER),
    ]


def test_both_sides_of_a_ratio_have_estimates() -> None:
    first, second = side("a", model("m", 10.0)), side("b", model("m", 5.0, system="there"))
    (row,) = hosts(first, second, estimate=lambda it: it.statistics.trimmed_mean_ms + 1.0).models
    assert (row.estimate_ms, row.others[0].estimate_ms) == (row.ms + 1.0, row.others[0].ms + 1.0)


def test_a_system_in_two_sides_counts_with_the_first_side() -> None:
    first = side("a", model("m", 10.0), model("m", 20.0, system="there"))
    second = side("b", model("m", 1.0), model("m", 1.0, system="there"))
    assert hosts(first, second).others[0].ratio == pytest.approx(2.0)


def test_one_system_or_version_has_no_columns() -> None:
    first, second = side("a", model("m", 10.0)), side("b", model("m", 11.0))
    assert hosts_of([first, second], nothing) is None
    assert list(versions_of([first, second], nothing)) == []


def test_a_system_without_models_of_the_first_one_is_named() -> None:
    first, second = side("a", model("m", 10.0)), side("b", model("n", 5.0, system="there"))
    assert hosts(first, second).remarks == (
        "Of here and not compared with there: 1 model (m): no result there.",
        "Of there and not compared with here: 1 model (n): no result there.",
    )


def test_frameworks_versions_and_releases_of_dlbricks_stand_side_by_side() -> None:
    first = side("a", model("m", 10.0), origin())
    second = side(
        "b",
        model("m", 8.0, runtime=NEWER, run="r2"),
        model("m", 20.0, runtime=MXNET, run="r2"),
        origin(runtime=NEWER, run="r2", packages=(("dlbricks", "0.3.0"),)),
    )
    found = {it.what: it for it in versions_of([first, second], nothing)}
    assert list(found) == ["framework", "version of ONNX Runtime", "version of dlbricks"]
    names = {what: [it.first, *(column.name for column in it.others)] for what, it in found.items()}
    assert names["framework"] == ["ONNX Runtime", "MXNet"]
    assert names["version of ONNX Runtime"] == ["ONNX Runtime 1.20", "ONNX Runtime 1.21"]
    assert names["version of dlbricks"] == ["dlbricks 0.2.0", "dlbricks 0.3.0"]
    assert found["version of ONNX Runtime"].others[0].ratio == pytest.approx(0.8)
