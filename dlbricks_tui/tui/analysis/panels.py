"""The panels of the analysis screen: bounds, layers, kernels, what-ifs, and one change in detail."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from textual.message import Message

from dlbricks_tui.analysis.kernels import KernelsError, TimedKernel
from dlbricks_tui.documents.analysis import fastest_words, kernels_table, layer_columns, layer_kernels_table
from dlbricks_tui.documents.layout import laid_out
from dlbricks_tui.documents.lines import BLANK, ELLIPSIS, Line, Span, fact, line, wrapped
from dlbricks_tui.documents.parts import BLANK_LINE
from dlbricks_tui.documents.what_ifs import (
    NO_WHAT_IFS,
    change_facts,
    change_reasons,
    gain_with_interval,
    gains_picture,
    what_if_columns,
)
from dlbricks_tui.tui.analysis import actions, work
from dlbricks_tui.tui.dialogs.dialog import TextDialog
from dlbricks_tui.tui.keys.keymap import Hint
from dlbricks_tui.tui.widgets.panel import Orders, Panel, counts_text
from dlbricks_tui.tui.widgets.rows import LineRows
from dlbricks_tui.tui.widgets.table import TablePanel
from dlbricks_tui.tui.widgets.text import TextView
from dlbricks_tui.wording.layers import common_beginning
from dlbricks_tui.wording.numbers import counted, duration

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from dlbricks_tui.analysis.bounds import GroupTimes
    from dlbricks_tui.answers.analysis.analysing import Analysis
    from dlbricks_tui.documents.analysis import AnalysisDocument
    from dlbricks_tui.documents.parts import Column
    from dlbricks_tui.documents.what_ifs import ShownWhatIf
    from dlbricks_tui.folders import DataFolder
    from dlbricks_tui.runtime.process import Worker
    from dlbricks_tui.tui.analysis.work import Proving


class BoundsPanel(Panel):
    """The measured and estimated latency, the bounds below them, and the parts of the gap."""

    scope = actions.BOUNDS
    TITLE = "Bounds"
    REACHED_BY = "analysis.go_to_bounds"
    PICTURED = True
    ABOUT = (
        "Best measured is the sum over all layers of the least time of any execution that was measured here, without "
        "conversions. The roofline is the least time by arithmetic and bytes over the peaks of this system. "
        "The parts of the gap add up to the latency minus the best. {bounds.copy} copies a command that measures what "
        "is missing."
    )

    def __init__(self) -> None:
        self._list = LineRows(self._lines)
        super().__init__(self._list, id="bounds")
        self._document: AnalysisDocument | None = None
        # The command that each line belongs to.
        self._commands: tuple[str, ...] = ()

    def show(self, document: AnalysisDocument) -> None:
        self._document = document
        self.show_picture(document.gap_picture)
        self._list.remake()

    def action_copy(self) -> None:
        here = self._list.cursor
        command = self._commands[here] if here < len(self._commands) else ""
        self.copy(command or None, "This line has no command.")

    def _lines(self, width: int) -> tuple[Line, ...]:
        document = self._document
        if document is None:
            return ()
        made: list[tuple[Line, str]] = []
        # What can be done comes first.
        if document.found.best is None:
            hint = Hint("On the workbench, {workbench.start_run} runs what is missing.", "muted").line
            made += [(each, "") for each in wrapped(hint, width)]
        for lack in document.found.missing:
            lines = (line(Span(f"Missing: {lack.what}", "warn")), line(Span("  "), Span(lack.command, "strong")))
            made += [(each, lack.command) for told in lines for each in wrapped(told, width)]
        made += [(BLANK, "")] * bool(made)
        made += [(each, "") for each in laid_out(document.latencies(), width)]
        if document.found.lacks_peaks:
            made.append((Hint("{analysis.measure} measures the peaks.", "muted").line, ""))
        if document.found.gap is not None:
            made += [(each, "") for each in (BLANK, *laid_out(document.gap(), width))]
        self._commands = tuple(command for _, command in made)
        return tuple(each for each, _ in made)


class LayersPanel(TablePanel["GroupTimes"]):
    """A row for each group of layers: its time here, the least time, and the execution that reached it."""

    scope = actions.LAYERS
    TITLE = "Layers"
    REACHED_BY = "analysis.go_to_layers"
    PICTURED = True
    SEARCH_HINT = "layer or execution"
    ABOUT = (
        "Runtimes fuse different layers, so the times are those of the smallest groups that all of them compute "
        "together. Slower is how much longer the model's own execution takes than the fastest one. "
        "'mxnet fused on 2' is MXNet with fused layers on two threads."
    )
    ORDERS: ClassVar[Orders] = {
        "longest first": lambda it: -it.latency_ps,
        "most to gain first": lambda it: it.best_ps - it.latency_ps,
    }

    def __init__(self) -> None:
        super().__init__(id="layers")
        # The beginning of all names, which the title shows once.
        self._common = ""

    def columns(self) -> tuple[Column[GroupTimes], ...]:
        return layer_columns(self._common)

    def copied_columns(self) -> tuple[Column[GroupTimes], ...]:
        # A copy has no title that says the beginning of the names.
        return layer_columns("")

    def show(self, groups: Sequence[GroupTimes]) -> None:
        self._common = common_beginning([name for it in groups for name in it.layers])
        self.show_placeholder(line("No layers to compare: not all of them were measured."))
        self.show_items(groups)

    def identity(self, item: GroupTimes) -> tuple[str, ...]:
        return item.layers

    def searched(self, item: GroupTimes) -> str:
        return f"{' '.join(item.layers)} {fastest_words(item)}"

    def show_counts(self) -> None:
        common = f" of {self._common}{ELLIPSIS}" if self._common else ""
        self.show_title(f"{common} {counts_text(len(self.found), len(self.items))}, {self.order}")


class WhatIfsPanel(TablePanel["ShownWhatIf"]):
    """A row for each change, with its predicted and its measured gain."""

    scope = actions.WHAT_IFS
    TITLE = "What-ifs"
    REACHED_BY = "analysis.go_to_what_ifs"
    PICTURED = True
    SEARCH_HINT = "kind, name, setting or layer"
    ABOUT = (
        "Changes of the way in which the model is executed. The gain is the share of the latency that a change saves, "
        "with its 95 % interval; a negative one costs time. For batches it is that of one item. A bound is a change "
        "that no runtime makes. Proved is the gain that was measured when the change was carried out."
    )
    ORDERS: ClassVar[Orders] = {
        "by kind": lambda _: 0,
        "by gain": lambda it: -it.what_if.gain.value,
    }

    @dataclass
    class Selected(Message):
        """The cursor has settled on a what-if; None if there is none."""

        row: ShownWhatIf | None

    class Opened(Message):
        """The user wants to read about the selected what-if."""

    def __init__(self) -> None:
        super().__init__(id="what-ifs")
        self._proving: Proving | None = None

    def columns(self) -> tuple[Column[ShownWhatIf], ...]:
        proving = self._proving
        under_way = {} if proving is None else {proving.now: "waits" if proving.waits_for else "running"}
        return what_if_columns(self.items, under_way)

    def show(self, rows: Sequence[ShownWhatIf]) -> None:
        self.show_placeholder(
            line(NO_WHAT_IFS),
            Hint("{analysis.measure} measures others: threads, kernels, runtimes, batch sizes.", "muted"),
        )
        self.show_items(rows)
        self.show_picture(gains_picture(rows))
        self.cursor_settled()

    def show_proving(self, proving: Proving | None) -> None:
        """Show how far the proofs are."""
        self._proving = proving
        self.columns_changed()

    def identity(self, item: ShownWhatIf) -> str:
        return item.what_if.id

    def searched(self, item: ShownWhatIf) -> str:
        found = item.what_if
        return f"{found.kind.value} {found.id} {found.how} {' '.join(found.layers)}"

    def show_counts(self) -> None:
        order = f", {self.order}" if len(self.items) > 1 else ""
        self.show_title(f" {counts_text(len(self.found), len(self.items))}{order}")

    def search_changed(self) -> None:
        super().search_changed()
        self.cursor_settled()

    def cursor_settled(self) -> None:
        self.post_message(self.Selected(self.selected))

    def action_show(self) -> None:
        if self.selected is not None:
            self.post_message(self.Opened())

    def action_copy(self) -> None:
        self.copy(None if self.selected is None else self.selected.what_if.how, "There is no what-if to copy.")


class ChangePanel(Panel):
    """The selected what-if: how to make the change, the layers responsible, and how far to trust the prediction."""

    scope = actions.CHANGE
    TITLE = "The change"
    REACHED_BY = "analysis.go_to_change"
    ABOUT = "The selected what-if. {change.copy} copies the command or setting that makes the change."

    def __init__(self) -> None:
        self._list = LineRows(self._lines)
        super().__init__(self._list, id="change")
        self._row: ShownWhatIf | None = None
        self._proving: Proving | None = None
        # The reason why the last proof of a what-if failed, by its id.
        self._failures: Mapping[str, str] = {}
        self.show_placeholder(line(Span("Select a what-if to read how it is done.", "muted")))

    def show(self, row: ShownWhatIf | None) -> None:
        """Show a what-if; the cursor stays if it is the same one."""
        if row != self._row:
            if row is None or self._row is None or row.what_if.id != self._row.what_if.id:
                self._list.move_to(0)
            self._row = row
            self.show_title(f": {row.what_if.id}" if row else "")
            self._list.remake()

    def show_proving(self, proving: Proving | None, failures: Mapping[str, str]) -> None:
        """Show how far the proof of the selected what-if is, or why it failed."""
        self._proving, self._failures = proving, failures
        self._list.remake()

    def action_copy(self) -> None:
        self.copy(None if self._row is None else self._row.what_if.how, "Select a what-if first.")

    def _lines(self, width: int) -> Iterator[Line]:
        if self._row is not None:
            proving = self._proving if self._proving and self._proving.now == self._row.what_if.id else None
            failure = self._failures.get(self._row.what_if.id, "")
            yield from laid_out(change_facts(self._row), width)
            if self._row.proof is None and not self._row.is_bound and proving is None and not failure:
                yield fact("proved", Span("not yet: ", "muted"), *Hint("{analysis.prove} carries it out", "muted").line)
            if failure:
                yield fact("failed", Span(failure, "bad"))
            if proving is not None:
                yield from _progress(proving)
            yield BLANK
            yield from laid_out(change_reasons(self._row), width)


def _progress(proving: Proving) -> Iterator[Line]:
    place = f" {proving.place}" if proving.place else ""
    if proving.waits_for:
        told = Span(f"waits for {proving.waits_for}", "warn")
    elif proving.rounds is None:
        told = Span("loading the model twice, before and after the change", "warn")
    else:
        done = proving.rounds
        left = "" if done.seconds_left is None else f", about {duration(done.seconds_left)} left"
        told = Span(f"{counted(done.rounds, 'round')}, {gain_with_interval(done.gain)} so far{left}", "warn")
    yield fact("proving", told, Span(place, "muted"))
    yield Hint("           {analysis.leave} cancels it", "muted").line


class KernelsScreen(TextDialog[Sequence[TimedKernel]]):
    """Asks the runtime for the kernels in a thread, and returns them; closing the box ends the process of the runtime.

    Kernels that are known already are shown at once.
    """

    ABOUT = (
        "The kernels by which the runtime computes the layers, those that take most first, and why it refused others "
        "that it tries first. A reason is derived if it follows from the shapes and the runtime does not tell it. "
        "Conversions change layouts within a layer. The runtime loads the model once more for it."
    )
    BOX_CLASSES = "-tall"

    def __init__(self, found: Analysis, data: DataFolder, known: Sequence[TimedKernel]) -> None:
        super().__init__()
        self._found = found
        self._data = data
        self._kernels = known
        self._refusal = self._waits_for = ""
        self._worker: Worker | None = None
        self._is_closed = False

    @property
    def heading(self) -> str:
        return f"Kernels of {self._found.source.name}"

    def on_mount(self) -> None:
        if not self._kernels:
            read = partial(work.read_kernels, self._found, self._data, self._wait, self._check, self._started)
            self.run_in_thread(read, "kernels", self._told)

    def on_unmount(self) -> None:
        self._is_closed = True
        if self._worker is not None:
            self._worker.interrupt()

    def action_close(self) -> None:
        self.dismiss(self._kernels)

    def paragraphs(self) -> Iterator[Line]:
        if self._refusal:
            yield line(Span(self._refusal, "warn"))
        elif not self._kernels:
            framework = self._found.baseline.execution.runtime.traits.title
            yield line(f"{framework} loads the model, and tells the kernels that it chooses.")
            if self._waits_for:
                yield line(f"It waits for {self._waits_for}.")
            yield Hint("{dialog.close} cancels it.", "muted").line
        else:
            width = self.query_one(TextView).scrollable_content_region.width
            parts = kernels_table(self._kernels), BLANK_LINE, layer_kernels_table(self._kernels)
            yield from laid_out(parts, width)

    def _wait(self, ahead: str) -> None:
        """Take the work before it in the line; the thread that waits calls this."""
        self.app.call_from_thread(self._show_waiting, ahead)

    def _check(self) -> None:
        """End the waiting with the box."""
        if self._is_closed:
            raise KernelsError("the box is closed")

    def _show_waiting(self, ahead: str) -> None:
        self._waits_for = ahead
        self.query_one(TextView).remake()

    def _started(self, worker: Worker) -> None:
        """Keep the process, to end it with the box; the thread that asks it calls this."""
        self._worker = worker
        if self._is_closed:
            worker.interrupt()

    def _told(self, found: Sequence[TimedKernel] | str) -> None:
        if isinstance(found, str):
            self._refusal = found
        else:
            self._kernels = found
        text = self.query_one(TextView)
        text.remake()
        text.refresh(layout=True)
