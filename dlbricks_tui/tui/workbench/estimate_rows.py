"""An estimate, a run under way, next steps and settings as the rows of the panel of estimates."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from math import fsum, sqrt
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from dlbricks_tui.documents.layout import TableLayout, laid_out
from dlbricks_tui.documents.lines import BLANK, Line, Span, column, cut, line, wrapped_lines
from dlbricks_tui.documents.parts import BLANK_LINE
from dlbricks_tui.runtime.variant import stated_kernels, stated_threads, threads_in_words
from dlbricks_tui.settings.setting import Setting
from dlbricks_tui.settings.variant import BATCH, RUNTIME, SYSTEM, THREADS
from dlbricks_tui.tui.choices import CHOSEN, Available, Choices
from dlbricks_tui.tui.keys.keymap import Hint
from dlbricks_tui.tui.run.snapshot import on_its_way
from dlbricks_tui.wording.numbers import in_ms, measured_ago, milliseconds

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from dlbricks_tui.documents.estimate import EstimateDocument
    from dlbricks_tui.documents.parts import Part
    from dlbricks_tui.estimate.knowledge import Latency
    from dlbricks_tui.estimate.parts import Slowest
    from dlbricks_tui.estimate.system_estimate import SystemEstimate
    from dlbricks_tui.store.records import RuntimeRecord, System
    from dlbricks_tui.tui.run.snapshot import RunBrick, RunModel, RunSnapshot

# Fewer samples of the whole model tell less than the short burst that times it at first.
_ENOUGH_SAMPLES = 8
# A mean lies within this many standard errors with 95 % confidence.
_TWO_SIDED_95 = 1.96


@dataclass(frozen=True, slots=True)
class UnderWay:
    """The progress of a run of the open model: in words, and the figures of that run so far."""

    words: str = ""
    # From all layers of the model; None until each has samples.
    estimate: Latency | None = None
    # The latency of the whole model.
    end_to_end: Latency | None = None

    @property
    def has_figures(self) -> bool:
        return self.estimate is not None or self.end_to_end is not None


NOTHING_UNDER_WAY = UnderWay()


def under_way(run: RunSnapshot, model: str) -> UnderWay:
    """Return the progress of a run of a model; nothing if the run is of other models, has ended or is replayed."""
    words = on_its_way(run, model)
    if not words:
        return NOTHING_UNDER_WAY
    # A run in several variants has several figures, of which none is the answer.
    estimates = [it for it in run.estimates if it.name == model]
    wholes = [it for it in run.bricks if it.whole and model in it.used_by]
    if len(estimates) > 1 or len(wholes) > 1:
        return UnderWay(words)
    return UnderWay(
        words,
        next((found for it in estimates if (found := _estimate_so_far(it)) is not None), None),
        next((found for it in wholes if (found := _timed(it)) is not None), None),
    )


def _estimate_so_far(model: RunModel) -> Latency | None:
    from dlbricks_tui.estimate.knowledge import Latency

    if model.is_partial or not model.sequential_ms or model.low_ms is None or model.high_ms is None:
        return None
    return Latency(model.sequential_ms, model.low_ms, model.high_ms)


def _timed(whole: RunBrick) -> Latency | None:
    from dlbricks_tui.estimate.knowledge import Latency

    if len(whole.samples_ms) >= _ENOUGH_SAMPLES:
        # Loaded here: the first screen needs no NumPy.
        from dlbricks_tui.store.statistics import trimmed_mean

        # Samples of the rounds of the bricks saw the host at the same speed as these. The bootstrap of the final
        # interval would take the processor from the run.
        value_ms, samples = trimmed_mean(whole.samples_ms), len(whole.samples_ms)
        squares = fsum((it - value_ms) ** 2 for it in whole.samples_ms)
        half_ms = _TWO_SIDED_95 * sqrt(squares / (samples - 1) / samples)
        return Latency(value_ms, max(0.0, value_ms - half_ms), value_ms + half_ms)
    if not whole.latency_ms:
        return None
    half_ms = whole.latency_ms * (whole.half_width or 0.0)
    return Latency(whole.latency_ms, whole.latency_ms - half_ms, whole.latency_ms + half_ms)


def replaces(under_way: UnderWay, found: SystemEstimate) -> bool:
    """Return whether the figures of the run tell more than the stored results: until these cover the model."""
    return under_way.has_figures and not found.estimate.coverage.complete


def so_far_parts(under_way: UnderWay) -> Iterator[Part]:
    """Yield the figures of a run in progress, each as soon as the run has it."""
    # Loaded here: the first screen shows no run.
    from dlbricks_tui.documents.parts import BarFigure, Figures, Sentence

    estimate, whole = under_way.estimate, under_way.end_to_end
    if estimate is None:
        yield Sentence("The whole model is timed; its layers follow.", "strong")
    else:
        yield Sentence(f"The estimate so far is {milliseconds(estimate.value_ms)} ms.", "strong")
    named = ("end to end", whole), ("sequential", estimate)
    known = [(name, it) for name, it in named if it is not None]
    yield Figures(tuple(BarFigure(name, in_ms(it.value_ms), it.value_ms, it.low_ms, it.high_ms) for name, it in known))
    if estimate is not None:
        ends = f"{milliseconds(estimate.low_ms)} to {milliseconds(estimate.high_ms)} ms"
        yield Sentence(f"{ends}, the 95 % interval so far; more samples narrow it.", "muted")


class KnownAlready(NamedTuple):
    """The facts that the store and the library have about a model and around it."""

    # Combinations of runtime, threads, batch size and precision in which the whole model was timed on the system.
    combinations: int = 0
    proofs: int = 0
    load_tests: int = 0
    systems: int = 0
    # Models that the user has added to the library.
    own_models: int = 0


class NextStep(Enum):
    """A step by its action and the question that it answers, the most useful first."""

    VARIANTS = ("workbench.show_variants", "which runtime, threads and batch are best")
    ANALYSIS = ("workbench.show_analysis", "what could be faster")
    LOAD = ("workbench.show_scenario", "how much load it can serve")
    OWN_MODEL = ("workbench.open_path", "your own model: open its file")
    HOSTS = ("workbench.show_fleet", "which host is best")

    def __init__(self, action: str, question: str) -> None:
        self.action = action
        self.question = question

    def is_done(self, known: KnownAlready) -> bool:
        """Return whether the answer is known."""
        return {
            NextStep.VARIANTS: known.combinations > 1,
            NextStep.ANALYSIS: known.proofs > 0,
            NextStep.LOAD: known.load_tests > 0,
            NextStep.OWN_MODEL: known.own_models > 0,
            NextStep.HOSTS: known.systems > 1,
        }[self]


def next_step(known: KnownAlready) -> NextStep | None:
    """Return the first step whose answer is not known."""
    return next((step for step in NextStep if not step.is_done(known)), None)


_USUAL = {SYSTEM: "this host", RUNTIME: "the fastest", BATCH: "as in the file", THREADS: "any number"}


def setting_text(setting: Setting[Any], choices: Choices, available: Available) -> str:
    """Return the value of a setting in words."""
    value = getattr(choices, setting.field)
    if value is None:
        return _USUAL[setting]
    if setting is SYSTEM:
        return _name_of(value, available.systems)
    return _runtime_name(value, available.runtimes) if setting is RUNTIME else setting.kind.text(value)


def _name_of(id_: str, known: Iterable[System | RuntimeRecord]) -> str:
    return next((it.name for it in known if it.id == id_), id_)


def _runtime_name(id_: str, known: Sequence[RuntimeRecord]) -> str:
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
Stop: TypeAlias = Setting[Any] | LayerStop | int


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
    step: NextStep | None = None


# Lines in place of an estimate.
Note = tuple[Line | Hint, ...]

CHOOSE_A_MODEL = (
    Hint("No model is open.", "strong"),
    Hint("{models.open} in the list of models opens one.", "muted"),
)
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
    settings = _settings(choices, available, width) if more else _hint_of_more(width)
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
    answer = _answer(content, under_way, width, "" if is_here else _name_of(choices.system or "", available.systems))
    return (
        *_plain(answer, width),
        EstimateRow(BLANK),
        *_plain(_latencies(content, under_way, width, more=more), width),
        *_slowest(content, width),
        *(_plain(_coverage(document, width), width) if more else ()),
        *settings,
        *(_selectable(_explanation(document, width), width) if more else ()),
    )


def _hint_of_more(width: int) -> Iterator[EstimateRow]:
    return _plain([Hint("{workbench.expert} shows workers, errors, coverage and settings", "muted").line], width)


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
    if view.slow.parts and view.document.one.estimate.composed is not None:
        table = TableLayout(view.document.slow_layers(view.slow), width)
        yield EstimateRow(_heading("Slowest layers"))
        yield EstimateRow(table.heading)
        for index, each in enumerate(view.slow.parts):
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


def _selectable(lines: Iterable[Line], width: int) -> Iterator[EstimateRow]:
    """Return rows where the cursor may stop, so that the user can scroll to them."""
    return (EstimateRow(each, at if each else None) for at, each in enumerate(wrapped_lines(lines, width)))
