"""The screen of the open model in several variants."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from dlbricks_tui.bricks.decomposition import decompose
from dlbricks_tui.errors import UserError
from dlbricks_tui.estimate.ranking import Ranking
from dlbricks_tui.estimate.system_estimate import SystemEstimate
from dlbricks_tui.folders import SAMPLE_MODELS, DataFolder
from dlbricks_tui.models.graph import Level
from dlbricks_tui.models.library import Library
from dlbricks_tui.models.loading import Loader
from dlbricks_tui.runtime.traits import Format
from dlbricks_tui.settings.variant import BATCH_SIZES
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.tui.choices import Choices
from dlbricks_tui.tui.messages import NewResults
from dlbricks_tui.tui.open_model import ModelSpec
from dlbricks_tui.tui.session import Session
from dlbricks_tui.tui.variants.screen import By, Readers, VariantsScreen
from dlbricks_tui.tui.widgets.form import FormRows
from dlbricks_tui.tui.workbench.work import VariantCurve, read_batch_curve, read_thread_curve
from tests.documents.test_ranking import MIXED
from tests.estimate.stored import brick_records, model_record
from tests.estimate.test_curve import point
from tests.models.table_framework import TableFramework
from tests.store.samples import runtime, system
from tests.tui.application import NARROW, WIDE, app_on, press, running, screen_text, settled, showing
from tests.tui.snapshots import check_each, check_layout, resize
from tests.tui.test_suites import words

MEASURED = VariantCurve(tuple(point(size, 9.0 + 6 * size if size != 16 else None) for size in BATCH_SIZES))
REFUSED = MEASURED._replace(refusal="its file fixes the batch")
BY_THREADS = VariantCurve((point(1, 20.0, 1), point(1, 12.5, 2), point(1, None, 4)))
CHOICES = Choices(level=Level.WRITTEN, system="c5.xlarge", runtime="onnxruntime-1.32.0")


def screen(
    batches: VariantCurve = MEASURED, ranking: Ranking | str = "nothing to compare", by: By = By.BATCH
) -> VariantsScreen:
    def combinations() -> Ranking:
        if isinstance(ranking, str):
            raise UserError(ranking)
        return ranking

    return VariantsScreen("net", Readers(lambda: batches, lambda: BY_THREADS, combinations), by)


def _predicted(found: SystemEstimate) -> SystemEstimate:
    coverage = replace(found.estimate.coverage, measured=0, predicted=1)
    return replace(found, end_to_end=None, estimate=replace(found.estimate, coverage=coverage))


async def test_curves_and_combinations_are_drawn_with_reasons_for_what_is_missing(new: DataFolder) -> None:
    async with showing(new, lambda _: screen(REFUSED), NARROW) as pilot:
        shown = screen_text(pilot)
        for words in ("ms by batch size", "x measured", "its file fixes the batch", "batch  estimate"):
            assert words in shown
        check_layout(pilot.app)
        pilot.app.pop_screen()
        await check_each(
            pilot,
            {
                "variants": (screen, ()),
                "variants-side-by-side": (lambda: screen(ranking=MIXED, by=By.COMBINATION), ()),
            },
        )
        await resize(pilot, WIDE)
        # Where nothing of a curve was measured, the combinations that were are drawn.
        predicted = VariantCurve(tuple(replace(it, found=_predicted(it.found)) for it in MEASURED.points[:2]))
        left_out = replace(MIXED, left_out=2, refusals=("its file fixes the batch",))
        cases: tuple[tuple[VariantsScreen, tuple[str, ...]], ...] = (
            # Each runtime is a series, whose mark the table repeats.
            (
                screen(predicted, MIXED),
                ("A onnxruntime", "B openvino", "mark  runtime", "Least latency: batch 1, onnxruntime, 10.00 ms"),
            ),
            (
                screen(ranking=left_out, by=By.COMBINATION),
                ("left out: its file fixes the batch", "2 combinations with results of only some layers left out"),
            ),
            (screen(ranking="the runtime cannot read it", by=By.COMBINATION), ("the runtime cannot read it",)),
        )
        for shown_screen, words_of in cases:
            pilot.app.push_screen(shown_screen)
            await settled(pilot)
            assert [it for it in words_of if it not in screen_text(pilot)] == []
            pilot.app.pop_screen()


async def test_keys_choose_what_varies_and_a_bound_and_read_new_results(new: DataFolder) -> None:
    read = []

    def batches() -> VariantCurve:
        read.append("batches")
        return MEASURED

    readers = Readers(batches, lambda: BY_THREADS, lambda: MIXED)
    async with showing(new, lambda _: VariantsScreen("net", readers), WIDE) as pilot:
        shown = screen_text(pilot)
        assert "Which runtime, batch size and number of threads suit net?" in shown
        assert "Least latency: batch 1, 15.00 ms, 66.67 per second. Highest throughput: batch 32, " in shown
        assert "batch 1 to 32: 15.00 to 201.0 ms" in shown and "+ higher bound" in shown
        # The middle of the measured latencies is 33 ms.
        await press(pilot, "plus")
        shown = screen_text(pilot)
        assert "Best under 50 ms: batch 4, 33.00 ms, 121.2 per second." in shown and "─ bound 50 ms" in shown
        await press(pilot, "plus")
        assert "Best under 100 ms: batch 8" in screen_text(pilot)
        await press(pilot, "minus", "minus")
        assert "Best under 20 ms: batch 1" in screen_text(pilot)
        await press(pilot, "n")
        assert "est under" not in screen_text(pilot) and "bound 50 ms" not in screen_text(pilot)

        await press(pilot, "x")
        shown = screen_text(pilot)
        assert "Variants: threads" in shown and "ms by threads" in shown and "efficiency" in shown
        assert "2 threads: 12.50 ms, 80.00 per second, 1.60 times as fast as 1 thread." in shown
        assert "not measured: dlbricks run net" in shown
        await press(pilot, "x")
        shown = screen_text(pilot)
        assert "Variants: side by side" in shown and "onnxruntime, batch 8 is best: 70.00 ms, 114.3 per second" in shown
        assert "of 3 others 1 slower by up to 14 %, 1 same, 1 unknown" in shown
        rows = [row for row in shown.splitlines() if "┤" in row]
        assert ["best" in rows[0], "same" in rows[1], "slower" in rows[2], "unknown" in rows[3]] == [True] * 4
        assert rows[0].count("█") > rows[2].count("█") > 0
        assert "+ higher bound" not in shown
        await press(pilot, "x")
        assert "Variants: batch sizes" in screen_text(pilot)

        before = len(read)
        await press(pilot, "r")
        pilot.app.screen.post_message(NewResults())
        await settled(pilot)
        assert len(read) == before + 2


async def test_keys_open_the_variants_of_the_open_model_and_measure_others(measured: DataFolder) -> None:
    async with running(app_on(measured)) as pilot:
        await press(pilot, "slash", '"nosuch"', "enter", "b", "v")
        assert not isinstance(pilot.app.screen, VariantsScreen)
        await press(pilot, "slash", "ctrl+u", '"resnet18_v1"', "enter", "enter", "v")
        shown = screen_text(pilot)
        assert "Variants: side by side" in shown and "against best" not in shown
        assert "2 threads, batch 1, f32, written layers" in shown
        (row,) = [line for line in shown.splitlines() if "mxnet    " in line]
        assert row.count("ms") == 2 and "68.70" in row
        # Neither the picture nor the rows compare a single combination with anything.
        assert "Only mxnet was measured: 14.56 ms" in shown
        assert "best" not in shown.replace("batch size", "").lower() and "1 combination: 14.56 ms." in shown
        assert "m measures other runtimes and batch sizes." in shown
        await press(pilot, "m")
        shown = screen_text(pilot)
        assert "Run resnet18_v1" in shown and "batch           1,2,4,8 " in shown
        chosen = pilot.app.screen.query_one(FormRows).form
        assert chosen.runtime == chosen.registered and len(chosen.registered) > 1
        # The other batch sizes were not read yet: the time is that of the open one.
        told = words(pilot)
        assert "whole models to time, about" in told and "A guess: not all formats" in told
        assert "unknown" not in told

        await press(pilot, "escape", "escape", "1", "slash", "ctrl+u", '"alexnet"', "enter", "enter", "b")
        assert isinstance(pilot.app.screen, VariantsScreen)
        assert "suit alexnet?" in screen_text(pilot) and "Variants: batch sizes" in screen_text(pilot)
        await press(pilot, "escape")
        assert not isinstance(pilot.app.screen, VariantsScreen)
        await press(pilot, "v")
        shown = screen_text(pilot)
        assert "mxnet    ~" in shown
        assert "~ not all measured: the latency of some layers is predicted" in shown
        assert "r on the workbench runs what is missing" in shown


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
        found = session.estimator.answer(source, choices, lambda _: decomposition).found
        assert found.way.runtime == wanted
        assert (found.per_second is None) == (not wanted)
    # A runtime that was chosen has its own threads.
    chosen = replace(CHOICES, runtime=identities[1])
    found = session.estimator.answer(source, chosen, lambda _: decomposition).found
    assert (found.variant.threads, found.variant.batch) == (1, 4)
    spec = ModelSpec(source, Level.WRITTEN, Choices().cutting, batch_size=4)
    points = {it.threads: it for it in read_thread_curve(session, spec, CHOICES).points}
    assert points.keys() >= {1, 2}
    assert [points[threads].found.way.runtime for threads in (1, 2)] == list(identities.values())
    assert not points[1].cure
    session.close()
