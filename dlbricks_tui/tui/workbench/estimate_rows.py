"""An estimate and its settings as the rows of their panel."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from dlbricks_tui.documents.lines import (
    BLANK,
    Line,
    Span,
    bar,
    column,
    cut,
    line,
    width_of,
    wrapped_lines,
)
from dlbricks_tui.runtime.variant import batch_in_words, stated_kernels, stated_threads, threads_in_words
from dlbricks_tui.tui.choices import Available, Choices, Setting, shown_settings
from dlbricks_tui.tui.keys.keymap import Hint
from dlbricks_tui.tui.workbench.answer import (
    NOTHING_UNDER_WAY,
    UnderWay,
    answer_lines,
    replaces,
    so_far_lines,
)
from dlbricks_tui.tui.workbench.next_steps import NextStep, step_hints
from dlbricks_tui.tui.workbench.slow_layers import LayerStop, SlowRow, slow_line
from dlbricks_tui.wording.ages import measured_ago
from dlbricks_tui.wording.numbers import (
    PREDICTED,
    counted,
    milliseconds,
    part_of,
    percent,
    sign_of,
    signed_percent,
)
from dlbricks_tui.wording.parallel import parallel_sentences

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from dlbricks_tui.estimate.explanation import Residual, Slice
    from dlbricks_tui.estimate.knowledge import Latency
    from dlbricks_tui.estimate.system_estimate import SystemEstimate
    from dlbricks_tui.store.records import Runtime, System


def setting_text(setting: Setting, choices: Choices, available: Available) -> str:
    """Return the value of a setting in words."""
    value = getattr(choices, setting.value)
    if setting is Setting.SYSTEM:
        return "this host" if value is None else _name_of(value, available.systems)
    if setting is Setting.RUNTIME:
        return "the fastest" if value is None else _runtime_name(value, available.runtimes)
    if setting is Setting.BATCH:
        return "as in the file" if value is None else f"{value}"
    if setting is Setting.THREADS:
        return "any number" if value is None else f"{value}"
    if setting is Setting.PREDICTIONS:
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
_NUMBER = 8
_UNIT = " ms"
# Long names of mixed types take the space of the bar.
_TYPE = 15
_MOST_BAR = 24
# A smaller call overhead gets no row.
_TELLING_SHARE = 0.01


# The place of the cursor, independent of the rows above it: a setting, a slow layer, or an explaining line by its
# number.
Stop: TypeAlias = Setting | LayerStop | int


class EstimateRow(NamedTuple):
    """A row, and its stop if the cursor may stop there."""

    line: Line
    stop: Stop | None = None


@dataclass(frozen=True, slots=True, eq=False)
class EstimateView:
    """The answer of one model with its explanation."""

    system_estimate: SystemEstimate
    # The speed-up of the parallel composition over the sequential one.
    gain: float
    slices: tuple[Slice, ...]
    residual: Residual | None
    # The slowest layers.
    slow: tuple[SlowRow, ...] = ()
    # The names of other systems that have measured some of it.
    other_systems: tuple[str, ...] = ()
    # The suggested next steps.
    steps: tuple[NextStep, ...] = ()
    # True if the user chose the combination, and the fastest one that was measured if that is another.
    is_chosen: bool = False
    fastest: SystemEstimate | None = None


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
    if replaces(under_way, content.system_estimate):
        # Predictions beside the figures of the run would confuse.
        hint = Hint("{workbench.show_run} shows the run", "muted").line
        return (*_plain((*so_far_lines(under_way, width), hint), width), EstimateRow(BLANK), *settings)
    is_here = choices.system in (None, available.host)
    answer = (
        *_answer(content, width, "" if is_here else _name_of(choices.system or "", available.systems)),
        *_what_next(content, under_way, shown),
    )
    coverage = *_plain(_coverage(content.system_estimate, width), width), EstimateRow(BLANK)
    slow = _slowest(content, width)
    return (
        *_plain(answer, width),
        *((EstimateRow(BLANK),) if answer else ()),
        *_plain((*_latencies(content, under_way), *_unchecked(content.system_estimate)), width),
        EstimateRow(BLANK),
        # What is missing is more important than what is slow.
        *((*slow, *coverage) if content.system_estimate.estimate.coverage.complete else (*coverage, *slow)),
        *settings,
        *_selectable(
            (
                *_breakdown(content, width),
                *_residual(content.residual if _has_error(content, under_way) else None),
            ),
            width,
        ),
    )


def _answer(view: EstimateView, width: int, on: str) -> Iterator[Line]:
    """Yield the answer, unless there is none at all: then the lines below say what to do."""
    found = view.system_estimate
    if found.figure is not None or (found.is_measured and not found.estimate.obstacle):
        yield from answer_lines(found, width, chosen=view.is_chosen, fastest=view.fastest, on=on)


def _what_next(view: EstimateView, under_way: UnderWay, shown: Shown) -> Iterator[Line]:
    """Yield the next steps after an answer, or how a mere prediction becomes one."""
    estimate = view.system_estimate.estimate
    if _is_answered(view, under_way):
        if shown.next_steps:
            yield from (hint.line for hint in step_hints(view.steps))
    elif estimate.composed is not None and not estimate.coverage.measured:
        yield from _on_the_way(view, under_way)
        if not under_way.words:
            yield Hint("{workbench.start_run} runs what is missing", "muted").line


def _is_answered(view: EstimateView, under_way: UnderWay) -> bool:
    found = view.system_estimate
    return not under_way.words and (found.end_to_end is not None or found.estimate.coverage.measured > 0)


def _latencies(view: EstimateView, under_way: UnderWay) -> Iterator[Line]:
    system_estimate = view.system_estimate
    estimate, composed = system_estimate.estimate, system_estimate.estimate.composed
    if estimate.obstacle:
        yield line(Span("No estimate is possible.", "strong"))
        yield line(Span(f"{estimate.obstacle}.", "warn"))
        if system_estimate.end_to_end is None:
            yield Hint("{workbench.start_run} with end to end on times the whole model", "muted").line
        else:
            yield _measured(system_estimate.end_to_end)
        return
    if composed is None:
        if not system_estimate.is_measured:
            yield line(Span("Not measured here yet.", "strong"))
        if not under_way.words:
            yield Hint("{workbench.start_run} runs its bricks", "muted").line
        yield from _on_the_way(view, under_way)
        return
    low, high = composed.interval.low_ms, composed.interval.high_ms
    # The signs mark a partial or predicted sum where there are no colours.
    sign = sign_of(partial=estimate.is_partial, predicted=estimate.coverage.predicted > 0)
    of = f"{part_of(estimate.coverage.measured, estimate.coverage.layers)} of its layers"
    whole = f"{milliseconds(low)} to {milliseconds(high)}"
    yield _figure("sequential", composed.sequential_ms, f"only {of}" if estimate.is_partial else whole, sign)
    if estimate.coverage.predicted:
        share = percent(estimate.predicted_share)
        yield line(column("", _NAME), Span(f"{PREDICTED} {share} of it predicted, not measured", "warn"))
    part = " for that part" if estimate.is_partial else ""
    yield _figure("parallel", composed.parallel_ms, f"{view.gain:.2f}x as fast{part}", sign)
    if composed.workers_ms is not None:
        workers = estimate.options.workers or 0
        yield _figure(counted(workers, "worker"), composed.workers_ms, "", sign)
    if (throughput := system_estimate.per_second) is not None:
        variant = system_estimate.variant
        yield line(
            column("per second", _NAME),
            column(milliseconds(throughput), _NUMBER, "strong", right=True),
            # The threads are in the identity of the runtime below.
            Span(f"    {batch_in_words(variant.batch_size)}, {variant.precision.value}", "muted"),
        )
    if composed.call_ms > _TELLING_SHARE * composed.sequential_ms:
        yield _figure("call", composed.call_ms, "once per inference", "")
    if system_estimate.end_to_end is None:
        yield line(column("measured", _NAME, "muted"), Span("not end to end yet", "muted"))
    else:
        yield _measured(system_estimate.end_to_end)
    if not _has_error(view, under_way):
        if system_estimate.error is not None:
            told = "a prediction so far: no error until its bricks are measured"
            yield line(column("error", _NAME, "muted"), Span(told, "warn"))
    elif system_estimate.error is not None:
        style = "good" if abs(system_estimate.error) <= 0.05 else "warn" if abs(system_estimate.error) <= 0.1 else "bad"
        yield line(column("error", _NAME), column(signed_percent(system_estimate.error), _NUMBER, style, right=True))
    yield line(Span(parallel_sentences(system_estimate), "muted"))
    if estimate.is_unfused:
        yield line(Span("unfused layers: fused may take less", "muted"))


def _has_error(view: EstimateView, under_way: UnderWay) -> bool:
    """Return whether the estimate can be compared with the measurement: a pure prediction, and one whose bricks are
    about to be measured, cannot.
    """
    coverage = view.system_estimate.estimate.coverage
    return coverage.measured > 0 and not (coverage.predicted and under_way.words)


def _on_the_way(view: EstimateView, under_way: UnderWay) -> Iterator[Line]:
    """Yield where measurements of a model without any may come from."""
    if under_way.words:
        yield line(Span(under_way.words, "text"))
        yield Hint("{workbench.show_run} shows the run", "muted").line
    for system in view.other_systems:
        yield line(Span(f"{system} has results: select it as the system", "muted"))


def _unchecked(found: SystemEstimate) -> Iterator[Line]:
    if found.variant.precision.is_unchecked and (found.estimate.composed or found.end_to_end):
        yield line(Span(found.variant.precision.in_words, "warn"))


def _measured(whole: Latency) -> Line:
    return _figure("measured", whole.value_ms, f"{milliseconds(whole.low_ms)} to {milliseconds(whole.high_ms)}", "")


def _figure(name: str, value_ms: float, remark: str, sign: str) -> Line:
    return line(
        column(name, _NAME),
        column(sign + milliseconds(value_ms), _NUMBER, "strong", right=True),
        Span(_UNIT, "muted"),
        Span(f" {remark}", "muted"),
    )


def _slowest(view: EstimateView, width: int) -> Iterator[EstimateRow]:
    if view.slow and view.system_estimate.estimate.composed is not None:
        yield EstimateRow(_heading("Slowest layers: ms, share, share so far"))
        for each in view.slow:
            yield EstimateRow(slow_line(each, width), LayerStop(each.slow.part.layers[0]))
        yield EstimateRow(BLANK)


def _settings(choices: Choices, available: Available, width: int, *, expert: bool) -> Iterator[EstimateRow]:
    settings = shown_settings(choices, expert=expert)
    for setting in settings:
        value = cut(setting_text(setting, choices, available), max(4, width - _NAME - 4))
        text = line(column(setting.value, _NAME), Span("◂ ", "muted"), Span(value, "accent"), Span(" ▸", "muted"))
        yield EstimateRow(text, setting)
    if hidden := len(Setting) - len(settings):
        yield EstimateRow(Hint(f"{{workbench.expert}} shows {hidden} expert settings", "muted").line)


def _coverage(system_estimate: SystemEstimate, width: int) -> Iterator[Line]:
    coverage = system_estimate.estimate.coverage
    share = coverage.measured / coverage.layers if coverage.layers else 0.0
    yield _heading("Coverage")
    # A file has more layers than a runtime that fuses some of them.
    layers = counted(coverage.layers, f"{system_estimate.way.level.value} layer")
    told = Span(f" {part_of(coverage.measured, coverage.layers)} of {layers}")
    yield (*bar(share, max(4, min(_MOST_BAR, width - len(told.text))), "░"), told)
    if system_estimate.way.protocol:
        yield line(Span("by ", "muted"), Span(system_estimate.way.runtime, "muted"))
    if ages := measured_ago([system_estimate]):
        yield line(Span(ages, "muted"))
    if coverage.own_carrier:
        yield line(Span(f"{counted(coverage.own_carrier, 'layer')} timed in this model itself", "muted"))
    if coverage.missing:
        yield line(Span(f"{counted(coverage.missing, 'layer')} not measured yet", "warn"))
        if coverage.predicted:
            yield line(Span(f"{counted(coverage.predicted, 'layer')} predicted from other results", "warn"))
        if coverage.measured:
            yield Hint("{workbench.start_run} runs what is missing", "muted").line
    if coverage.unmeasurable:
        yield line(Span(f"{counted(coverage.unmeasurable, 'layer')} that cannot be run alone", "bad"))
        for reason in dict.fromkeys(part.reason for part in system_estimate.estimate.parts if part.reason):
            yield line(Span(f"  {reason}", "muted"))


def _breakdown(view: EstimateView, width: int) -> Iterator[Line]:
    if view.system_estimate.estimate.composed is None or not view.slices:
        return
    yield BLANK
    yield _heading("Where the time goes")
    for each in view.slices:
        yield _slice(each, width)


def _slice(each: Slice, width: int) -> Line:
    figures = (
        column(percent(each.share), 6, "strong", right=True),
        column(milliseconds(each.latency_ms), _NUMBER, right=True),
        Span(_UNIT, "muted"),
    )
    room = width - _TYPE - width_of(figures)
    layers = column(counted(each.layers, "layer"), 14, "muted", right=True)
    told = (layers,) if room >= _MOST_BAR + 14 else ()
    return (column(each.label, _TYPE), *bar(each.share, max(0, min(room, _MOST_BAR))), *figures, *told)


def _residual(left: Residual | None) -> Iterator[Line]:
    if left is None:
        return
    yield BLANK
    yield _heading("Difference from the measurement")
    yield _figure("residual", left.residual_ms, "", "")
    for name, value_ms in (
        ("sampling", left.sampling_ms),
        ("method", left.method_ms),
        ("predictions", left.predicted_ms),
        ("missing", left.lacking_ms),
        ("host", left.host_ms),
    ):
        if value_ms:
            yield _figure(name, value_ms, "allowed for", "")
    yield _figure("unexplained", left.unexplained_ms, "", "")


def _heading(text: str) -> Line:
    return line(Span(text, "heading"))


def _plain(lines: Iterable[Line], width: int) -> Iterator[EstimateRow]:
    return (EstimateRow(each) for each in wrapped_lines(lines, width))


def _selectable(lines: Iterable[Line], width: int) -> Iterator[EstimateRow]:
    """Return rows where the cursor may stop, so that the user can scroll to them."""
    return (EstimateRow(each, at if each else None) for at, each in enumerate(wrapped_lines(lines, width)))
