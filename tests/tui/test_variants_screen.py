"""The screen of the open model in several variants."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dlbricks_tui.api import combinations
from dlbricks_tui.api.new_runs import WantedCombination
from dlbricks_tui.api.open_models import Choices, ModelSpec
from dlbricks_tui.api.session import WorkbenchSession
from dlbricks_tui.bricks.decomposition import decompose
from dlbricks_tui.documents.ranking import cell_parts, matrix_columns, matrix_rows
from dlbricks_tui.errors import UserError
from dlbricks_tui.estimate.ranking import Ranking
from dlbricks_tui.folders import SAMPLE_MODELS, DataFolder
from dlbricks_tui.models.graph import Level
from dlbricks_tui.models.library import Library
from dlbricks_tui.models.loading import Loader
from dlbricks_tui.runtime.registry import Registry
from dlbricks_tui.runtime.traits import Format
from dlbricks_tui.settings.variant import BATCH_SIZES, THREADS_DOUBLED
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.tui.messages import NewResults
from dlbricks_tui.tui.run.boxes import StartRunScreen
from dlbricks_tui.tui.variants import VariantsPanel, VariantsScreen
from dlbricks_tui.tui.widgets.form import FormRows
from dlbricks_tui.tui.workbench.screen import WorkbenchScreen
from tests.documents.test_ranking import FULL, MIXED, ranking_of, with_threads
from tests.estimate.stored import brick_records, model_record
from tests.estimate.test_ranking import timed
from tests.models.table_framework import TableFramework
from tests.store.samples import runtime, system
from tests.tui.application import MEDIUM, NARROW, WIDE, app_on, running, showing
from tests.tui.driving import find, press, screen_text, settled, told
from tests.tui.snapshots import check_each, check_layout, resize

CHOICES = Choices(level=Level.WRITTEN, system="c5.xlarge", runtime="onnxruntime-1.32.0")
Measured = list[list[WantedCombination]]


def screen(*found: Ranking | str, runs: Measured | None = None) -> VariantsScreen:
    """The screen of rankings that are read one after another; a text is a refusal."""

    def read() -> Any:
        for each in found or (FULL,):
            if isinstance(each, str):
                raise UserError(each)
            yield each

    def measure(wanted: Sequence[WantedCombination]) -> None:
        if runs is not None:
            runs.append(list(wanted))

    return VariantsScreen("net", read, measure)


def cells(run: list[WantedCombination]) -> list[tuple[int | None, int, bool]]:
    """The threads and the batch size of each cell of a run, and whether it is measured again."""
    return [(it.variant.threads, it.variant.batch, it.again) for it in run]


async def test_the_matrix_and_the_selected_cell_are_shown_at_every_size(new: DataFolder) -> None:
    async with showing(new, lambda _: screen(), NARROW) as pilot:
        # The figures have the room; there is none for curves.
        shown = screen_text(pilot)
        assert "▸ONNX Runtime        2           all    7.000   12.00  best 20.00  -" in shown
        assert "measured      20.00 ms, 200.0 per second" in shown and "by batch size" not in shown
        check_layout(pilot.app)
        for size in (MEDIUM, WIDE):
            await resize(pilot, size)
            shown = screen_text(pilot)
            assert "ms by batch size" in shown and "ms by threads" in shown
            # Nothing here can be searched.
            assert ": palette" in shown and "/ search" not in shown
            check_layout(pilot.app)
        # A low terminal shows rows below the answer, which would fill it.
        await resize(pilot, (40, 12))
        assert "▸ONNX Runtime" in screen_text(pilot) and "Which runtime" not in screen_text(pilot)
        pilot.app.pop_screen()
        await check_each(pilot, {"variants": (screen, ())})


async def test_keys_move_to_a_cell_switch_the_unit_and_set_a_bound(new: DataFolder) -> None:
    async with showing(new, lambda _: screen()) as pilot:
        await press(pilot, "l", shows=("ONNX Runtime, 2 threads, batch 8", "m measures it."))
        await press(pilot, "right", "k", "h", "h", shows="ONNX Runtime, 1 thread, batch 2")
        await press(pilot, "left", "left", shows=("ONNX Runtime, 1 thread, batch 1", "+80 % slower"))
        assert "Variants: ms" in screen_text(pilot)
        await press(pilot, "u")
        shown = screen_text(pilot)
        assert "Variants: per second" in shown and "best 200.0" in shown and "Per second by batch size" in shown
        await press(pilot, "u", shows="best 20.00")
        # The middle of the latencies is 17 ms.
        await press(pilot, "plus", shows="Under 20 ms: ONNX Runtime, 2 threads, batch 4 is best")
        await press(pilot, "minus")
        shown = screen_text(pilot)
        assert "Under 10 ms: ONNX Runtime, 2 threads, batch 1 is best" in shown and "best 7.000" in shown
        await press(pilot, "n")
        assert "Under" not in screen_text(pilot) and "best 20.00" in screen_text(pilot)
        await press(pilot, *["minus"] * 30, shows="No combination is known to stay under 1 ms.")


async def test_keys_measure_exactly_a_cell_a_row_a_column_or_what_is_marked(new: DataFolder) -> None:
    runs: Measured = []
    async with showing(new, lambda _: screen(runs=runs), WIDE) as pilot:
        await press(pilot, "m", "l", "enter")
        assert [cells(run) for run in runs] == [[(2, 4, True)], [(2, 8, False)]]
        assert runs[0][0].runtime == FULL.combinations[0].point.found.way.runtime
        assert runs[0][0].level is Level.WRITTEN
        runs.clear()
        # What is known is not measured again beside what is missing.
        await press(pilot, "w", "h", "c")
        assert [cells(run) for run in runs] == [
            [(2, size, False) for size in (1, 2, 4, 8)],
            [(threads, 4, False) for threads in (1, 2, 1, 1, 1)],
        ]
        runs.clear()
        await press(pilot, "space", "h", "k", "space", "l", "l", "space", "space", shows="2 marked")
        await press(pilot, "m")
        assert [cells(run) for run in runs] == [[(1, 2, False), (2, 4, False)]]
        assert "marked" not in screen_text(pilot).replace("m measure", "")
        await press(pilot, "a", shows="20 marked")
        await press(pilot, "a")
        assert "marked" not in screen_text(pilot)


async def test_a_best_cell_that_may_be_chance_is_repeated_and_results_of_another_system_are_not_measured_here(
    new: DataFolder,
) -> None:
    few = ranking_of(with_threads(2, timed(8, 70.0)), with_threads(2, timed(4, 37.0, samples=4)))
    runs: Measured = []
    async with showing(new, lambda _: screen(few, runs=runs)) as pilot:
        assert "Repeat: batch 4 may be as fast; m on either measures both again." in screen_text(pilot)
        await press(pilot, "m")
        assert sorted(cells(runs[0])) == [(2, 4, True), (2, 8, True)]
        await press(pilot, "space", "m")
        assert cells(runs[1]) == [(2, 8, True)]
        pilot.app.pop_screen()
        pilot.app.push_screen(screen(replace(FULL, on_this_host=False), runs=runs))
        await settled(pilot)
        await press(pilot, "l")
        assert "m measures it" not in screen_text(pilot)
        await press(pilot, "m")
        assert len(runs) == 2 and told(pilot) == ["These are results of c5.xlarge: measure the model there."]


async def test_refusals_are_said_and_a_matrix_that_was_read_stays(new: DataFolder) -> None:
    async with showing(new, lambda _: screen("the runtime cannot read it")) as pilot:
        assert "the runtime cannot read it" in screen_text(pilot)
        await press(pilot, "m")
        assert told(pilot) == ["There is no cell to measure yet."]
        pilot.app.pop_screen()
        pilot.app.push_screen(screen(FULL, "its file fixes the batch"))
        await settled(pilot)
        assert "best 20.00" in screen_text(pilot)
        pilot.app.pop_screen()
        pilot.app.push_screen(screen(replace(FULL, refusals=("its file fixes the batch",))))
        await settled(pilot)
        await press(pilot, "l", shows="its file fixes the batch")


async def test_predictions_fill_the_matrix_while_the_cursor_stays_and_new_results_are_read(new: DataFolder) -> None:
    read = []

    def steps() -> Any:
        read.append(1)
        yield MIXED
        yield FULL

    async with showing(new, lambda _: VariantsScreen("net", steps, lambda _: None)) as pilot:
        panel = pilot.app.screen.query_one(VariantsPanel)
        # The best of the first step is selected still.
        assert panel.cell is not None and panel.cell[1] == 8
        await press(pilot, "g", "r")
        # The first step has no such row.
        assert "▸ONNX Runtime        1" in screen_text(pilot)
        pilot.app.screen.post_message(NewResults())
        await settled(pilot)
        assert len(read) == 3


async def test_the_box_before_a_run_has_exactly_the_cell(measured: DataFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(combinations, "compare_in_steps", lambda *_: iter((FULL,)))
    async with running(app_on(measured)) as pilot:
        await press(pilot, *find("nosuch"), "V", on=WorkbenchScreen)
        await press(pilot, *find("resnet18_v1"), "enter", "V", on=VariantsScreen)
        await press(pilot, "m", on=StartRunScreen)
        form = pilot.app.screen.query_one(FormRows).form
        assert (form.threads, form.batch, form.again) == ((2,), (4,), True) and "Run resnet18_v1" in screen_text(pilot)
        await press(pilot, "escape", "escape", on=WorkbenchScreen)


def cells_of(ranking: Ranking) -> list[tuple[str, int | None, int]]:
    return [(it.point.runtime, it.point.threads, it.point.batch_size) for it in ranking.combinations]


def read_all(session: WorkbenchSession, spec: ModelSpec, choices: Choices) -> list[Ranking]:
    return list(combinations.compare_in_steps(spec, choices, session.data, lambda: True))


def test_all_cells_are_shown_at_once_and_those_that_were_measured_are_read_first(tmp_path: Path) -> None:
    data = DataFolder(tmp_path / "data")
    (source,) = Library(SAMPLE_MODELS, data.path, Format.ONNX).find("tabular_network")
    at_four = decompose(
        Loader(tmp_path / "cache", TableFramework()).load(source, Level.WRITTEN, batch_size=4), Choices().cutting
    )
    # That of a runtime which is here, so that its other cells are filled.
    identity = Registry(data.path).runtime_for({Format.ONNX}).with_threads(3).identity
    where: dict[str, Any] = {"system": "c5.xlarge", "runtime": identity, "batch_size": 4}
    with ResultsDatabase(data.store) as store:
        described = runtime(identity, framework="onnxruntime")
        store.add(system("c5.xlarge"), described, *brick_records(at_four, **where), model_record(at_four, 2.0, **where))
    session = WorkbenchSession(data, SAMPLE_MODELS)
    spec = ModelSpec(source, Level.WRITTEN, Choices().cutting)
    known, filled = read_all(session, spec, CHOICES)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(combinations, "BATCH_SIZES", (0,))
        (refused,) = read_all(session, spec, CHOICES)
    assert not any(it.combinations for it in combinations.compare_in_steps(spec, CHOICES, session.data, lambda: False))
    session.close()
    measured = [it for it in known.combinations if it.point.latency is not None]
    assert [(it.point.threads, it.point.batch_size) for it in measured] == [(3, 4)]
    # What was measured stays, with the reason why there is no more.
    assert list(refused.combinations) == measured and refused.refusals
    assert set(cells_of(filled)) == set(cells_of(known)) > set(cells_of(refused)) and filled.is_read
    unread = next(row for row in matrix_rows(known) if row.point.threads != 3)
    assert matrix_columns(known)[-1].cell(unread) == "reading" and not known.is_read
    assert "the model is being read in this combination" in str(list(cell_parts(known, unread, 1)))
    assert filled.combinations[0].point.measured_ms == 2.0
    measured = [it for it in filled.combinations if it.point.runtime == known.combinations[0].point.runtime]
    threads = {3, *THREADS_DOUBLED}
    cells = {(it.point.threads, it.point.batch_size) for it in measured}
    assert cells == {(number, size) for number in threads for size in BATCH_SIZES}
