"""The attack on clocks: one that was ahead for a while changes neither which results count nor which run is last."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timezone
from itertools import pairwise
from pathlib import Path

import pytest

from dlbricks_tui.cli.main import main
from dlbricks_tui.jobs.folder import RunFolders
from dlbricks_tui.measure.jobs import JobKey
from dlbricks_tui.measure.known import known_in
from dlbricks_tui.measure.results import conditions_of
from dlbricks_tui.store import index
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.documents import TABLES
from dlbricks_tui.store.records import Measurement, Run
from dlbricks_tui.store.selections import LEAST_FIRST, NEWEST_FIRST, OLDEST_FIRST, newest_by_pair
from dlbricks_tui.store.verification import verify
from tests.runs.runs import BRICKS, FAKE, Site
from tests.store.samples import measurement

AHEAD = "2099-03-01T00:00:00.000000+00:00"
DATED = [name for name in TABLES if name not in ("bricks", "systems", "runtimes", "imports")]


def put_ahead(site: Site) -> None:
    """Date all results and runs as a clock would have done that was ahead."""
    with ResultsDatabase(site.data.store) as store:
        for name in DATED:
            store.table(name).update({"when": AHEAD, **({"started": AHEAD} if name == "runs" else {})})
    for state in RunFolders(site.data.runs).states():
        RunFolders(site.data.runs).find(state.run).set_state(replace(state, started=AHEAD))


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    """A site with a run under a clock that was ahead."""
    site = Site(tmp_path / "data")
    for name, value in site.environment.items():
        monkeypatch.setenv(name, value)
    site.run(site.request())
    put_ahead(site)
    return site


def test_after_a_clock_that_was_ahead_a_run_goes_on_and_new_results_count_and_dates_can_be_corrected(
    site: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    check_that_a_resumed_run_goes_on_from_its_own_results(site)
    run = check_that_measuring_again_measures_everything(site)
    check_that_dates_in_the_future_are_told_and_can_be_corrected(site, capsys, run)


def check_that_measuring_again_measures_everything(site: Site) -> str:
    state = site.run(replace(site.request(), again=True))
    assert (state.bricks.measured, state.bricks.reused) == (BRICKS, 0)
    assert RunFolders(site.data.runs).find("last").run == state.run
    with ResultsDatabase(site.data.store) as store:
        assert {it.run for it in newest_by_pair(store.select()).values()} == {state.run}
        assert {it.run for it in store.select(order=NEWEST_FIRST)[:BRICKS]} == {state.run}
        assert store.runs()[-1].id == store.least_first(Run)[-1].id == state.run
        assert all(datetime.fromisoformat(it.when) < datetime.now(timezone.utc) for it in store.records(Measurement))
    return state.run


def check_that_a_resumed_run_goes_on_from_its_own_results(site: Site) -> None:
    with ResultsDatabase(site.data.store) as store:
        (run,) = store.select().distinct("run")
        found = store.select(order=OLDEST_FIRST)
        conditions = conditions_of(found[0].system, FAKE, site.request().method)
        keys = [JobKey(it.brick, it.context, "") for it in found]
        assert known_in(store, conditions, keys, run=run).measured.keys() == set(keys)
        assert known_in(store, conditions, keys, run="another").measured == {}


def check_that_dates_in_the_future_are_told_and_can_be_corrected(
    site: Site, capsys: pytest.CaptureFixture[str], latest: str
) -> None:
    def say(*words: str) -> tuple[int, str]:
        status = main(["--data-dir", str(site.path), *words])
        return status, capsys.readouterr().err

    with ResultsDatabase(site.data.store) as store:
        before = store.select(order=LEAST_FIRST).values("id")
        ahead = len(store.from_the_future)
    status, told = say("results", "list")
    assert f"{ahead} records of the store have a date in the future, up to 2099-03-01" in told
    status, told = say("results", "verify")
    assert (status, "`dlbricks results verify --correct-dates` corrects dates" in told) == (1, True)
    assert "results delete" not in told
    assert say("results", "verify", "--correct-dates") == (0, f"{ahead} dates corrected\n")
    assert say("results", "verify") == (0, "")
    with ResultsDatabase(site.data.store) as store:
        # Nothing is lost, and the same results count.
        assert store.select(order=LEAST_FIRST).values("id") == before
        assert store.runs()[-1].id == latest
    assert not verify(site.data.store).implausible


@pytest.fixture
def dates(tmp_path: Path) -> Iterator[ResultsDatabase]:
    """A store with results of days in 2026, the second and fourth of which have a date in the future."""
    whens = ("2026-11-01", "2099-01-01", "2026-11-03", "2098-01-01", "2026-11-05")
    with ResultsDatabase(tmp_path) as store:
        for when in whens:
            store.add(measurement(when=f"{when}T00:00:00+00:00"))
        yield store


def test_a_date_in_the_future_is_that_of_the_result_stored_before(dates: ResultsDatabase) -> None:
    expected = ["2026-11-01", "2026-11-01", "2026-11-03", "2026-11-03", "2026-11-05"]
    ids = [it.uuid for it in dates.records(Measurement)]
    for compacted in (False, True):
        if compacted:
            dates.compact()
        oldest_first = dates.select(order=OLDEST_FIRST)
        assert oldest_first.values("id") == ids
        assert [it.when[:10] for it in oldest_first] == expected
        assert [it.when[:10] for it in dates.records(Measurement)] == expected
        assert all(one.when <= other.when for one, other in pairwise(oldest_first))


def test_a_clock_that_is_behind_leaves_the_order_of_what_was_stored(
    dates: ResultsDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Behind(datetime):
        @classmethod
        def now(cls, tz: object = None) -> "Behind":
            return cls(2026, 11, 2, tzinfo=timezone.utc)

    monkeypatch.setattr(index, "datetime", Behind)
    dates.add(measurement(when="2026-11-02T00:00:00+00:00", uuid="0" * 32))
    assert dates.select(order=LEAST_FIRST)[-1].id == "0" * 32
