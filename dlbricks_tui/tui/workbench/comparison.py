"""The box that compares runtimes, threads, batch sizes and precisions of the open model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dlbricks_tui.estimate.ranking import Ranking
from dlbricks_tui.tui.dialogs.dialog import TextDialog
from dlbricks_tui.tui.keys.keymap import Hint
from dlbricks_tui.tui.lines import BLANK, Line, Span, line
from dlbricks_tui.tui.widgets.text import TextView
from dlbricks_tui.wording.numbers import counted
from dlbricks_tui.wording.ranking import ranking_heading, ranking_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


class ComparisonScreen(TextDialog[None]):
    """Shows the combinations of a model that the store knows, the best first."""

    ABOUT = (
        "All combinations of runtime, threads, batch size and precision in which the open model was measured on the "
        "system of the estimate; without any, the usual one is predicted. The end-to-end latency counts, or else the "
        "estimate; over several batch sizes the throughput. 'slower' needs p below 0.05 and a difference of at least "
        "1 %: of the samples (Mann-Whitney test) where both were measured end to end, else of the 95 % intervals. p is "
        "corrected for the number of comparisons."
    )

    def __init__(self, model: str, compare: Callable[[], Ranking | str]) -> None:
        super().__init__()
        self._model = model
        self._compare = compare
        self._found: Ranking | str | None = None

    @property
    def heading(self) -> str:
        return f"Comparison of {self._model}"

    def on_mount(self) -> None:
        self.run_in_thread(self._compare, "comparison", self._show)

    def _show(self, found: Ranking | str) -> None:
        self._found = found
        # The box is as high as its content.
        self.query_one(TextView).remake()
        self.query_one(TextView).refresh(layout=True)

    def paragraphs(self) -> Iterable[Line]:
        found = self._found
        if isinstance(found, Ranking):
            yield from self._rows(found)
        elif found is None:
            yield line(Span("Reading the model as each runtime has it.", "muted"))
        else:
            yield line(Span(found, "warn"))

    def _rows(self, found: Ranking) -> Iterable[Line]:
        yield line(Span(ranking_heading(found), "muted"))
        yield BLANK
        titles, *rows = ranking_lines(found, self.query_one(TextView).scrollable_content_region.width)
        yield line(Span(titles, "heading"))
        best = sum(it.is_best for it in found.combinations)
        for number, text in enumerate(rows):
            yield line(Span(text, "good" if number < best else "text"))
        for refusal in found.refusals:
            yield line(Span(f"left out: {refusal}", "warn"))
        if found.left_out:
            some = counted(found.left_out, "combination")
            yield line(Span(f"{some} with results of only some layers left out", "muted"))
        if found.on_this_host and any(it.ratio is None or it.comparable.is_predicted for it in found.combinations):
            yield Hint("{workbench.start_run} on the workbench runs what is missing", "muted").line
