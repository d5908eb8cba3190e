from dataclasses import replace
from pathlib import Path

from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.verification import verify
from tests.store.samples import brick, form, measurement, one_of_each, runtime, system


def test_records_of_every_kind_that_dlbricks_writes_are_plausible(tmp_path: Path) -> None:
    with ResultsDatabase(tmp_path) as store:
        store.add(*one_of_each(), form(1))
    found = verify(tmp_path)
    assert (found.damage, found.implausible) == ((), ())


def test_impossible_stored_results_are_named(tmp_path: Path) -> None:
    good = measurement()
    negative = replace(measurement(), samples_ms=(-1.0, *good.samples_ms[1:]))
    unrelated = replace(measurement(), statistics=measurement(5.0).statistics)
    future = measurement(when="2999-01-01T00:00:00+00:00")
    unknown = measurement(brick=brick(7))
    with ResultsDatabase(tmp_path) as store:
        store.add(form(), system(), runtime(), good, negative, unrelated, future, unknown)
    found = verify(tmp_path)
    assert found.damage == ()
    assert {each.uuid: each.reason for each in found.implausible} == {
        negative.uuid: "has an impossible sample",
        unrelated.uuid: "has a trimmed mean that does not follow from its samples",
        future.uuid: "is from the future: 2999-01-01T00:00:00+00:00",
        unknown.uuid: f"is of brick '{brick(7)[:40]}', which is described nowhere",
    }
    assert {each.table for each in found.implausible} == {"measurements"}
