"""A suite from the owner to the vendor, and its results back."""

import json
import stat
from dataclasses import replace
from pathlib import Path
from shutil import copytree

import pytest

from dlbricks_tui.jobs.events import Event
from dlbricks_tui.jobs.folder import RunFolder, RunFolders, State
from dlbricks_tui.models.graph import Level
from dlbricks_tui.runs.events import ModelLeftOut, Planned
from dlbricks_tui.runs.request import SuiteChoice, read_request
from dlbricks_tui.share import exporting
from dlbricks_tui.share.errors import ShareError
from dlbricks_tui.share.exporting import BricksChecked, assemble, write_assembled
from dlbricks_tui.share.packing import SuiteModel
from dlbricks_tui.share.results_file import read_results
from dlbricks_tui.share.suite_files import key_path, open_suite, read_key, seed_of, sha256
from dlbricks_tui.share.suite_runs import execute_any
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.records import ANY_CONTEXT, Measurement
from dlbricks_tui.store.selections import equal
from tests.share.trio import PRIVATE_WIDTHS, Trio, packings
from tests.store.samples import former_calibration


@pytest.fixture
def trio(tmp_path: Path) -> Trio:
    return Trio(tmp_path)


@pytest.fixture
def measured(measured_suite: Trio, tmp_path: Path) -> Trio:
    """A copy of a suite that was measured, whose results are not imported."""
    copytree(measured_suite.path, tmp_path / "measured")
    return Trio(tmp_path / "measured")


@pytest.mark.parametrize(("level", "in_one_file"), [(Level.FUSED, False), (Level.WRITTEN, True)])
def test_a_suite_measures_exactly_the_missing_bricks(trio: Trio, level: Level, in_one_file: bool) -> None:
    assembled = trio.export(level)
    assert not assembled.left_out
    suite = trio.path / "one.dlbricks" if in_one_file else trio.suite
    if in_one_file:
        write_assembled(assembled, suite, suite.with_suffix(".key"))
    state = trio.run(suite=SuiteChoice(suite, trio.results))
    assert (state.state, state.bricks.failed) == (State.FINISHED, 0)
    assert state.bricks.measured == len(assembled.manifest.bricks)
    found = trio.bring_home()
    assert (found.failed, found.missing) == (0, 0)
    assert found.decoys == len(assembled.key.decoys)
    private = trio.taken_apart(PRIVATE_WIDTHS, level)
    bricks = {(brick, ANY_CONTEXT) for brick, _ in private.suite}
    assert set(trio.owner.contents().measured) == bricks
    assert found.new == len(bricks)


def test_bricks_of_models_that_no_cache_holds_are_cold(trio: Trio) -> None:
    models = [SuiteModel(trio.taken_apart(widths, Level.WRITTEN)) for widths in ((200, 400, 400), (24,))]
    suite = assemble(models, [], seed_of("a seed"), Level.WRITTEN, packings(Level.WRITTEN))
    cold = {suite.key.meanings[brick.id].brick: brick.cold for brick in suite.manifest.bricks}
    large, small = (model.bricks.keys() for model in models)
    # A brick of both is packed once.
    assert {cold[brick] for brick in large} == {True}
    assert {cold[brick] for brick in small - large} == {False}


def test_results_of_earlier_versions_are_imported_without_their_calibrations(measured: Trio) -> None:
    document = json.loads(measured.results.read_bytes())
    del document["check"]
    for part in document["parts"]:
        part["calibrations"] = [former_calibration()]
    document["check"] = sha256(json.dumps(document, sort_keys=True).encode())
    measured.results.write_text(json.dumps(document))
    found = measured.bring_home()
    assert found.new and found.calibrations == 0
    with ResultsDatabase(measured.owner.data.store) as store:
        assert "calibrations" not in store.tables()


def test_a_run_that_ended_early_writes_its_results_and_can_be_resumed(trio: Trio) -> None:
    assembled = trio.export()
    events: list[Event] = []

    def clock() -> float:
        # The budget is used up once the bricks are known.
        return 1e6 * any(isinstance(event, Planned) for event in events)

    trio.run(events, clock, time_budget_seconds=1000.0)
    assert not read_results(trio.results).parts[0].measured
    (state,) = RunFolders(trio.vendor.data.runs).states()
    folder = RunFolder(trio.vendor.data.runs / state.run)
    request = replace(read_request(folder.request_file), time_budget_seconds=None)
    assert request.suite is not None
    execute_any(folder, request, trio.vendor.place, trio.vendor.queue)
    assert len(read_results(trio.results).parts[0].measured) == len(assembled.manifest.bricks)


