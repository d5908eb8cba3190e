"""The panel of the variants of a model: one or two pictures above a table."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from textual.containers import Horizontal

from dlbricks_tui.answers.pairs.compared import Kind
from dlbricks_tui.answers.pairs.estimates import EstimatedSide
from dlbricks_tui.documents.lines import BLANK, Line, Span, line, wrapped
from dlbricks_tui.documents.variant_curves import curve_pictures
from dlbricks_tui.tui.keys.keymap import Hint
from dlbricks_tui.tui.marks.marks import ComparableRow
from dlbricks_tui.tui.variants.pictures import ranking_picture
from dlbricks_tui.tui.widgets.panel import Panel
from dlbricks_tui.tui.widgets.plot import PictureView
from dlbricks_tui.tui.widgets.rows import LineRows
from dlbricks_tui.wording.checks import combination_words
from dlbricks_tui.wording.curves import curve_table, curve_texts
from dlbricks_tui.wording.numbers import counted
from dlbricks_tui.wording.ranking import ranking_lines, ranking_texts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from textual.app import ComposeResult

    from dlbricks_tui.documents.pictures import Picture
    from dlbricks_tui.estimate.curve import Point
    from dlbricks_tui.estimate.ranking import Ranking
    from dlbricks_tui.tui.workbench.work import VariantCurve
    from dlbricks_tui.wording.text_tables import TextTable

# A line, and the variant that it is about.
_Owned = tuple[EstimatedSide | None, Line]
_READING = line(Span("Reading the model in each variant.", "muted"))


class VariantsPanel(Panel):
    """The latency at the left and the throughput at the right, or one picture of all combinations, and a table."""

    TITLE = "Variants"
    ABOUT = (
        "o is estimated and x measured end to end; with several series each has a letter, and capitals are measured. "
        "~ is predicted from other results. The efficiency of threads is the share of the ideal speed-up over the "
        "fewest of them."
    )

    def __init__(self) -> None:
        self._list = LineRows(self._lines)
        super().__init__(self._list, id="variants")
        self._second = PictureView()
        self._list.stands_for = self._comparable
        self._make: Callable[[int], Iterable[_Owned]] = lambda _: ()
        # The variant that each line is about.
        self._owners: tuple[EstimatedSide | None, ...] = ()
        # The rows of the table as texts; None while there is none.
        self._texts: Callable[[], TextTable] | None = None

    def compose(self) -> ComposeResult:
        with Horizontal(classes="pictures"):
            yield self.picture
            yield self._second
        yield self.rows

    def show_curve(self, title: str, found: VariantCurve | None, bound_ms: float | None) -> None:
        """Show a curve; None while it is being read."""
        drawn = None if found is None else curve_pictures(found.points, bound_ms)
        latencies, throughputs = drawn or (None, None)
        self._show(title, latencies, throughputs, lambda width: () if found is None else _curve_lines(found, width))
        self._texts = None if found is None else partial(curve_texts, found.points)
        self.show_placeholder(_READING if found is None else line("There is no such variant."))

    def show_ranking(self, title: str, found: Ranking | str | None) -> None:
        """Show all combinations, or the reason why there are none; None while they are being read."""
        self._texts = None if found is None or isinstance(found, str) else partial(ranking_texts, found)
        if isinstance(found, str):
            refusal = line(Span(found, "warn"))
            self._show(title, None, None, lambda _: ((None, refusal),))
        elif found is None:
            self._show(title, None, None, lambda _: ())
        else:
            ranking = found
            self._show(title, ranking_picture(ranking), None, lambda width: _ranking_lines(ranking, width))
        self.show_placeholder(_READING)

    def as_texts(self) -> TextTable:
        return super().as_texts() if self._texts is None else self._texts()

    def _show(
        self, title: str, first: Picture | None, second: Picture | None, make: Callable[[int], Iterable[_Owned]]
    ) -> None:
        self.show_title(f": {title.lower()}")
        self.query_one(".pictures").display = first is not None
        self.picture.display, self._second.display = first is not None, second is not None
        self.picture.show(first)
        self._second.show(second)
        self._make = make
        self._list.remake()

    def _lines(self, width: int) -> Iterable[Line]:
        made = [(owner, each) for owner, long in self._make(width) for each in wrapped(long, width)]
        self._owners = tuple(owner for owner, _ in made)
        return [each for _, each in made]

    def _comparable(self, index: int) -> ComparableRow | None:
        side = self._owners[index] if index < len(self._owners) else None
        return None if side is None else ComparableRow(Kind.VARIANT, (side.name, side.found.way), side.name, side)


def _curve_lines(found: VariantCurve, width: int) -> Iterator[_Owned]:
    titles, *rows = curve_table(found.points, width, marked=True)
    yield None, line(Span(titles, "heading"))
    sides = [EstimatedSide(_variant_name(it), it.found) for it in found.points]
    for side, text in _owned(sides, found.points, rows):
        yield side, line(text)


def _ranking_lines(found: Ranking, width: int) -> Iterator[_Owned]:
    titles, *rows = ranking_lines(found, width)
    yield None, line(Span(titles, "heading"))
    best = sum(it.is_best for it in found.combinations)
    points = [it.point for it in found.combinations]
    sides = [
        EstimatedSide(_variant_name(it.point), it.point.found, it.comparable.samples_ms) for it in found.combinations
    ]
    for number, (side, text) in enumerate(_owned(sides, points, rows)):
        yield side, line(Span(text, "good" if number < best else "text")) if text else BLANK
    for refusal in found.refusals:
        yield None, line(Span(f"left out: {refusal}", "warn"))
    if found.left_out:
        some = counted(found.left_out, "combination")
        yield None, line(Span(f"{some} with results of only some layers left out", "muted"))
    if found.on_this_host and any(it.ratio is None or it.comparable.is_predicted for it in found.combinations):
        yield None, Hint("{workbench.start_run} on the workbench runs what is missing", "muted").line


def _variant_name(point: Point) -> str:
    # The usual number of threads may be that of another row.
    variant = replace(point.found.variant, threads=point.threads)
    framework = point.runtime or point.found.way.runtime.partition("-")[0]
    return combination_words(framework, variant, point.found.estimate.level)


def _owned(
    sides: Sequence[EstimatedSide], points: Sequence[Point], rows: Sequence[str]
) -> Iterator[tuple[EstimatedSide | None, str]]:
    """Yield the lines of a table with the variant of each; what follows the table has none."""
    following = iter(rows)
    left = len(rows)
    for side, point in zip(sides, points, strict=True):
        yield side, next(following)
        left -= 1
        # What measures it may be in a line of its own.
        if left and point.cure and rows[-left] == f"  {point.cure}":
            yield side, next(following)
            left -= 1
    for text in following:
        yield None, text
