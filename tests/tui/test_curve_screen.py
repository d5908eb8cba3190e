"""The box with the batch curve of the open model."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from dlbricks_tui.bricks.decomposition import decompose
from dlbricks_tui.folders import SAMPLE_MODELS, DataFolder
from dlbricks_tui.models.graph import Level
from dlbricks_tui.models.library import Library
from dlbricks_tui.models.loading import Loader
from dlbricks_tui.runtime.traits import Format
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.tui.choices import BATCH_SIZES, Choices
from dlbricks_tui.tui.open_model import ModelSpec
from dlbricks_tui.tui.session import Session
from dlbricks_tui.tui.workbench.curve import CurveScreen
from dlbricks_tui.tui.workbench.work import VariantCurve, read_batch_curve, read_thread_curve
from tests.estimate.stored import brick_records, model_record
from tests.estimate.test_curve import point
from tests.models.table_framework import TableFramework
from tests.store.samples import runtime, system
from tests.tui.application import NARROW, app_on, press, running, screen_text
from tests.tui.snapshots import check_all, check_layout, check_sixteen_colours

MEASURED = VariantCurve(tuple(point(size, 9.0 + 6 * size if size != 16 else None) for size in BATCH_SIZES))
REFUSED = MEASURED._replace(refusal="its file fixes the batch")
BY_THREADS = VariantCurve((point(1, 20.0, 1), point(1, 12.5, 2), point(1, None, 4)))
CHOICES = Choices(level=Level.WRITTEN, system="c5.xlarge", runtime="onnxruntime-1.32.0")


async def test_the_batch_curve_matches_its_snapshot(measured: DataFolder) -> None:
    async with running(app_on(measured)) as pilot:
        await pilot.app.push_screen(CurveScreen("net", lambda: MEASURED, lambda: BY_THREADS))
        await press(pilot)
        await check_all(pilot, "curve")


async def test_the_batch_curve_fits_a_narrow_terminal_with_a_reason_for_what_is_missing(measured: DataFolder) -> None:
    measured.config.write_text('[workbench]\ntheme = "terminal"\n')
    async with running(app_on(measured), NARROW) as pilot:
        await pilot.app.push_screen(CurveScreen("net", lambda: REFUSED, lambda: BY_THREADS))
        await press(pilot)
        shown = screen_text(pilot)
        assert "BATCH" in shown and "ms against batch" in shown and "its file fixes the batch" in shown
        check_layout(pilot.app)
        check_sixteen_colours(pilot.app)


async def test_keys_set_a_bound_of_the_latency_and_name_the_best_batch_under_it(measured: DataFolder) -> None:
    async with running(app_on(measured), NARROW) as pilot:
        await pilot.app.push_screen(CurveScreen("net", lambda: MEASURED, lambda: BY_THREADS))
        await press(pilot)
        assert "+ higher bound" in screen_text(pilot)
        # The middle of the measured latencies is 33 ms.
        await press(pilot, "plus")
        shown = screen_text(pilot)
        assert "best under 50 ms: batch 4, 33.00 ms, 121.2 per second" in shown and ".... 50 ms" in shown
        assert "ms against batch" in shown and "x measured" in shown
        check_layout(pilot.app)
        await press(pilot, "plus")
        assert "best under 100 ms: batch 8" in screen_text(pilot)
        await press(pilot, "minus", "minus")
        assert "best under 20 ms: batch 1" in screen_text(pilot)
        await press(pilot, "n")
        assert "best under" not in screen_text(pilot)


async def test_a_key_shows_numbers_of_threads_with_their_efficiency_instead(measured: DataFolder) -> None:
    async with running(app_on(measured), NARROW) as pilot:
        await pilot.app.push_screen(CurveScreen("net", lambda: MEASURED, lambda: BY_THREADS))
        await press(pilot, "x")
        shown = screen_text(pilot)
        assert "Threads of net" in shown and "ms against threads" in shown and "EFFICIENCY" in shown
        assert "80 %" in shown and "not measured: dlbricks run net" in shown
        await press(pilot, "x")
        assert "Batch sizes of net" in screen_text(pilot) and "ms against batch" in screen_text(pilot)


async def test_a_key_opens_the_batch_curve_of_the_open_model(measured: DataFolder) -> None:
    async with running(app_on(measured)) as pilot:
        await press(pilot, "b")
        assert not isinstance(pilot.app.screen, CurveScreen)
        await press(pilot, "slash", '"alexnet"', "enter", "enter", "b")
        assert isinstance(pilot.app.screen, CurveScreen)
        assert "Batch sizes of alexnet" in screen_text(pilot)
        await press(pilot, "escape")
        assert not isinstance(pilot.app.screen, CurveScreen)


def test_the_curve_has_results_of_each_batch_size_that_was_measured(tmp_path: Path) -> None:
    data = DataFolder(tmp_path / "data")
    (source,) = Library(SAMPLE_MODELS, data.path, Format.ONNX).find("tabular_network")
    at_four = decompose(
        Loader(tmp_path / "cache", TableFramework()).load(source, Level.WRITTEN, batch_size=4), Choices().cutting
    )
    where: dict[str, Any] = {"system": "c5.xlarge", "runtime": "onnxruntime-1.32.0"}
    with ResultsDatabase(data.store) as store:
        described = runtime("onnxruntime-1.32.0", framework="onnxruntime")
        timed = model_record(at_four, 2.0, **where)
        store.add(system("c5.xlarge"), described, *brick_records(at_four, **where), timed)
    session = Session(data, SAMPLE_MODELS)
    found = read_batch_curve(session, ModelSpec(source, Level.WRITTEN, Choices().cutting), CHOICES)
    session.close()
    assert [it.batch_size for it in found.points] == list(BATCH_SIZES)
    measured = [it for it in found.points if it.found.estimate.coverage.measured]
    assert [it.batch_size for it in measured if it.estimate_ms is not None] == [4]
    assert next(it for it in found.points if it.batch_size == 4).measured_ms == 2.0
    assert found.points[0].cure.endswith("with batch size 1")


def test_the_threads_that_were_chosen_decide_whose_measurements_count(tmp_path: Path) -> None:
    data = DataFolder(tmp_path / "data")
    (source,) = Library(SAMPLE_MODELS, data.path, Format.ONNX).find("tabular_network")
    decomposition = decompose(Loader(tmp_path / "cache", TableFramework()).load(source, batch_size=4))
    identities = {threads: f"onnxruntime-1.32.0 python-3.11 threads-{threads}" for threads in (1, 2)}
    with ResultsDatabase(data.store) as store:
        store.add(system("c5.xlarge"))
        for identity in identities.values():
            described = runtime(identity, framework="onnxruntime")
            store.add(described, *brick_records(decomposition, system="c5.xlarge", runtime=identity))
    session = Session(data, SAMPLE_MODELS)
    for threads, wanted in ((1, identities[1]), (2, identities[2]), (8, "")):
        choices = replace(CHOICES, runtime=None, threads=threads)
        found = session.estimator.estimate(decomposition, choices)
        assert found.way.runtime == wanted
        assert (found.per_second is None) == (not wanted)
    # A runtime that was chosen has its own threads.
    found = session.estimator.estimate(decomposition, replace(CHOICES, runtime=identities[1]))
    assert (found.variant.threads, found.variant.batch_size) == (1, 4)
    spec = ModelSpec(source, Level.WRITTEN, Choices().cutting, batch_size=4)
    points = {it.threads: it for it in read_thread_curve(session, spec, CHOICES).points}
    assert points.keys() >= {1, 2}
    assert [points[threads].found.way.runtime for threads in (1, 2)] == list(identities.values())
    assert not points[1].cure
    session.close()
