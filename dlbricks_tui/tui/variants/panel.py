"""The panel of the variants of a model: one or two pictures above a table."""

from __future__ import annotations

from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from textual.containers import Horizontal

from dlbricks_tui.answers.pairs.compared import Kind
from dlbricks_tui.answers.pairs.estimates import EstimatedSide
from dlbricks_tui.documents.layout import laid_out
from dlbricks_tui.documents.lines import Line, Span, line
from dlbricks_tui.documents.parts import Sentence
from dlbricks_tui.documents.ranking import ranking_columns, ranking_picture, ranking_remarks
from dlbricks_tui.documents.variants import (
    curve_pictures,
    missing_figures,
    variant_columns,
    variant_name,
    variant_remarks,
)
from dlbricks_tui.estimate.ranking import Ranked, Ranking
from dlbricks_tui.tui.keys.keymap import Hint
from dlbricks_tui.tui.marks.marks import ComparableRow
from dlbricks_tui.tui.widgets.plot import PictureView
from dlbricks_tui.tui.widgets.table import TablePanel
from dlbricks_tui.tui.widgets.text import TextLines
from dlbricks_tui.wording.numbers import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from textual.app import ComposeResult

    from dlbricks_tui.documents.parts import Column, Missing, Part
    from dlbricks_tui.documents.pictures import Picture
    from dlbricks_tui.estimate.curve import Point
    from dlbricks_tui.tui.workbench.work import VariantCurve

_READING = line(Span("Reading the model in each variant.", "muted"))
_HOW_TO_RUN = Hint("{workbench.start_run} on the workbench runs what is missing", "muted")


class VariantsPanel(TablePanel["Point | Ranked"]):
    """The latency at the left and the throughput at the right, or one picture of all combinations, and a table."""

    TITLE = "Variants"
    ABOUT = (
        "o is estimated and x measured end to end; with several series each has a letter, and capitals are measured. "
        "~ is predicted from other results. The efficiency of threads is the share of the ideal speed-up over the "
        "fewest of them."
    )

    def __init__(self) -> None:
        super().__init__(id="variants")
        self._second = PictureView()
        self._below = TextLines(self._lines_below, classes="below")
        self.rows.stands_for = self._comparable
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

    def _comparable(self, index: int) -> ComparableRow | None:
        if index >= len(self.found):
            return None
        item = self.found[index]
        point, samples_ms = _point(item), item.comparable.samples_ms if isinstance(item, Ranked) else ()
        side = EstimatedSide(variant_name(point), point.found, samples_ms)
        return ComparableRow(Kind.VARIANT, (side.name, side.found.way), side.name, side)


def _point(item: Point | Ranked) -> Point:
    return item.point if isinstance(item, Ranked) else item


def _left_out(found: Ranking) -> Iterator[Part]:
    yield from (Sentence(f"left out: {refusal}", "warn") for refusal in found.refusals)
    if found.left_out:
        some = counted(found.left_out, "combination")
        yield Sentence(f"{some} with results of only some layers left out", "muted")
