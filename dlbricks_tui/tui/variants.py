"""The screen of a model in several variants: a matrix of runtime, threads and batch size, and what a cell says."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import zip_longest
from operator import attrgetter
from statistics import median
from typing import TYPE_CHECKING, Any

from textual.app import ComposeResult
from textual.containers import Horizontal

from dlbricks_tui.api.new_runs import WantedCombination
from dlbricks_tui.api.open_models import ComparableRow, PairKind
from dlbricks_tui.api.pairs import EstimatedSide
from dlbricks_tui.documents.layout import laid_out
from dlbricks_tui.documents.lines import Line, Span, line
from dlbricks_tui.documents.parts import Column
from dlbricks_tui.documents.pictures import Picture
from dlbricks_tui.documents.ranking import (
    MatrixRow,
    batch_sizes,
    cell_parts,
    cell_style,
    column_points,
    common_words,
    figure_remarks,
    matrix_columns,
    matrix_rows,
    ranking_answer,
    repeat_sentence,
    row_key,
    row_points,
)
from dlbricks_tui.documents.variants import curve_pictures, variant_name, variants_question
from dlbricks_tui.tui import messages
from dlbricks_tui.tui.keys import scopes
from dlbricks_tui.tui.keys.keymap import Hint, key
from dlbricks_tui.tui.widgets.panel import TablePanel, TableRows, marks_text
from dlbricks_tui.tui.widgets.rows import TWO
from dlbricks_tui.tui.widgets.screens import AnswerScreen
from dlbricks_tui.tui.widgets.text import CURSOR, CURSOR_ELSEWHERE, PictureView, TextLines
from dlbricks_tui.wording.numbers import measured_ago

if TYPE_CHECKING:
    from dlbricks_tui.estimate.ranking import Ranking

# The bounds to choose from, in milliseconds.
BOUNDS_MS = tuple(step * 10.0**power for power in range(5) for step in (1, 2, 5))
# Smaller pictures would be sentences, which the lines above them say better.
_LEAST_PICTURE = 8
_OTHERS = Hint(
    " {variants.measure_column} measures the other runtimes and threads, {variants.measure_row} the other batch sizes."
)
_NOTHING = Hint(
    " Nothing was measured yet: {variants.measure} measures the cell, {variants.measure_row} its row,"
    " {variants.measure_column} its column."
)
_TO_MEASURE = Hint("{variants.measure} measures it.", "muted")
# A row by its key, and a batch size.
Cell = tuple[tuple[str, ...], int]


class VariantsScreen(AnswerScreen[None]):
    """Shows the matrix of a model, and measures its cells."""

    scope = scopes.VARIANTS
    CSS = """
    /* The pictures stand side by side below the matrix, in the room that it leaves. */
    VariantsScreen .panels { grid-size: 1 1; }
    VariantsPanel RowsView { max-height: 60%; }
    VariantsPanel .pictures { height: 1fr; }
    VariantsPanel .picture { height: 100%; }
    VariantsPanel .below { height: auto; }
    """
    WRAPS_STATE = True
    WANTS_NEW_RESULTS = True
    WAITS_FOR_RUN = True
    ABOUT = (
        "The open model by runtime, threads and batch size. The best cell has the highest measured throughput. "
        "{variants.measure} measures the marked cells, or else the selected one; {variants.measure_row} measures its "
        "row, {variants.measure_column} its column. {variants.raise_bound} and {variants.lower_bound} set a bound of "
        "the latency, which the best cell has to keep. 'slower' needs p below 0.035 and a difference of at least 3 %: "
        "of the samples (Mann-Whitney test) where both were measured end to end, else of the 95 % intervals. p is "
        "corrected for the number of comparisons. Repeat: samples or processes are too few, or differ too much, to "
        "tell the best from the next one."
    )

    def __init__(
        self,
        model: str,
        read: Callable[[], Iterable[Ranking]],
        measure: Callable[[Sequence[WantedCombination]], object],
    ) -> None:
        """`read` yields the matrix, better ones last; `measure` starts runs of exactly these combinations."""
        self._panel = VariantsPanel()
        super().__init__(self._panel)
        self._model = model
        self._read = read
        self._measure = measure
        self._refusal = ""
        # Without a bound.
        self._found: Ranking | None = None
        self._bound_ms: float | None = None

    def look(self) -> None:
        # Later only the last step is shown: cells that vanish for a moment would take the cursor with them.
        read = self._read if self._found is None else lambda: list(self._read())[-1:]
        self.run_steps_in_thread(read, "variants", self._take, self._take)

    def _take(self, found: Ranking | str) -> None:
        self._refusal = found if isinstance(found, str) else ""
        if not isinstance(found, str):
            self._found = found
        self._update()

    def _update(self) -> None:
        if self._found is not None:
            self._panel.show_matrix(self._found.within(self._bound_ms), self._bound_ms)
        self.head_changed()

    def action_other_unit(self) -> None:
        self._panel.by_rate = not self._panel.by_rate
        self._update()

    def action_step_batch(self, step: int) -> None:
        self._panel.step_batch(step)

    def compare_marked(self) -> bool:
        panel = self._panel
        cells = panel.marked
        if len(cells) == 1 and panel.cell is not None and panel.cell not in cells:
            cells = [*cells, panel.cell]
        rows = [row for row in map(panel.comparable_cell, cells) if row is not None]
        if len(cells) == len(rows) == TWO:
            self.post_message(messages.ComparisonWanted(tuple(rows)))
        else:
            self.notify(f"Mark two cells that have a latency with {key('app.mark')}, to compare them.")
        return True

    def action_mark_all(self) -> None:
        self._panel.mark_cells({(row.key, size) for row in self._panel.items for size in self._panel.shown_sizes})

    def action_measure(self) -> None:
        """Measure the marked cells, or the selected one; with it the one that may be as fast as the best."""
        panel, ranking = self._panel, self._panel.ranking
        cells = panel.marked or ([] if panel.cell is None else [panel.cell])
        if ranking is not None and ranking.rival is not None and not panel.marked:
            undecided = [(row_key(it.point), it.point.batch_size) for it in (ranking.combinations[0], ranking.rival)]
            cells = undecided if panel.cell in undecided else cells
        self._measure_cells(cells)

    def action_measure_row(self) -> None:
        cell = self._panel.cell
        self._measure_cells([(cell[0], size) for size in self._panel.shown_sizes] if cell else [])

    def action_measure_column(self) -> None:
        cell = self._panel.cell
        self._measure_cells([(row.key, cell[1]) for row in self._panel.items] if cell else [])

    def _measure_cells(self, cells: Sequence[Cell]) -> None:
        ranking = self._panel.ranking
        if ranking is None or not cells:
            self.notify("There is no cell to measure yet.")
        elif not ranking.on_this_host:
            self.notify(f"These are results of {ranking.system}: measure the model there.")
        else:
            found = [self._panel.combination(cell) for cell in cells]
            # Cells that lack nothing are measured again, unless others are missing.
            again = all(it.again for it in found)
            self._measure([it._replace(again=again) for it in found])
            self._panel.mark_cells(set(self._panel.marked))

    def action_drop_bound(self) -> None:
        self._bound_ms = None
        self._update()

    def action_step_bound(self, step: int) -> None:
        if self._bound_ms is None:
            combinations = () if self._found is None else self._found.combinations
            known = [it.point.latency_ms for it in combinations if it.point.latency_ms]
            middle_ms = median(known) if known else BOUNDS_MS[-1]
            self._bound_ms = next((bound for bound in BOUNDS_MS if bound >= middle_ms), BOUNDS_MS[-1])
        else:
            place = BOUNDS_MS.index(self._bound_ms) + step
            self._bound_ms = BOUNDS_MS[min(max(place, 0), len(BOUNDS_MS) - 1)]
        self._update()

    def question(self) -> str:
        return variants_question(self._model)

    def answer(self) -> Iterable[Line]:
        ranking = self._panel.ranking
        if ranking is None:
            return
        measured = sum(it.point.measured_ms is not None for it in ranking.combinations)
        if ranking.on_this_host and not measured:
            yield _NOTHING.line
        yield line(Span(f" {ranking_answer(ranking, self._bound_ms)}", "strong"))
        if repeat := repeat_sentence(ranking):
            yield line(Span(f" {repeat}", "warn"), *Hint(" {variants.measure} on either measures both again.").line)
        elif ranking.on_this_host and measured == 1:
            yield _OTHERS.line

    def state(self) -> Line:
        ranking = self._panel.ranking
        if ranking is None:
            return line(Span(f" {self._refusal}", "warn")) if self._refusal else ()
        told = common_words(ranking), measured_ago([it.point.found for it in ranking.combinations])
        return line(Span(f" {'; '.join(filter(None, told))}", "muted"))


class _CellRows(TableRows[MatrixRow]):
    """Rows of which only the selected cell has the colours of the cursor."""

    COLOURS_CURSOR = False


class VariantsPanel(TablePanel[MatrixRow]):
    """The matrix, the selected cell in words, and its row and its column as curves."""

    TITLE = "Variants"
    ROWS = _CellRows
    IDENTITY = attrgetter("key")
    PLACEHOLDER = (Hint("Reading the model in each variant.", "muted"),)
    ABOUT = (
        "Rows are runtimes and threads, columns are batch sizes. Plain figures are measured end to end, or estimated "
        "from bricks, as the lines below say; ~ is predicted from other results, and - is not known. In the curves, o "
        "is estimated and x measured end to end; with several series each has a letter, and capitals are measured."
    )

    def __init__(self) -> None:
        super().__init__()
        self.ranking: Ranking | None = None
        self.by_rate = False
        self._bound_ms: float | None = None
        self._batch = 1
        self._marks: set[Cell] = set()
        self._second = PictureView()
        self._below = TextLines(self._lines_below, classes="below")

    def compose(self) -> ComposeResult:
        yield self._heading
        yield self.rows
        yield self._below
        with Horizontal(classes="pictures"):
            yield self.picture
            yield self._second

    def show_matrix(self, ranking: Ranking, bound_ms: float | None) -> None:
        """Show a matrix; the cursor stays on its row, or else goes to the best cell."""
        here, rows = self.cell, matrix_rows(ranking)
        self.ranking, self._bound_ms = ranking, bound_ms
        self._marks &= {(row.key, size) for row in rows for size in batch_sizes(ranking)}
        self.rows.styles.height = max(1, len(rows))
        self.show_items(rows)
        # A row has another name where others have come beside it.
        if ranking.combinations and (here is None or here[0] not in {row.key for row in rows}):
            best = ranking.combinations[0]
            self._batch = best.point.batch_size
            self.select(row_key(best.point))
        self.cursor_settled()

    @property
    def shown_sizes(self) -> tuple[int, ...]:
        """The batch sizes that have room."""
        if self.ranking is None:
            return ()
        sizes, layout = batch_sizes(self.ranking), self._laid_out(self.rows.line_width - 1)
        first = len(self.columns()) - len(sizes)
        return tuple(size for at, size in enumerate(sizes, first) if layout.shows(at))

    @property
    def cell(self) -> Cell | None:
        """The selected cell."""
        return None if self.selected is None else (self.selected.key, self._selected_size)

    @property
    def _selected_size(self) -> int:
        sizes = self.shown_sizes
        return min(sizes, key=lambda size: (abs(size - self._batch), size), default=self._batch)

    def step_batch(self, step: int) -> None:
        """Go to the next batch size that has room."""
        sizes = self.shown_sizes
        if sizes:
            place = sizes.index(self._selected_size) + step
            self._batch = sizes[min(max(place, 0), len(sizes) - 1)]
            self.rows.refresh()
            self.cursor_settled()

    @property
    def marked(self) -> list[Cell]:
        """The marked cells, row by row."""
        sizes = batch_sizes(self.ranking) if self.ranking else ()
        return [cell for row in self.items for size in sizes if (cell := (row.key, size)) in self._marks]

    def mark(self) -> bool:
        if self.cell is not None:
            self.mark_cells({self.cell})
        return True

    def mark_cells(self, cells: set[Cell]) -> None:
        """Mark these cells, or unmark them if all of them are marked."""
        self._marks = self._marks - cells if cells <= self._marks else self._marks | cells
        self.border_subtitle = marks_text(len(self._marks), len(self._marks))
        self.rows.refresh()

    def combination(self, cell: Cell) -> WantedCombination:
        """Return what is measured for a cell."""
        key, size = cell
        row = next(it for it in self.items if it.key == key)
        point, it = row.point, row.cells.get(size)
        variant = replace(point.found.variant, threads=point.threads, batch=size)
        return WantedCombination(
            point.found.way.runtime,
            variant,
            point.found.estimate.level,
            again=it is not None and it.point.measured_ms is not None,
        )

    def columns(self) -> tuple[Column[Any], ...]:
        return () if self.ranking is None else matrix_columns(self.ranking, by_rate=self.by_rate, style=self._style)

    def _style(self, row: MatrixRow, size: int) -> str:
        cell = row.key, size
        if row is self.selected and size == self._selected_size:
            return CURSOR if self.rows.has_focus else CURSOR_ELSEWHERE
        return "match" if cell in self._marks else cell_style(row, size)

    def show_counts(self) -> None:
        self.show_title(": per second" if self.by_rate else ": ms per batch")

    def cursor_settled(self) -> None:
        """Show the selected cell in words, and its row and column as curves."""
        row, pictures = self.selected, list[Picture]()
        if row is not None:
            for points in (row_points(row), column_points(self.items, self._selected_size)):
                pictures += (curve_pictures(points, self._bound_ms) or ())[self.by_rate :][:1]
        room = self.size.height - self.rows.size.height - len(self._lines_below(self.size.width))
        self.query_one(".pictures").display = bool(pictures) and room > _LEAST_PICTURE
        for view, picture in zip_longest((self.picture, self._second), pictures):
            view.display = picture is not None
            view.show(picture)
        self._below.refresh(layout=True)

    on_resize = cursor_settled

    def _lines_below(self, width: int) -> tuple[Line, ...]:
        row, ranking = self.selected, self.ranking
        if row is None or ranking is None:
            return ()
        it = row.cells.get(self._selected_size)
        lacks = ranking.on_this_host and (it is None or it.point.measured_ms is None)
        cell = cell_parts(ranking, row, self._selected_size, self._bound_ms)
        parts = *cell, *[_TO_MEASURE] * lacks, *figure_remarks(ranking)
        return tuple((Span(" "), *each) for each in laid_out(parts, width - 1))

    def comparable_cell(self, cell: Cell) -> ComparableRow | None:
        """Return what a cell stands for when it is compared; None for one without a latency."""
        key, size = cell
        it = next(row for row in self.items if row.key == key).cells.get(size)
        if it is None:
            return None
        side = EstimatedSide(variant_name(it.point), it.point.found, it.point.found.timing)
        return ComparableRow(PairKind.VARIANT, (side.name, side.found.way), side.name, side)
