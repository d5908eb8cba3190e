import pytest

from dlbricks_tui.answers.sides import NotComparableError, facts_of, side_of
from tests.answers.comparisons.exports import DEFINITIONS, NEWER, layer, model, origin, side


def test_the_facts_of_each_side_are_shown_and_only_differences_are_repeated() -> None:
    packages = (("dlbricks", "0.2.0"), ("python", "3.11.7"), ("onnxruntime", "1.20"))
    host = (("kernel", "6.1.0"), ("turbo", True))
    first = side("a.json", model("m", 1.0), layer(0, 1.0), origin(packages=packages, host=host))
    second = side(
        "b.json",
        model("m", 1.0, runtime=NEWER, when="2026-11-22T08:00:00.000000+00:00"),
        model("n", 1.0, runtime=NEWER, flags=("noisy",)),
        origin(
            runtime=NEWER, packages=(("dlbricks", "0.3.0"), *packages[1:]), host=(("kernel", "6.1.0"), ("turbo", False))
        ),
    )
    facts = {it.name: it for it in facts_of([first, second])}
    assert facts["models"].values == ("1", "1")
    assert facts["results in doubt"].values == ("0", "1")
    assert facts["measured"].values == ("2026-11-21", "2026-11-22")
    assert facts["framework"].values == ("ONNX Runtime 1.20", "ONNX Runtime 1.21")
    assert {name: it.values for name, it in facts.items() if it.differs} == {
        "framework": ("ONNX Runtime 1.20", "ONNX Runtime 1.21"),
        "dlbricks": ("0.2.0", "0.3.0"),
        "turbo": ("on", "off"),
    }


def test_what_one_side_does_not_tell_is_no_difference() -> None:
    facts = facts_of([side("a", model("m", 1.0)), side("b", model("n", 1.0), origin())])
    assert not any(it.differs for it in facts)


def test_the_state_of_signatures_is_shown_if_any_is_known() -> None:
    signed = side_of("a", [*DEFINITIONS, model("m", 1.0)], signature="signed by ann")
    facts = {it.name: it for it in facts_of([signed, side("b", model("m", 1.0))])}
    assert facts["signature"].values == ("signed by ann", "not known")


@pytest.mark.parametrize(
    ("records", "why"),
    [
        ((), "it has no results of models or bricks"),
        ((model("m", 1.0, flags=("noisy",)),), "all 1 of its results are in doubt"),
    ],
)
def test_a_side_without_good_results_is_one_line(records: tuple[object, ...], why: str) -> None:
    with pytest.raises(NotComparableError, match=f"a has nothing to compare: {why}"):
        side("a", *records)  # type: ignore[arg-type]
