"""An estimate as the rows of its panel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from dlbricks_tui.tui.key_words import Hint
from dlbricks_tui.tui.lines import BLANK, Line, Span, bar, column, cut, line, width_of, wrapped
from dlbricks_tui.tui.widgets.estimate.settings import Setting, shown
from dlbricks_tui.wording.numbers import PARTLY, counted, milliseconds, part_of, percent, signed_percent

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from dlbricks_tui.estimate.explanation import Residual, Slice
    from dlbricks_tui.estimate.knowledge import Latency
    from dlbricks_tui.estimate.system_estimate import SystemEstimate
    from dlbricks_tui.tui.choices import Available, Choices

_NAME = 12
_NUMBER = 8
_UNIT = " ms"
# A type of several kinds has a long name; its bar gives way.
_TYPE = 15
_MOST_BAR = 24
# A call that is less of an estimate than this is not worth a row.
_TELLING_SHARE = 0.01


class EstimateRow(NamedTuple):
    """A row, the setting that it changes if it is one, and whether the cursor may stand on it."""

    line: Line
    setting: Setting | None = None
    rest: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class EstimateView:
    """What the panel shows of one model."""

    judged: SystemEstimate
    # How many times as fast the parallel composition is as the sequential one.
    gain: float
    slices: tuple[Slice, ...]
    residual: Residual | None
    # The other systems that have measured some of it, by their names.
    elsewhere: tuple[str, ...] = ()


# Lines to read in place of an estimate.
Note = tuple[Line | Hint, ...]

CHOOSE_A_MODEL: Note = (
    line(Span("No model is open.", "strong")),
    Hint("{models.open} among the models opens one.", "muted"),
)
READING: Note = (line(Span("Reading the model.", "muted")),)


def rows(
    subject: EstimateView | Note, choices: Choices, available: Available, width: int, under_way: str = ""
) -> tuple[EstimateRow, ...]:
    """All rows, from what matters most to what explains it; a run under way is told of where nothing else is known."""
    settings = (EstimateRow(_heading("Settings")), *_settings(choices, available, width))
    if not isinstance(subject, EstimateView):
        lines = (each.line if isinstance(each, Hint) else each for each in subject)
        said = (each for long in lines for each in wrapped(long, width))
        return (*_plain(said), EstimateRow(BLANK), *settings)
    return (
        *_plain(each for long in _latencies(subject, under_way) for each in wrapped(long, width)),
        EstimateRow(BLANK),
        *settings,
        EstimateRow(BLANK),
        *_plain(each for long in _coverage(subject.judged, width) for each in wrapped(long, width)),
        *_readable(_breakdown(subject, width)),
        *_readable(each for long in _residual(subject.residual) for each in wrapped(long, width)),
    )


def _latencies(view: EstimateView, under_way: str) -> Iterator[Line]:
    judged = view.judged
    estimate, composed = judged.estimate, judged.estimate.composed
    if estimate.obstacle:
        yield line(Span("No estimate of it is possible.", "strong"))
        yield line(Span(f"{estimate.obstacle}.", "warn"))
        if judged.end_to_end is None:
            yield Hint("{workbench.start_run}, with end to end on, times the whole model", "muted").line
        else:
            yield _measured(judged.end_to_end)
        return
    if composed is None:
        yield line(Span("Nothing of it was measured here yet.", "strong"))
        if under_way:
            yield line(Span(under_way, "text"))
            yield Hint("{workbench.go_to_run} shows the run", "muted").line
        else:
            yield Hint("{workbench.start_run} runs its bricks", "muted").line
        for system in view.elsewhere:
            yield line(Span(f"{system} has results: choose it as the system", "muted"))
        return
    low, high = composed.interval.low_ms, composed.interval.high_ms
    # The sign says where there is no colour that layers are left out.
    sign = PARTLY if estimate.is_partial else ""
    of = f"{part_of(estimate.coverage.measured, estimate.coverage.layers)} of its layers"
    whole = f"{milliseconds(low)} to {milliseconds(high)}"
    yield _figure("sequential", composed.sequential_ms, f"only {of}" if estimate.is_partial else whole, sign)
    part = " for that part" if estimate.is_partial else ""
    yield _figure("parallel", composed.parallel_ms, f"{view.gain:.2f}x as fast{part}", sign)
    if composed.workers_ms is not None:
        workers = estimate.options.workers or 0
        yield _figure(counted(workers, "worker"), composed.workers_ms, "", sign)
    if composed.call_ms > _TELLING_SHARE * composed.sequential_ms:
        yield _figure("call", composed.call_ms, "once in each", "")
    if judged.end_to_end is None:
        yield line(column("measured", _NAME, "muted"), Span("not end to end yet", "muted"))
    else:
        yield _measured(judged.end_to_end)
    if judged.error is not None:
        style = "good" if abs(judged.error) <= 0.05 else "warn" if abs(judged.error) <= 0.1 else "bad"
        yield line(column("error", _NAME), column(signed_percent(judged.error), _NUMBER, style, right=True))
    if estimate.is_unfused:
        yield line(Span("unfused layers: fused may take less", "muted"))


def _measured(whole: Latency) -> Line:
    return _figure("measured", whole.value_ms, f"{milliseconds(whole.low_ms)} to {milliseconds(whole.high_ms)}", "")


def _figure(name: str, value_ms: float, remark: str, sign: str) -> Line:
    return line(
        column(name, _NAME),
        column(sign + milliseconds(value_ms), _NUMBER, "strong", right=True),
        Span(_UNIT, "muted"),
        Span(f" {remark}", "muted"),
    )


def _settings(choices: Choices, available: Available, width: int) -> Iterator[EstimateRow]:
    for setting in Setting:
        value = cut(shown(setting, choices, available), max(4, width - _NAME - 4))
        text = line(column(setting.value, _NAME), Span("◂ ", "muted"), Span(value, "accent"), Span(" ▸", "muted"))
        yield EstimateRow(text, setting, True)


def _coverage(judged: SystemEstimate, width: int) -> Iterator[Line]:
    coverage = judged.estimate.coverage
    share = coverage.measured / coverage.layers if coverage.layers else 0.0
    yield _heading("Coverage")
    told = Span(f" {part_of(coverage.measured, coverage.layers)} of {counted(coverage.layers, 'layer')}")
    yield (*bar(share, max(4, min(_MOST_BAR, width - _MOST_BAR)), "░"), told)
    if judged.way.protocol:
        yield line(Span("by ", "muted"), Span(judged.way.runtime, "muted"))
    if coverage.own_carrier:
        yield line(Span(f"{counted(coverage.own_carrier, 'layer')} timed in this very model", "muted"))
    if coverage.missing:
        yield line(Span(f"{counted(coverage.missing, 'layer')} not measured yet", "warn"))
        yield Hint("{workbench.start_run} runs what is missing", "muted").line
    if coverage.unmeasurable:
        yield line(Span(f"{counted(coverage.unmeasurable, 'layer')} that cannot be run alone", "bad"))
        for reason in dict.fromkeys(part.reason for part in judged.estimate.parts if part.reason):
            yield line(Span(f"  {reason}", "muted"))


def _breakdown(view: EstimateView, width: int) -> Iterator[Line]:
    if view.judged.estimate.composed is None or not view.slices:
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
    yield _heading("What the estimate leaves open")
    yield _figure("residual", left.residual_ms, "beyond it", "")
    for name, value_ms in (
        ("sampling", left.sampling_ms),
        ("method", left.method_ms),
        ("missing", left.lacking_ms),
        ("host", left.host_ms),
    ):
        if value_ms:
            yield _figure(name, value_ms, "of it at most", "")
    yield _figure("unexplained", left.unexplained_ms, "", "")
    if left.host_told:
        told = f"the host was {left.host_told} for the model as for its bricks: both can be measured again, together"
        yield line(Span(told, "warn"))


def _heading(text: str) -> Line:
    return line(Span(text, "heading"))


def _plain(lines: Iterable[Line]) -> Iterator[EstimateRow]:
    return (EstimateRow(each) for each in lines)


def _readable(lines: Iterable[Line]) -> Iterator[EstimateRow]:
    """Rows that the cursor walks over, so that what is further down can be reached."""
    return (EstimateRow(each, None, bool(each)) for each in lines)
