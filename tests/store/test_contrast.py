from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dlbricks_tui.store.contrast import Contrast, Verdict, contrast
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.statistics import summarise
from tests.store.samples import brick, end_to_end, form, measurement


def spread_around(base_ms: float, count: int = 25) -> dict[str, Any]:
    samples = tuple(base_ms * (1 + number % 5 / 100) for number in range(count))
    return {"samples_ms": samples, "statistics": summarise(samples)}


HERE: dict[str, Any] = {"system": "here"}
THERE: dict[str, Any] = {"system": "there"}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ResultsDatabase]:
    """Two systems with bricks that are slower, faster and as fast on the second."""
    with ResultsDatabase(tmp_path / "store") as store:
        store.add(*map(form, range(6)))
        for number, there_ms in enumerate((2.0, 0.5, 1.0, 1.004)):
            store.add(
                measurement(brick=brick(number), **HERE, **spread_around(1.0)),
                measurement(brick=brick(number), **THERE, **spread_around(there_ms)),
            )
        store.add(measurement(brick=brick(4), **HERE), measurement(brick=brick(5), **THERE))
        store.add(end_to_end(**HERE, **spread_around(30.0)), end_to_end(**THERE, **spread_around(33.0)))
        yield store


def both(store: ResultsDatabase) -> Contrast:
    return contrast(store.select("system=here"), store.select("system=there"))


def test_the_second_results_of_common_bricks_are_compared_with_the_first(store: ResultsDatabase) -> None:
    found = both(store)
    assert {pair.second.brick or pair.name: pair.verdict for pair in found.pairs} == {
        brick(0): Verdict.SLOWER,
        brick(1): Verdict.FASTER,
        brick(2): Verdict.ALIKE,
        # However sure a difference of less than a hundredth is, it counts as none.
        brick(3): Verdict.ALIKE,
        "resnet50_v1": Verdict.SLOWER,
    }
    assert (found.count(Verdict.SLOWER), found.only_first, found.only_second) == (2, 1, 1)
    turned = contrast(store.select("system=there"), store.select("system=here"))
    assert found.ratio is not None and turned.ratio == pytest.approx(1 / found.ratio)
    assert turned.total_ms == tuple(reversed(found.total_ms))
    assert turned.count(Verdict.FASTER) == found.count(Verdict.SLOWER)


def test_results_of_the_same_runtime_are_compared_where_both_have_one(store: ResultsDatabase) -> None:
    later = "2026-11-25T08:00:00.000000+00:00"
    store.add(measurement(brick=brick(0), **HERE, **spread_around(0.1), when=later, runtime="of here alone"))
    (pair,) = contrast(store.select("system=here"), store.select("system=there", f"brick={brick(0)}")).pairs
    assert pair.first.runtime == pair.second.runtime
    assert pair.ratio == pytest.approx(2.0)
    (pair,) = contrast(store.select("system=here", "runtime=of here alone"), store.select("system=there")).pairs
    assert pair.ratio == pytest.approx(20.0), "two runtimes"


def test_the_newest_good_result_counts(store: ResultsDatabase) -> None:
    later = "2026-11-25T08:00:00.000000+00:00"
    store.add(
        measurement(brick=brick(0), **THERE, **spread_around(3.0), when=later),
        measurement(brick=brick(0), **THERE, **spread_around(9.0), when=later, flags=("drift",)),
    )
    (pair,) = contrast(store.select("system=here"), store.select("system=there", f"brick={brick(0)}")).pairs
    assert pair.ratio == pytest.approx(3.0)


def test_results_with_too_few_samples_are_compared_and_not_judged(store: ResultsDatabase) -> None:
    store.add(
        measurement(brick=brick(5), **HERE, **spread_around(1.0, 5)),
        measurement(brick=brick(5), **THERE, **spread_around(2.0, 5), when="2026-11-25T08:00:00+00:00"),
    )
    pair = next(pair for pair in both(store).pairs if pair.second.brick == brick(5))
    assert pair.verdict is Verdict.TOO_FEW and pair.ratio == pytest.approx(2.0)


def test_selections_with_nothing_in_common_have_no_ratio_and_a_comparison_can_be_stopped(
    store: ResultsDatabase,
) -> None:
    found = contrast(store.select("system=here"), store.select("system=nowhere"))
    assert found.pairs == () and found.ratio is None and found.only_first == 6
    answers = iter([True, True, False])
    found = contrast(store.select("system=here"), store.select("system=there"), lambda: next(answers))
    assert len(found.pairs) == 2