def test_bricks_that_cannot_be_read_or_crash_a_worker_fail_alone_and_the_owner_gets_the_reasons(
    trio: Trio, monkeypatch: pytest.MonkeyPatch
) -> None:
    assembled = trio.export()
    files = {name: trio.suite / "bricks" / f"{name}-symbol.json" for name in sorted(assembled.key.meanings)}
    mine = next(name for name, file in files.items() if "softmax" not in file.read_text())
    files[mine].write_text("{}")
    monkeypatch.setenv("FAKE_MANNERS", '{"softmax": "crash on load"}')
    events: list[Event] = []
    state = trio.run(events)
    (left_out,) = [event for event in events if isinstance(event, ModelLeftOut)]
    assert mine in left_out.reason
    assert state.bricks.failed == 1
    found = trio.bring_home()
    assert (found.failed, found.missing) == (2, 0)
    failures = {failure.brick for failure in trio.owner.contents().failures}
    assert len(failures) == 2
    assert assembled.key.meanings[mine].brick in failures


def test_results_come_home_once_by_the_key_and_count_after_own_ones(measured: Trio) -> None:
    # A suite that is measured again reuses its results.
    content = measured.results.read_bytes()
    again = measured.run()
    assert (again.bricks.measured, again.bricks.reused) == (0, len(read_results(measured.results).parts[0].measured))
    assert measured.results.read_bytes() == content
    suite = read_results(measured.results).suite
    first, second = measured.bring_home(), measured.bring_home()
    assert (second.new, second.known) == (0, first.new)
    with ResultsDatabase(measured.owner.data.store) as store:
        assert {it.run for it in store.records(Measurement)} == {f"suite-{suite[:12]}"}
        theirs = store.records(Measurement)[0]
        own = replace(theirs, uuid="0" * 32, when="2020-01-01T00:00:00+00:00")
        store.add(own)
        found = store.least_first(Measurement, equal(brick=theirs.brick, context=theirs.context))
    assert theirs in found and found[-1] == own
    key_path(measured.owner.data, suite).unlink()
    with pytest.raises(ShareError, match="--key FILE"):
        measured.bring_home()


def test_only_the_owner_can_read_the_key(trio: Trio) -> None:
    assembled = trio.export()
    path = key_path(trio.owner.data, assembled.manifest.suite)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert read_key(path) == assembled.key
    assert not list(trio.suite.rglob("*key*"))


def test_a_suite_in_one_file_holds_the_same_as_a_folder(trio: Trio) -> None:
    assembled = trio.export()
    archives = [trio.path / f"{name}.dlbricks" for name in ("one", "other")]
    for path in archives:
        write_assembled(assembled, path, path.with_suffix(".key"))
    assert archives[0].read_bytes() == archives[1].read_bytes()
    with open_suite(trio.suite) as folder, open_suite(archives[0]) as archive:
        assert (archive.manifest, archive.sha256) == (folder.manifest, folder.sha256)
        for brick in folder.manifest.bricks:
            assert archive.network(brick) == folder.network(brick)


def test_equal_seeds_give_equal_suites_and_different_seeds_different_ones(trio: Trio, tmp_path: Path) -> None:
    one, same, other = (Trio(tmp_path / name) for name in ("one", "same", "other"))
    for each in (one, same, other):
        each.path.mkdir()
    suites = [one.export(seed="s"), same.export(seed="s"), other.export(seed="t")]
    assert suites[0].manifest == suites[1].manifest
    ids = [{brick.id for brick in suite.manifest.bricks} for suite in suites]
    assert ids[0].isdisjoint(ids[2])


def test_an_export_tells_how_far_it_is(trio: Trio, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exporting, "_SECONDS_BETWEEN_EVENTS", 0.0)
    model, told = SuiteModel(trio.taken_apart(PRIVATE_WIDTHS, Level.WRITTEN)), list[Event]()
    found = assemble([model], [], seed_of("a seed"), Level.WRITTEN, packings(Level.WRITTEN), tell=told.append)
    checked = [it for it in told if isinstance(it, BricksChecked)]
    assert [it.done for it in checked] == list(range(1, len(checked) + 1)) and len(checked) > 3
    assert {it.of for it in checked} == {len(found.manifest.bricks) + len(found.left_out)} == {len(checked)}
    assert checked[-1].seconds_left == 0.0 < checked[0].seconds_left
