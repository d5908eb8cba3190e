"""The panel of the estimate, its rows, and the headline of the workbench."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from dlbricks_tui.api.open_models import CHOSEN, NONE_AVAILABLE, Available, Choices, change_setting, shown_settings
from dlbricks_tui.documents.layout import TableLayout, laid_out
from dlbricks_tui.documents.lines import BLANK, Line, Span, column, cut, line, spread, width_of, wrapped_lines
from dlbricks_tui.documents.parts import BLANK_LINE
from dlbricks_tui.documents.run import NOTHING_UNDER_WAY, UnderWay
from dlbricks_tui.recorded_host import recorded_host
from dlbricks_tui.settings.cutting import CUT, GRANULARITY, LEVEL, WORKERS
from dlbricks_tui.settings.setting import Setting
from dlbricks_tui.settings.variant import BATCH, RUNTIME, SYSTEM, THREADS
from dlbricks_tui.tui.keys import scopes
from dlbricks_tui.tui.keys.keymap import Hint
from dlbricks_tui.tui.widgets.panel import Panel
from dlbricks_tui.tui.widgets.rows import RowsView
from dlbricks_tui.tui.widgets.text import NamesKeys
from dlbricks_tui.wording.answers import bricks_words, combination_words, figure_text, origin_words
from dlbricks_tui.wording.numbers import counted, measured_ago, milliseconds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from dlbricks_tui.api.estimating import KnownAlready
    from dlbricks_tui.documents.estimate import EstimateDocument
    from dlbricks_tui.estimate.system_estimate import SystemEstimate


class NextStep(NamedTuple):
    """A step by its action, the question that it answers, and whether the answer is known already."""

    action: str
    question: str
    is_answered: Callable[[KnownAlready], bool]


# The most useful first.
NEXT_STEPS = (
    NextStep(
        "workbench.show_variants", "which runtime, threads and batch are best", lambda known: known.combinations > 1
    ),
    NextStep("workbench.show_analysis", "what could be faster", lambda known: known.proofs > 0),
    NextStep("workbench.show_scenario", "how much load it can serve", lambda known: known.load_tests > 0),
    NextStep("workbench.open_path", "your own model: open its file", lambda known: known.own_models > 0),
    NextStep("workbench.show_fleet", "which host is best", lambda known: known.systems > 1),
)


def next_step(known: KnownAlready) -> NextStep | None:
    """Return the first step whose answer is not known."""
    return next((step for step in NEXT_STEPS if not step.is_answered(known)), None)


_USUAL = {SYSTEM: "this host", RUNTIME: "the fastest", BATCH: "as in the file", THREADS: "any number"}


def setting_text(setting: Setting[Any], choices: Choices, available: Available) -> str:
    """Return the value of a setting in words."""
    value = getattr(choices, setting.field)
    if value is None:
        return _USUAL[setting]
    if setting is SYSTEM:
        return available.system_name(value)
    return available.runtime_name(value) if setting is RUNTIME else setting.kind.text(value)


_NAME = 12
# The number of slow layers that are shown.
MOST_SLOW = 10


class LayerStop(NamedTuple):
    """The row of a slow layer as a place of the cursor: the first layer of a sequence, by its index."""

    layer: int


# The place of the cursor, independent of the rows above it: a setting, a slow layer, or an explaining line by its
# number.
Stop: TypeAlias = Setting[Any] | LayerStop | int


class EstimateRow(NamedTuple):
    """A row, and its stop if the cursor may stop there."""

    line: Line
    stop: Stop | None = None


@dataclass(frozen=True, slots=True, eq=False)
class EstimateView:
    """The answer of one model with its explanation."""

    document: EstimateDocument
    # The names of other systems that have measured some of it.
    other_systems: tuple[str, ...] = ()
    step: NextStep | None = None


# Lines in place of an estimate.
Note = tuple[Line | Hint, ...]

CHOOSE_A_MODEL = (Hint("No model is open.", "strong"), Hint("{models.open} in the list of models opens one.", "muted"))


def problem_note(what: str, reason: str, cure: str) -> Note:
    """Return lines with the reason of a problem, and its cure, which may name actions in place of keys."""
    step = (Hint(cure, "strong"),) if cure else ()
    return (line(Span(f"This model cannot be {what}.", "bad")), line(Span(reason)), *step)


_MORE = Hint("{workbench.expert} shows workers, errors, coverage and settings", "muted")
READING: Note = (line(Span("Reading the model.", "muted")),)


def estimate_rows(
    content: EstimateView | Note,
    choices: Choices,
    available: Available,
    width: int,
    under_way: UnderWay = NOTHING_UNDER_WAY,
    *,
    more: bool = False,
) -> tuple[EstimateRow, ...]:
    """Return the answer in a few lines, its compositions and the slowest layers; and all else that is known on demand.

    `under_way` is shown until the model is measured.
    """
    settings = _settings(choices, available, width) if more else _plain([_MORE.line], width)
    if not isinstance(content, EstimateView):
        lines = (each.line if isinstance(each, Hint) else each for each in content)
        return (*_plain(lines, width), EstimateRow(BLANK), *settings)
    document = content.document
    if under_way.replaces(document.one):
        # Predictions beside the figures of the run would confuse.
        hint = Hint("{workbench.show_run} shows the run", "muted").line
        so_far = laid_out(under_way.parts(), width)
        return (*_plain((*so_far, hint), width), EstimateRow(BLANK), *settings)
    is_here = choices.system in (None, available.host)
    answer = _answer(content, under_way, width, "" if is_here else available.system_name(choices.system or ""))
    # Rows where the cursor may stop, so that the user can scroll to them.
    explained = wrapped_lines(_explanation(document, width) if more else (), width)
    return (
        *_plain(answer, width),
        EstimateRow(BLANK),
        *_plain(_latencies(content, under_way, width, more=more), width),
        *_slowest(content, width),
        *(_plain(_coverage(document, width), width) if more else ()),
        *settings,
        *(EstimateRow(each, at if each else None) for at, each in enumerate(explained)),
    )


def _answer(view: EstimateView, under_way: UnderWay, width: int, on: str) -> Iterator[Line]:
    """Yield the figure, how sure it is, and what to do next."""
    document, one = view.document, view.document.one
    if one.estimate.obstacle and one.figure is None:
        yield line(Span("No estimate is possible.", "strong"))
        yield line(Span(f"{one.estimate.obstacle}.", "warn"))
    elif one.figure is None and not one.is_measured:
        yield line(Span("Not measured here yet.", "strong"))
    else:
        yield from laid_out((*document.answer(on), *document.certainty()), width)
    if under_way.words:
        yield line(Span(under_way.words, "text"))
        yield Hint("{workbench.show_run} shows the run", "muted").line
    elif one.estimate.obstacle:
        if one.end_to_end is None:
            yield Hint("{workbench.start_run} with end to end on times the whole model", "muted").line
    elif one.estimate.coverage.missing or one.estimate.coverage.predicted or one.estimate.composed is None:
        what = "what is missing" if one.is_measured else "it"
        yield Hint(f"next: {{workbench.start_run}} measures {what}").line
    elif view.step is not None:
        yield Hint(f"next: {{{view.step.action}}} {view.step.question}").line
    if not one.is_measured:
        for system in view.other_systems:
            yield line(Span(f"{system} has results: select it as the system", "muted"))


def _latencies(view: EstimateView, under_way: UnderWay, width: int, *, more: bool) -> Iterator[Line]:
    document, one = view.document, view.document.one
    if one.estimate.composed is not None and not one.estimate.obstacle:
        yield from laid_out(document.compositions(is_changing=bool(under_way.words), workers=more), width)
        if more:
            yield from laid_out((*document.basis(), *document.doubts(), *document.cautions(), *document.gain()), width)
        yield BLANK


def _slowest(view: EstimateView, width: int) -> Iterator[EstimateRow]:
    slow = view.document.slow_layers(MOST_SLOW)
    if slow.rows and view.document.one.estimate.composed is not None:
        table = TableLayout(slow, width)
        yield EstimateRow(_heading("Slowest layers"))
        yield EstimateRow(table.heading)
        for index, each in enumerate(slow.rows):
            yield EstimateRow(table.row(index), LayerStop(each.part.layers[0]))
        yield EstimateRow(BLANK)


def _settings(choices: Choices, available: Available, width: int) -> Iterator[EstimateRow]:
    yield EstimateRow(_heading("Settings"))
    for setting in CHOSEN:
        value = cut(setting_text(setting, choices, available), max(4, width - _NAME - 4))
        text = line(column(setting.name, _NAME), Span("◂ ", "muted"), Span(value, "accent"), Span(" ▸", "muted"))
        yield EstimateRow(text, setting)


def _coverage(document: EstimateDocument, width: int) -> Iterator[Line]:
    one = document.one
    yield _heading("Coverage")
    yield from laid_out(document.coverage(), width)
    if one.way.protocol:
        yield from laid_out(document.way(), width)
    if ages := measured_ago([one]):
        yield line(Span(ages, "muted"))
    for reason in dict.fromkeys(part.reason for part in one.estimate.parts if part.reason):
        yield line(Span(f"  {reason}", "muted"))
    yield BLANK


def _explanation(document: EstimateDocument, width: int) -> Iterator[Line]:
    """Yield where the time goes, what could run in parallel, and what explains the difference from the measurement."""
    if document.one.estimate.composed is not None:
        yield BLANK
        yield from laid_out((*document.types(), BLANK_LINE, *document.path(), *document.remainder()), width)


def _heading(text: str) -> Line:
    return line(Span(text, "heading"))


def _plain(lines: Iterable[Line], width: int) -> Iterator[EstimateRow]:
    return (EstimateRow(each) for each in wrapped_lines(lines, width))


class EstimateRows(RowsView, NamesKeys):
    """Latencies, settings, and the explanation of the estimate."""

    def __init__(self) -> None:
        super().__init__()
        self.content: EstimateView | Note = CHOOSE_A_MODEL
        self.choices = Choices()
        self.available = NONE_AVAILABLE
        self.under_way = NOTHING_UNDER_WAY
        # True if workers, errors, coverage and settings are shown too.
        self.more = False
        self._made: tuple[EstimateRow, ...] = ()
        # The selected row, kept while it does not exist: while a model is read, and while the panel is hidden. None is
        # the first row that can be selected.
        self._on: Stop | None = None

    @property
    def row_count(self) -> int:
        return len(self._made)

    def row(self, index: int, width: int) -> Line:
        return self._made[index].line

    def all_rows(self, width: int) -> list[Line]:
        return [row.line for row in self._rows(width)]

    def can_select(self, index: int) -> bool:
        return self._made[index].stop is not None

    @property
    def here(self) -> Stop | None:
        """The setting or line under the cursor; None while that is out of view: a key must not change it."""
        return self._stop_here if self.has_cursor else None

    @property
    def has_cursor(self) -> bool:
        return self._is_in_view if self._on is None else self._stop_here == self._on

    @property
    def _is_in_view(self) -> bool:
        top = self.scroll_offset.y
        return top <= self.cursor < top + self.size.height

    def action_down(self) -> None:
        if self._on is None and not self._is_in_view:
            # The first row where the cursor may stop is below those in view.
            self._stay_here()
            self.scroll_to_cursor()
            self.refresh()
        else:
            super().action_down()

    def remake(self) -> None:
        """Remake the rows; the cursor stays on its setting or line."""
        # Without the cursor sign and the scrollbar; negative while the panel is hidden.
        width = self.size.width - 2
        self._made = self._rows(width) if width > 0 else ()
        on = self._on
        self.rows_changed()
        self.go_to(on)

    on_resize = keys_changed = remake

    def move_to(self, index: int) -> None:
        super().move_to(index)
        self._stay_here()

    def watch_cursor(self, before: int, now: int) -> None:
        self._stay_here()
        super().watch_cursor(before, now)

    def go_to(self, stop: Stop | None) -> None:
        """Select a setting or a line, now or when it appears; None selects the first one."""
        stops = [row.stop for row in self._made]
        if isinstance(stop, LayerStop) and isinstance(self.content, EstimateView) and stop not in stops:
            # It is among the slowest no longer.
            stop = None
        if stop is None:
            self.move_to(0)
        elif stop in stops:
            self.move_to(stops.index(stop))
        self._on = stop
        if stop is None:
            self.scroll_to_cursor()

    def scroll_to_cursor(self) -> None:
        if self._on is None:
            # The answer is at the top, and the user has not gone further.
            self.scroll_to(y=0, animate=False, force=True, immediate=True)
        else:
            super().scroll_to_cursor()

    def leave_layers(self) -> None:
        """Select the first row of the next model, unless the cursor is on a setting."""
        if isinstance(self._on, LayerStop):
            self._on = None

    def _rows(self, width: int) -> tuple[EstimateRow, ...]:
        return estimate_rows(self.content, self.choices, self.available, width, self.under_way, more=self.more)

    @property
    def _stop_here(self) -> Stop | None:
        return self._made[self.cursor].stop if self.cursor < len(self._made) else None

    def _stay_here(self) -> None:
        if (here := self._stop_here) is not None:
            self._on = here


class EstimatePanel(Panel):
    scope = scopes.ESTIMATE
    TITLE = "Estimate"
    ABOUT = (
        "Sequential is the sum over all sequences, as frameworks run one layer after another. Parallel is the critical"
        " path, as if independent layers ran at the same time. The range beside the sequential estimate is a 95 % "
        "interval, as far as its errors are known. Beside each of the slowest layers is its share, and that of it and "
        "all slower ones; {estimate.next} goes to it in the decomposition. Settings apply at once to all panels."
    )

    def __init__(self, choose: Callable[[Choices], object], show_layer: Callable[[int], object]) -> None:
        """`choose` takes other settings, and `show_layer` shows a layer in the decomposition."""
        self._list = EstimateRows()
        super().__init__(self._list)
        self._choose = choose
        self._show_layer = show_layer

    def show_waiting(self) -> None:
        self._list.leave_layers()
        self.show(READING)

    def show_choices(self, choices: Choices, available: Available | None = None) -> None:
        """Show the settings, and remember what there is to choose from."""
        self._list.choices = choices
        self._list.available = available or self._list.available
        self._list.remake()

    def show_more(self, more: bool) -> None:
        """Show all that is known, or the answer only."""
        self._list.more = more
        self._list.remake()
        if not more:
            self.go_to_answer()

    def show_run(self, under_way: UnderWay) -> None:
        """Show the progress of a run of the model until its results are stored."""
        self._list.under_way = under_way
        self._list.remake()

    def show(self, content: EstimateView | Note) -> None:
        self._list.content = content
        self._list.remake()

    def remake(self) -> None:
        """Show the same, as old as it is by now."""
        self._list.remake()

    def go_to_answer(self) -> None:
        self._list.go_to(None)

    def go_to_settings(self) -> None:
        self.take_focus()
        self._list.go_to(CHOSEN[0])

    def action_next(self) -> None:
        if isinstance(here := self._list.here, LayerStop):
            self._show_layer(here.layer)
        else:
            self.action_step(1)

    def action_step(self, step: int) -> None:
        if isinstance(here := self._list.here, Setting):
            choices = change_setting(here, self._list.choices, step, self._list.available)
            if choices != self._list.choices:
                self._choose(choices)


# From these widths on the headline names the cut and the workers, and the host of a demonstration.
_ROOMY, _ROOMY_FOR_ORIGIN = 110, 160


@dataclass(frozen=True, slots=True)
class Headline:
    """The line at the head of the workbench: the model, the settings and the estimate."""

    # Empty while no model is open.
    model: str
    choices: Choices
    found: SystemEstimate | None
    is_chosen: bool = False
    under_way: UnderWay = NOTHING_UNDER_WAY
    expert: bool = False
    # True if nothing was measured yet.
    is_empty: bool = False

    def line(self, width: int) -> Line:
        recorded = recorded_host()
        left = [Span(" dlbricks ", "accent")]
        if recorded is not None:
            origin = f", {recorded.origin}" if width >= _ROOMY_FOR_ORIGIN else ""
            left.append(Span(f" demonstration{origin} ", "warn"))
        settings = self._expert_words(width)
        right = Span(f" {', '.join(settings)} " if settings else "", "muted")
        parts = list(self._said())
        room = width - width_of((*left, right))
        if sum(map(width_of, parts[:2])) > room:
            # The model and its figure come first.
            right, room = Span(""), width - width_of(left)
        said: Line = ()
        for part in parts:
            # The first part, and those after it that fit whole.
            if said and width_of((*said, *part)) > room:
                break
            said = (*said, *part)
        return spread((*left, *said), (right,), width)

    def _expert_words(self, width: int) -> list[str]:
        """Return the expert settings: all of them to an expert, else those that are not as usual."""
        how, shown = self.choices, shown_settings(self.choices, expert=self.expert)
        words = {LEVEL: how.level.value, GRANULARITY: bricks_words(how.granularity)}
        if width >= _ROOMY:
            words |= {CUT: how.cut.value, WORKERS: counted(how.workers, "worker")}
        return [word for setting, word in words.items() if setting in shown]

    def _said(self) -> Iterator[Line]:
        """Yield the model and its answer, the most important first."""
        found = self.found
        if self.model:
            yield line(Span(f" {self.model} ", "strong"))
        elif self.is_empty:
            yield Hint(" Nothing was measured here yet: {workbench.start_run} measures the selected model.").line
        else:
            yield line(Span(" How fast does it run here?", "muted"))
        if not self.model or found is None:
            return
        if self.under_way.replaces(found):
            so_far = self.under_way.estimate
            if so_far is None:
                yield line(Span(" is being measured ", "muted"))
            else:
                yield line(Span(f" {milliseconds(so_far.value_ms)} ms", "strong"), Span(" so far ", "muted"))
        elif found.estimate.obstacle and found.figure is None:
            yield line(Span(" no estimate possible ", "warn"))
        else:
            yield line(Span(f" {figure_text(found)}", "strong"))
            yield line(Span(f" {origin_words(found)}", "muted"))
            yield line(Span(f" {combination_words(found)}", "muted"))
            on = f", on {self.choices.system}" if self.choices.system is not None else ""
            yield line(Span(f"{on}{', as chosen' if self.is_chosen else ''}", "muted"))
