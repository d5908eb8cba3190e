"""The screen that compares the two marked rows: the verdict, both latencies, what differs most, and what else."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from dlbricks_tui.api.open_models import ComparableRow
from dlbricks_tui.api.pairs import ComparedPart, ComparedTwo, compare_rows
from dlbricks_tui.api.session import WorkbenchSession
from dlbricks_tui.documents.comparison import (
    answer_words,
    difference_parts,
    latencies_picture,
    part_columns,
    question_words,
    side_parts,
    verdict_words,
)
from dlbricks_tui.documents.lines import Line, Span, line
from dlbricks_tui.documents.parts import Column
from dlbricks_tui.tui.keys import scopes
from dlbricks_tui.tui.keys.keymap import Hint, key
from dlbricks_tui.tui.widgets.panel import DocumentPanel, Orders, TablePanel, counts_text
from dlbricks_tui.tui.widgets.screens import AnswerScreen
from dlbricks_tui.wording.answers import verdict_counts

if TYPE_CHECKING:
    from dlbricks_tui.api.estimating import Answer
    from dlbricks_tui.models.library import ModelSource


class PartsPanel(TablePanel["ComparedPart"]):
    """The parts of both, the largest difference first, below both latencies as a picture."""

    scope = scopes.PAIRS
    TITLE = "Differences"
    SEARCH_HINT = "operator, shape, model, or: slower"
    PICTURED = True
    ORDERS: ClassVar[Orders] = {
        # As they are found: the significant ones first.
        "difference": lambda _: 0,
        "change": lambda it: (-abs(it.change or 0.0), it.name),
        "name": lambda it: it.name,
    }
    PLACEHOLDER = (Hint("Comparing.", "muted"),)
    ABOUT = (
        "The bricks that A and B have in common, or the kinds of layers where they have few in common: the time of "
        "each in A and in B, the difference, and the change. Those with the largest difference come first. 'slower' "
        "and 'faster' are significant after a correction for the number of bricks; 'same' is within 3 %."
    )

    def __init__(self) -> None:
        super().__init__()
        self._found: ComparedTwo | None = None

    def columns(self) -> tuple[Column[ComparedPart], ...]:
        return () if self._found is None else part_columns(self._found)

    def show(self, found: ComparedTwo | str) -> None:
        if isinstance(found, str):
            self.show_picture(None)
            self.show_placeholder(line("There is nothing to show: mark two others."))
            self.show_items(())
            return
        self._found = found
        self.show_picture(latencies_picture(found))
        self.show_placeholder(line("They have no bricks in common to compare."))
        self.show_items(found.parts)
        self.border_subtitle = verdict_counts([it.verdict for it in found.parts if it.verdict is not None])

    def show_counts(self) -> None:
        self.show_title(f" {counts_text(len(self.found), len(self.items))}, by {self.order}" if self.items else "")

    def searched(self, item: ComparedPart) -> str:
        return f"{item.name} {verdict_words(item)}"


class CircumstancesPanel(DocumentPanel):
    """Both sides, what else differs between them, and remarks."""

    TITLE = "What else differs"
    ABOUT = (
        "A and B with their latencies, 95 % intervals and ages, the circumstances in which they differ, such as the "
        "version of the runtime, and what to know before you trust the comparison."
    )


class MarkedScreen(AnswerScreen[None]):
    """Compares A with B in a thread."""

    scope = scopes.MARKED
    CSS = """
    /* The circumstances are short: they stand beside the differences where there is room. */
    MarkedScreen.-medium .panels, MarkedScreen.-wide .panels { grid-size: 2 1; grid-columns: 3fr 2fr; }
    MarkedScreen .picture { height: 1.25fr; }
    """
    WANTS_NEW_RESULTS = True
    WAITS_FOR_RUN = True
    ABOUT = (
        "A and B: the two marked rows, or the kept results and those that were compared with them. Models and "
        "variants are compared by their end-to-end latencies where both have one, else by their estimates; systems, "
        "runs and results by the models and bricks that both have measured. A difference counts from 3 % on for "
        "models and from 1 % on for bricks. With fewer than 3 processes on a side, it counts from 10 % more on."
    )

    def __init__(
        self,
        session: WorkbenchSession,
        rows: Sequence[ComparableRow],
        answer_for: Callable[[ModelSource], Answer] | None = None,
    ) -> None:
        self._parts = PartsPanel()
        self._circumstances = CircumstancesPanel()
        super().__init__(self._parts, self._circumstances)
        self._session = session
        self._rows = tuple(rows)
        self._answer_for = answer_for
        self._found: ComparedTwo | str | None = None

    def action_exchange(self) -> None:
        self._rows = self._rows[::-1]
        self._found = None
        self.head_changed()
        self.look()

    def look(self) -> None:
        first, second = self._rows
        cure = f"{key('workbench.start_run')} on the workbench measures it"
        compare = partial(compare_rows, self._session, first, second, self._answer_for, cure)
        self.run_in_thread(compare, "compare", self._compared, self._compared)

    def _compared(self, found: ComparedTwo | str) -> None:
        self._found = found
        self._parts.show(found)
        self._circumstances.show_parts(() if isinstance(found, str) else [*side_parts(found), *difference_parts(found)])
        self.head_changed()

    def question(self) -> str:
        first, second = self._rows
        return question_words(first.kind, first.name, second.name)

    def answer(self) -> Iterable[Line]:
        if self._found is None:
            return
        if isinstance(self._found, str):
            yield line(Span(f" They cannot be compared: {self._found}.", "warn"))
        else:
            yield line(Span(f" {answer_words(self._found)}", "strong"))

    def state(self) -> Line:
        return line(Span(" Comparing.", "muted")) if self._found is None else ()
