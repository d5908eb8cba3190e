"""An estimate and its settings as the rows of their panel."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from dlbricks_tui.documents.layout import laid_out
from dlbricks_tui.documents.lines import BLANK, Line, Span, column, cut, line, wrapped_lines
from dlbricks_tui.documents.parts import BLANK_LINE
from dlbricks_tui.documents.table_layout import TableLayout
from dlbricks_tui.runtime.variant import stated_kernels, stated_threads, threads_in_words
from dlbricks_tui.tui.choices import Available, Choice, Choices, shown_settings
from dlbricks_tui.tui.keys.keymap import Hint
from dlbricks_tui.tui.workbench.next_steps import NextStep, step_hints
from dlbricks_tui.tui.workbench.under_way import NOTHING_UNDER_WAY, UnderWay, replaces, so_far_parts
from dlbricks_tui.wording.ages import measured_ago

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from dlbricks_tui.documents.estimate import EstimateDocument
    from dlbricks_tui.estimate.slowest import Slowest
    from dlbricks_tui.store.records import Runtime, System


def setting_text(setting: Choice, choices: Choices, available: Available) -> str:
    """Return the value of a setting in words."""
    value = getattr(choices, setting.value)
    if setting is Choice.SYSTEM:
        return "this host" if value is None else _name_of(value, available.systems)
    if setting is Choice.RUNTIME:
        return "the fastest" if value is None else _runtime_name(value, available.runtimes)
    if setting is Choice.BATCH:
        return "as in the file" if value is None else f"{value}"
    if setting is Choice.THREADS:
        return "any number" if value is None else f"{value}"
    if setting is Choice.PREDICTIONS:
        return "on" if value else "off"
    return str(value.value if isinstance(value, Enum) else value)


def _name_of(id_: str, known: Iterable[System | Runtime]) -> str:
    return next((it.name for it in known if it.id == id_), id_)


def _runtime_name(id_: str, known: Sequence[Runtime]) -> str:
    """Return the name of a runtime, with its threads and limits on kernels if others have the same name."""
    name = _name_of(id_, known)
    several = sum(it.name == name for it in known) > 1
    words = threads_in_words(stated_threads(id_)), *stated_kernels(id_).words
    return ", ".join([name, *words]) if several else name


_NAME = 12
# The number of slow layers that are shown.
MOST_SLOW = 10


class LayerStop(NamedTuple):
    """The row of a slow layer as a place of the cursor: the first layer of a sequence, by its index."""

    layer: int


# The place of the cursor, independent of the rows above it: a setting, a slow layer, or an explaining line by its
# number.
Stop: TypeAlias = Choice | LayerStop | int


class EstimateRow(NamedTuple):
    """A row, and its stop if the cursor may stop there."""

    line: Line
    stop: Stop | None = None


@dataclass(frozen=True, slots=True, eq=False)
class EstimateView:
    """The answer of one model with its explanation."""

    document: EstimateDocument
    # The slowest layers.
    slow: Slowest
    # The names of other systems that have measured some of it.
    other_systems: tuple[str, ...] = ()
    # The suggested next steps.
    steps: tuple[NextStep, ...] = ()


# Lines in place of an estimate.
Note = tuple[Line | Hint, ...]

CHOOSE_A_MODEL: Note = (
    line(Span("No model is open.", "strong")),
    Hint("{models.open} in the list of models opens one.", "muted"),
)
READING: Note = (line(Span("Reading the model.", "muted")),)


class Shown(NamedTuple):
    """The parts that the user has chosen to see."""

    expert: bool = False
    next_steps: bool = True


def estimate_rows(
    content: EstimateView | Note,
    choices: Choices,
    available: Available,
    width: int,
    under_way: UnderWay = NOTHING_UNDER_WAY,
    shown: Shown = Shown(),  # noqa: B008 - a frozen value
) -> tuple[EstimateRow, ...]:
    """Return all rows, the most important first; `under_way` is shown until the model is measured."""
    settings = (EstimateRow(_heading("Settings")), *_settings(choices, available, width, expert=shown.expert))
    if not isinstance(content, EstimateView):
        lines = (each.line if isinstance(each, Hint) else each for each in content)
        return (*_plain(lines, width), EstimateRow(BLANK), *settings)
    document = content.document
    if replaces(under_way, document.one):
        # Predictions beside the figures of the run would confuse.
        hint = Hint("{workbench.show_run} shows the run", "muted").line
        so_far = laid_out(so_far_parts(under_way), width)
        return (*_plain((*so_far, hint), width), EstimateRow(BLANK), *settings)
    is_here = choices.system in (None, available.host)
    answer = (
        *_answer(document, width, "" if is_here else _name_of(choices.system or "", available.systems)),
        *_what_next(content, under_way, shown),
    )
    coverage = *_plain(_coverage(document, width), width), EstimateRow(BLANK)
    slow = _slowest(content, width)
    return (
        *_plain(answer, width),
        *((EstimateRow(BLANK),) if answer else ()),
        *_plain(_latencies(content, under_way, width), width),
        EstimateRow(BLANK),
        # What is missing is more important than what is slow.
        *((*slow, *coverage) if document.one.estimate.coverage.complete else (*coverage, *slow)),
        *settings,
        *_selectable(_explanation(document, width), width),
    )


def _answer(document: EstimateDocument, width: int, on: str) -> Iterator[Line]:
    """Yield the answer, unless there is none at all: then the lines below say what to do."""
    one = document.one
    if one.figure is not None or (one.is_measured and not one.estimate.obstacle):
        yield from laid_out((*document.answer(on), *document.doubts()), width)


def _what_next(view: EstimateView, under_way: UnderWay, shown: Shown) -> Iterator[Line]:
    """Yield the next steps after an answer, or how a mere prediction becomes one."""
    one = view.document.one
    if not under_way.words and (one.end_to_end is not None or one.estimate.coverage.measured > 0):
        if shown.next_steps:
            yield from (hint.line for hint in step_hints(view.steps))
    elif one.estimate.composed is not None and not one.estimate.coverage.measured:
        yield from _on_the_way(view, under_way)
        if not under_way.words:
            yield Hint("{workbench.start_run} runs what is missing", "muted").line


def _latencies(view: EstimateView, under_way: UnderWay, width: int) -> Iterator[Line]:
    document, one = view.document, view.document.one
    if one.estimate.obstacle:
        yield line(Span("No estimate is possible.", "strong"))
        yield line(Span(f"{one.estimate.obstacle}.", "warn"))
        if one.end_to_end is None:
            yield Hint("{workbench.start_run} with end to end on times the whole model", "muted").line
    elif one.estimate.composed is None:
        if not one.is_measured:
            yield line(Span("Not measured here yet.", "strong"))
        if not under_way.words:
            yield Hint("{workbench.start_run} runs its bricks", "muted").line
        yield from _on_the_way(view, under_way)
    else:
        yield from laid_out(document.compositions(is_changing=bool(under_way.words)), width)
        if one.end_to_end is None:
            yield line(Span("not measured end to end yet", "muted"))
        yield from laid_out((*document.basis(), *document.cautions(), *document.gain()), width)


def _on_the_way(view: EstimateView, under_way: UnderWay) -> Iterator[Line]:
    """Yield where measurements of a model without any may come from."""
    if under_way.words:
        yield line(Span(under_way.words, "text"))
        yield Hint("{workbench.show_run} shows the run", "muted").line
    for system in view.other_systems:
        yield line(Span(f"{system} has results: select it as the system", "muted"))


def _slowest(view: EstimateView, width: int) -> Iterator[EstimateRow]:
    if view.slow.parts and view.document.one.estimate.composed is not None:
        table = TableLayout(view.document.slow_layers(view.slow), width)
        yield EstimateRow(_heading("Slowest layers"))
        yield EstimateRow(table.heading)
        for index, each in enumerate(view.slow.parts):
            yield EstimateRow(table.row(index), LayerStop(each.part.layers[0]))
        yield EstimateRow(BLANK)


def _settings(choices: Choices, available: Available, width: int, *, expert: bool) -> Iterator[EstimateRow]:
    settings = shown_settings(choices, expert=expert)
    for setting in settings:
        value = cut(setting_text(setting, choices, available), max(4, width - _NAME - 4))
        text = line(column(setting.value, _NAME), Span("◂ ", "muted"), Span(value, "accent"), Span(" ▸", "muted"))
        yield EstimateRow(text, setting)
    if hidden := len(Choice) - len(settings):
        yield EstimateRow(Hint(f"{{workbench.expert}} shows {hidden} expert settings", "muted").line)


def _coverage(document: EstimateDocument, width: int) -> Iterator[Line]:
    one = document.one
    yield _heading("Coverage")
    yield from laid_out(document.coverage(), width)
    if one.way.protocol:
        yield from laid_out(document.way(), width)
    if ages := measured_ago([one]):
        yield line(Span(ages, "muted"))
    if one.estimate.coverage.missing and one.estimate.coverage.measured:
        yield Hint("{workbench.start_run} runs what is missing", "muted").line
    for reason in dict.fromkeys(part.reason for part in one.estimate.parts if part.reason):
        yield line(Span(f"  {reason}", "muted"))


def _explanation(document: EstimateDocument, width: int) -> Iterator[Line]:
    """Yield where the time goes, what could run in parallel, and what explains the difference from the measurement."""
    if document.one.estimate.composed is not None:
        yield BLANK
        yield from laid_out((*document.types(), BLANK_LINE, *document.path(), *document.remainder()), width)


def _heading(text: str) -> Line:
    return line(Span(text, "heading"))


def _plain(lines: Iterable[Line], width: int) -> Iterator[EstimateRow]:
    return (EstimateRow(each) for each in wrapped_lines(lines, width))


def _selectable(lines: Iterable[Line], width: int) -> Iterator[EstimateRow]:
    """Return rows where the cursor may stop, so that the user can scroll to them."""
    return (EstimateRow(each, at if each else None) for at, each in enumerate(wrapped_lines(lines, width)))
