"""The screen of a model in several variants: by batch size, by number of threads, or all combinations side by side."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import Enum
from functools import partial
from itertools import zip_longest
from statistics import median
from typing import Any, NamedTuple

from textual.app import ComposeResult
from textual.containers import Horizontal

from dlbricks_tui.answers.comparisons.named import PairKind
from dlbricks_tui.answers.pairs.estimates import EstimatedSide
from dlbricks_tui.documents.layout import laid_out
from dlbricks_tui.documents.lines import Line, Span, line
from dlbricks_tui.documents.parts import Column, Missing, Part, Sentence
from dlbricks_tui.documents.pictures import Picture
from dlbricks_tui.documents.ranking import (
    ranking_answer,
    ranking_columns,
    ranking_heading,
    ranking_picture,
    ranking_remarks,
)
from dlbricks_tui.documents.variants import (
    curve_answer,
    curve_pictures,
    missing_figures,
    variant_columns,
    variant_name,
    variant_remarks,
    variants_question,
)
from dlbricks_tui.estimate.curve import Point
from dlbricks_tui.estimate.ranking import Ranked, Ranking
from dlbricks_tui.tui.keys import scopes
from dlbricks_tui.tui.keys.keymap import Hint
from dlbricks_tui.tui.marks.marks import ComparableRow
from dlbricks_tui.tui.widgets.panel import TablePanel
from dlbricks_tui.tui.widgets.screens import AnswerScreen
from dlbricks_tui.tui.widgets.text import PictureView, TextLines
from dlbricks_tui.tui.workbench.work import VariantCurve
from dlbricks_tui.wording.numbers import counted, measured_ago

# The bounds to choose from, in milliseconds.
BOUNDS_MS = tuple(step * 10.0**power for power in range(5) for step in (1, 2, 5))


class By(Enum):
    """The ways to look at variants."""

    BATCH = "Batch sizes"
    THREADS = "Threads"
    COMBINATION = "Side by side"


class Readers(NamedTuple):
    """The functions that read variants; they take seconds."""

    batches: Callable[[], VariantCurve]
    threads: Callable[[], VariantCurve]
    combinations: Callable[[], Ranking]


class VariantsScreen(AnswerScreen[bool]):
    """Shows curves of latency and throughput, or all combinations as bars, above their table.

    Returns True if the user wants to measure more of them.
    """

    scope = scopes.VARIANTS
    CSS_PATH = "variants.tcss"
    WRAPS_STATE = True
    WANTS_NEW_RESULTS = True
    WAITS_FOR_RUN = True
    ABOUT = (
        "The open model in several variants. {variants.other_axis} shows the batch sizes on the system and runtime of "
        "the estimate, its numbers of threads, or all combinations of runtime, threads, batch size and precision that "
        "were measured on the system. {variants.measure} measures more. {variants.raise_bound} and "
        "{variants.lower_bound} set a bound of the latency: "
        "the best variant has the highest throughput of those that take at most so long. 'slower' needs p below 0.05 "
        "and a difference of at least 1 %: of the samples (Mann-Whitney test) where both were measured end to end, "
        "else of the 95 % intervals. p is corrected for the number of comparisons."
    )

    def __init__(self, model: str, readers: Readers, by: By = By.BATCH) -> None:
        self._panel = VariantsPanel()
        super().__init__(self._panel)
        self._model = model
        self._readers = readers
        self._by = by
        self._curves: dict[By, VariantCurve] = {}
        self._ranking: Ranking | str | None = None
        self._bound_ms: float | None = None

    def on_mount(self) -> None:
        self._update()

    def look(self) -> None:
        self._curves, self._ranking = {}, None
        self._read()

    def action_other_axis(self) -> None:
        ways = list(By)
        self._by = ways[(ways.index(self._by) + 1) % len(ways)]
        self._update()
        self._read()

    def action_measure(self) -> None:
        self.dismiss(True)

    def action_drop_bound(self) -> None:
        self._bound_ms = None
        self._update()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action in ("step_bound", "drop_bound"):
            return self._by is not By.COMBINATION
        return super().check_action(action, parameters)

    def action_step_bound(self, step: int) -> None:
        if self._bound_ms is None:
            curve = self._curves.get(self._by)
            known = [it.latency_ms for it in (curve.points if curve else ()) if it.latency_ms]
            middle_ms = median(known) if known else BOUNDS_MS[-1]
            self._bound_ms = next((bound for bound in BOUNDS_MS if bound >= middle_ms), BOUNDS_MS[-1])
        else:
            place = BOUNDS_MS.index(self._bound_ms) + step
            self._bound_ms = BOUNDS_MS[min(max(place, 0), len(BOUNDS_MS) - 1)]
        self._update()

    def _read(self) -> None:
        by = self._by
        if by is By.COMBINATION:
            if self._ranking is None:
                self._rank()
        elif by not in self._curves:
            read = self._readers.batches if by is By.BATCH else self._readers.threads
            self.run_in_thread(read, "variants", partial(self._curve_read, by))

    def _rank(self) -> None:
        self.run_in_thread(self._readers.combinations, "variants", self._ranked, self._ranked)

    def _ranked(self, found: Ranking | str) -> None:
        self._ranking = found
        self._take_measured(self._by)
        self._update()

    def _curve_read(self, by: By, found: VariantCurve) -> None:
        self._curves[by] = found
        if not _was_measured(found):
            if self._ranking is None:
                # What other runtimes and formats have measured is worth more than predictions.
                self._rank()
            else:
                self._take_measured(by)
        self._update()

    def _take_measured(self, by: By) -> None:
        """Show the combinations that were measured as the curve, where it has none of them itself."""
        curve = self._curves.get(by)
        if curve is not None and not _was_measured(curve) and isinstance(self._ranking, Ranking):
            points = measured_points(self._ranking, by)
            if points:
                self._curves[by] = curve._replace(points=points)

    def _update(self) -> None:
        if self._by is By.COMBINATION:
            self._panel.show_ranking(self._by.value, self._ranking)
        else:
            self._panel.show_curve(self._by.value, self._curves.get(self._by), self._bound_ms)
        self.head_changed()

    def question(self) -> str:
        return variants_question(self._model)

    def answer(self) -> Iterable[Line]:
        ranking, curve = self._ranking, self._curves.get(self._by)
        if self._by is not By.COMBINATION:
            if curve is not None and curve.points:
                yield line(Span(f" {curve_answer(curve.points, self._bound_ms)}", "strong"))
        elif ranking is not None and not isinstance(ranking, str):
            yield line(Span(f" {ranking_answer(ranking)}", "strong"))
            if len(ranking.combinations) == 1:
                yield Hint(" {variants.measure} measures other runtimes and batch sizes.").line

    def state(self) -> Line:
        if self._by is By.COMBINATION:
            ranking = self._ranking
            return (
                ()
                if ranking is None or isinstance(ranking, str)
                else _told(ranking_heading(ranking), [it.point for it in ranking.combinations])
            )
        curve = self._curves.get(self._by)
        if curve is None:
            return ()
        return line(Span(f" {curve.refusal}", "warn")) if curve.refusal else _told("", curve.points)


def _told(heading: str, points: Sequence[Point]) -> Line:
    """Return what the variants have in common, and how old their measurements are."""
    parts = [it for it in (heading, measured_ago([it.found for it in points])) if it]
    return line(Span(f" {'; '.join(parts)}", "muted")) if parts else ()


def _was_measured(curve: VariantCurve) -> bool:
    return any(it.measured_ms is not None or it.found.estimate.coverage.measured for it in curve.points)


def measured_points(ranking: Ranking, by: By) -> tuple[Point, ...]:
    """Return the measured combinations along an axis, those of a series together; none without two places on it.

    Threads are compared at the smallest batch size that has several numbers of them.
    """
    found = [it.point for it in ranking.combinations if it.comparable.latency and not it.comparable.is_predicted]
    if by is By.THREADS:
        threads: dict[int, set[int | None]] = {}
        for it in found:
            threads.setdefault(it.batch_size, set()).add(it.threads)
        size = min((batch for batch, several in threads.items() if len(several) > 1), default=None)
        found = [it for it in found if it.batch_size == size]
    places = {it.batch_size if by is By.BATCH else it.threads for it in found}
    if len(places) < 2:
        return ()
    order = {(it.runtime, it.precision, it.kernels): place for place, it in reversed([*enumerate(found)])}
    return tuple(
        sorted(
            found,
            key=lambda it: (order[it.runtime, it.precision, it.kernels], it.threads or 0, it.batch_size),
        )
    )


_READING = line(Span("Reading the model in each variant.", "muted"))
_HOW_TO_RUN = Hint("{workbench.start_run} on the workbench runs what is missing", "muted")


class VariantsPanel(TablePanel["Point | Ranked"]):
    """The latency at the left and the throughput at the right, or one picture of all combinations, and a table."""

    ID = "variants"
    TITLE = "Variants"
    ABOUT = (
        "o is estimated and x measured end to end; with several series each has a letter, and capitals are measured. "
        "~ is predicted from other results. The efficiency of threads is the share of the ideal speed-up over the "
        "fewest of them."
    )

    def __init__(self) -> None:
        super().__init__()
        self._second = PictureView()
        self._below = TextLines(self._lines_below, classes="below")
        self._way = ""
        self._columns: tuple[Column[Any], ...] = ()
        self._remarks: tuple[Part, ...] = ()
        self._hints: Sequence[Hint] = ()

    def compose(self) -> ComposeResult:
        with Horizontal(classes="pictures"):
            yield self.picture
            yield self._second
        yield self._heading
        yield self.rows
        yield self._below

    def show_curve(self, way: str, found: VariantCurve | None, bound_ms: float | None) -> None:
        """Show a curve; None while it is being read."""
        points = () if found is None else found.points
        pictures = curve_pictures(points, bound_ms) or ()
        self._show(way, points, variant_columns(points, marked=True), variant_remarks(points), pictures)
        self.show_placeholder(_READING if found is None else line("There is no such variant."))

    def show_ranking(self, way: str, found: Ranking | str | None) -> None:
        """Show all combinations, or the reason why there are none; None while they are being read."""
        if isinstance(found, Ranking):
            pictures = [it for it in [ranking_picture(found)] if it is not None]
            remarks = *ranking_remarks(found), *_left_out(found)
            lacks = any(it.ratio is None or it.comparable.is_predicted for it in found.combinations)
            hints = [_HOW_TO_RUN] * (found.on_this_host and lacks)
            self._show(way, found.combinations, ranking_columns(found), remarks, pictures, hints)
        else:
            self._show(way, (), (), (), ())
            self.show_placeholder(_READING if found is None else line(Span(found, "warn")))

    def columns(self) -> tuple[Column[Any], ...]:
        return self._columns

    def missing(self, item: Point | Ranked) -> Missing | None:
        return missing_figures(_point(item))

    def identity(self, item: Point | Ranked) -> str:
        return variant_name(_point(item))

    def show_counts(self) -> None:
        self.show_title(f": {self._way.lower()}")

    def _show(
        self,
        way: str,
        items: Sequence[Point | Ranked],
        columns: tuple[Column[Any], ...],
        remarks: Iterable[Part],
        pictures: Sequence[Picture],
        hints: Sequence[Hint] = (),
    ) -> None:
        self._way, self._columns, self._remarks, self._hints = way, columns, tuple(remarks), hints
        self.query_one(".pictures").display = bool(pictures)
        for view, picture in zip_longest((self.picture, self._second), pictures):
            view.display = picture is not None
            view.show(picture)
        self._below.display = bool(self._remarks or hints)
        self._below.refresh(layout=True)
        self.show_items(items)

    def _lines_below(self, width: int) -> tuple[Line, ...]:
        lines = *laid_out(self._remarks, width - 1), *(it.line for it in self._hints)
        return tuple((Span(" "), *each) for each in lines)

    def comparable(self, item: Point | Ranked) -> ComparableRow:
        point, timing = _point(item), item.comparable.timing if isinstance(item, Ranked) else None
        side = EstimatedSide(variant_name(point), point.found, timing)
        return ComparableRow(PairKind.VARIANT, (side.name, side.found.way), side.name, side)


def _point(item: Point | Ranked) -> Point:
    return item.point if isinstance(item, Ranked) else item


def _left_out(found: Ranking) -> Iterator[Part]:
    yield from (Sentence(f"left out: {refusal}", "warn") for refusal in found.refusals)
    if found.left_out:
        some = counted(found.left_out, "combination")
        yield Sentence(f"{some} with results of only some layers left out", "muted")
