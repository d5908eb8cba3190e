"""The analyses of one model, with its bounds, gap and kernels, and of many models as tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

from dlbricks_tui.analysis.bounds import BestMeasured, GroupTimes, speed_difference
from dlbricks_tui.analysis.what_if import MeasuredGain, WhatIfKind
from dlbricks_tui.api.analyses import by_execution, known, mean_gain, mean_ratio, middle
from dlbricks_tui.documents.lines import cut_start, names_in
from dlbricks_tui.documents.parts import (
    BLANK_LINE,
    BarFigure,
    CellKind,
    Column,
    Figures,
    Heading,
    Part,
    Sentence,
    Table,
    each_fit,
    name_column,
)
from dlbricks_tui.documents.pictures import Axis, BarRow, LegendSign, Piece, Plot, Rows
from dlbricks_tui.documents.what_ifs import ShownWhatIf, roofline_plot, what_ifs_parts
from dlbricks_tui.estimate.compositions import from_picoseconds
from dlbricks_tui.models.graph import Level
from dlbricks_tui.runtime.variant import threads_in_words
from dlbricks_tui.wording.answers import common_beginning, figure_number, figure_text, way_line
from dlbricks_tui.wording.numbers import (
    PARTLY,
    PREDICTED,
    PREDICTED_LEGEND,
    counted,
    ends_of,
    in_ms,
    milliseconds,
    model_label,
    or_dash,
    percent,
    sign_of,
    signed_percent,
)

if TYPE_CHECKING:
    from dlbricks_tui.analysis.groups import MeasuredExecution
    from dlbricks_tui.api.analyses import Analysis, ModelAnalysis, ModelKernel

BEST = LegendSign(".", "best measured", "bar", "█")
GAP_PARTS = (
    LegendSign("#", "slower layers", "bad", "▓"),
    LegendSign("=", "conversions", "warn", "▒"),
    LegendSign("?", "unexplained", "strong", "▚"),
)
_BAR = 40
# The speed of a shared host varies by less from run to run.
_ANOTHER_SPEED = 0.15
# Shorter parts of a gap are noise.
_LEAST_TOLD_MS = 0.001
# A layer that is slower by less is as fast as the best.
_SLOWER_FROM = 0.05
_MOST_EXECUTIONS = 2
_BUSY_PEAKS = "the peaks were measured on a busy host, so what layers reached counts"


class Bound(NamedTuple):
    """A latency of a model, or a bound below it: as a figure of one model, and as columns of tables over many."""

    name: str
    # The columns with the latency, and with that of the model over it; empty for none.
    title: str
    ratio: str
    value: Callable[[ModelAnalysis], float | None]
    note: str = ""


# All doors show these, the highest first.
BOUNDS: tuple[Bound, ...] = (
    Bound("measured end to end", "MEASURED", "", lambda it: it.measured_ms),
    Bound("estimate", "", "", lambda it: it.sequential_ms),
    Bound("best measured", "BEST", "x BEST", lambda it: it.best_ms),
    Bound(
        "best, longest path",
        "",
        "x PATH",
        lambda it: it.best_parallel_ms,
        "if all branches ran at once, on cores of their own",
    ),
    Bound("roofline", "ROOFLINE", "x ROOFLINE", lambda it: it.roofline_ms, "arithmetic and bytes over the peaks"),
)
_OF_BEST = ("best measured", "best, longest path")


@dataclass(frozen=True, eq=False)
class AnalysisDocument:
    """How fast a model is in one execution, how fast it could be, and which changes are worth making."""

    found: Analysis

    def prepare(self) -> None:
        """Compute what takes long, so that drawing takes little."""
        self.found.answer, self.found.groups, self.changes  # noqa: B018 - they are kept

    @cached_property
    def changes(self) -> tuple[ShownWhatIf, ...]:
        """The what-ifs with their proofs."""
        measured = {it.execution: it for it in self.found.executions}
        return tuple(
            ShownWhatIf(it, self.found.proofs.get(it.id), None if it.change is None else measured.get(it.change))
            for it in self.found.what_ifs
        )

    def with_proof(self, what_if: str, gain: MeasuredGain) -> AnalysisDocument:
        """Return the analysis with a new proof."""
        return AnalysisDocument(replace(self.found, proofs={**self.found.proofs, what_if: gain}))

    def whole(self, *, with_layers: bool = False) -> Iterator[Part]:
        """Yield all of it; the layers only if they are wanted."""
        yield Sentence(self.headline, "strong")
        yield Sentence(self.way)
        yield BLANK_LINE
        yield from self.latencies()
        if self.found.gap is not None:
            yield BLANK_LINE
            yield from self.gap(with_bar=True)
        yield BLANK_LINE
        yield from what_ifs_parts(self.changes)
        if with_layers:
            yield from self.layers()

    @property
    def is_unmeasured(self) -> bool:
        """Return whether nothing was measured of the model as it is analysed."""
        baseline, estimate = self.found.baseline.found, self.found.baseline.estimate
        is_known = estimate.composed is not None or estimate.obstacle
        return baseline.end_to_end is None and (not is_known or estimate.predicted_share >= 1)

    @property
    def headline(self) -> str:
        """The latency of the model, and how many times the best that is."""
        baseline, best, ratio = self.found.baseline, self.found.best, self.found.over_best
        figure, composed = baseline.found.figure, baseline.estimate.composed
        name = self.found.source.name
        if figure is not None:
            latency = f"{figure_text(baseline.found)} {figure.basis.value}"
        elif composed is not None:
            latency = f"{_sign_of(baseline)}{in_ms(composed.sequential_ms)} estimated"
        else:
            obstacle = baseline.estimate.obstacle
            return f"{name}: {f'no estimate is possible: {obstacle}' if obstacle else 'nothing was measured'}"
        if best is None or ratio is None:
            return f"{name}: {latency}"
        times = f"{PREDICTED if best.is_predicted else ''}{ratio.value:.2f} times the best measured"
        return f"{name}: {latency}, {times} ({ratio.low:.2f} to {ratio.high:.2f})"

    @property
    def way(self) -> str:
        """The execution that is analysed."""
        return way_line(self.found.baseline.found.way, self.found.baseline.found.variant)

    @property
    def bounds(self) -> tuple[BarFigure, ...]:
        """The latencies of the model and the bounds below them, the highest first."""
        best, is_predicted = self.found.best, self.found.best is not None and self.found.best.is_predicted
        signs = {"estimate": _sign_of(self.found.baseline), **dict.fromkeys(_OF_BEST, PREDICTED * is_predicted)}
        found, latency = self.found.baseline.found, self.found.baseline.estimate.latency
        notes = {"best measured": _shares(best)}
        notes |= {"roofline": _BUSY_PEAKS} if self.found.lacks_peaks else {}
        notes |= {} if latency is None else {"estimate": f"95 %: {ends_of(*latency[1:])} ms"}
        rows = []
        for it in BOUNDS:
            latency_ms, note = it.value(self.found.answer), notes.get(it.name, it.note)
            if latency_ms is None:
                rows.append(BarFigure(it.name, "-"))
            else:
                text, style = f"{signs.get(it.name, '')}{in_ms(latency_ms)}", "warn" if note == _BUSY_PEAKS else "muted"
                if it.name == "estimate" and found.figure is not None and not found.figure.is_measured:
                    # Nothing but the range of a prediction is its answer.
                    text, note = figure_text(found), ""
                rows.append(BarFigure(it.name, text, latency_ms, remarks=(note,) * bool(note), style=style))
        return tuple(rows)

    def latencies(self) -> Iterator[Part]:
        """Yield the latencies and the bounds, and which executions of the best were measured at another speed."""
        yield Figures(self.bounds, has_bars=False)
        best = self.found.best
        won = set() if best is None else {winner.execution for winner in best.winners if winner.latency_ps}
        for number, one in enumerate(() if best is None else best.executions):
            share = speed_difference(self.found.baseline, one)
            if number in won and share > _ANOTHER_SPEED:
                speed = f"the host was {percent(share)} faster or slower"
                yield Sentence(f"{_short_name(one)} was measured when {speed}: measure both in one run", "warn")

    @property
    def gap_parts(self) -> tuple[tuple[LegendSign, float | None], ...]:
        """The latencies of the parts of the gap above the best, as far as they are known; none without a best."""
        gap = self.found.gap
        if gap is None or self.found.best is None:
            return ()
        return tuple(zip(GAP_PARTS, (gap.slower_layers_ms, gap.conversions_ms, gap.unexplained_ms), strict=True))

    def gap(self, *, with_bar: bool = False) -> Iterator[Part]:
        """Yield the size of the gap and its parts, with a bar where there is no picture of them."""
        gap, best, parts = self.found.gap, self.found.best, self.gap_parts
        if gap is None:
            return
        against = "the end-to-end latency"
        if gap.unexplained_ms is None:
            against = "the estimate, as nothing is timed end to end"
        yield Sentence(f"gap to the best: {in_ms(gap.total_ms)} of {against}", "heading")
        # The shares are those of the best and all parts together.
        whole_ms = (0.0 if best is None else best.latency_ms) + sum(max(0.0, ms or 0.0) for _, ms in parts)
        if with_bar:
            bar = "".join(sign.mark * round(max(0.0, ms or 0.0) / (whole_ms or 1.0) * _BAR) for sign, ms in parts)
            yield Sentence(f"[{bar.rjust(_BAR, BEST.mark)}]")
        rows = []
        for sign, ms in parts:
            remarks = () if ms is None or not whole_ms else (f"{signed_percent(ms / whole_ms):>7}",)
            rows.append(BarFigure(f"{sign.mark} {sign.name}", or_dash(in_ms, ms), remarks=remarks, style=sign.style))
        yield Figures(tuple(rows))

    @property
    def gap_sentence(self) -> str:
        """The best and the parts of the gap above it as a sentence."""
        if self.found.best is None:
            return "Not all layers were measured, so there is no best yet."
        told = [f"{sign.name} {in_ms(ms)}" for sign, ms in self.gap_parts if ms and ms >= _LEAST_TOLD_MS]
        above = f"above it are {', '.join(told)}" if told else "there is no gap above it"
        return f"The best measured takes {in_ms(self.found.best.latency_ms)}; {above}."

    @property
    def gap_picture(self) -> Rows | None:
        """The latency divided into the best and the gap, above the bounds."""
        known = [it for it in self.bounds if it.value >= 0]
        if not known:
            return None
        best = [] if self.found.best is None else [(BEST, self.found.best.latency_ms)]
        parts = [*best, *((sign, ms or 0.0) for sign, ms in self.gap_parts)]
        told = [(sign, ms) for sign, ms in parts if ms > 0]
        rows = []
        for place, it in enumerate(known):
            is_divided = place == 0 and bool(told)
            pieces = stacked(told) if is_divided else (Piece(0.0, it.value, "=", "▄", "muted"),)
            rows.append(BarRow(it.name, pieces, text=it.text, style="muted" if place else "strong"))
        axis = Axis(0.0, max(it.value for it in known))
        return Rows("Latency, ms", self.gap_sentence, axis, tuple(rows), tuple(sign for sign, _ in told))

    @property
    def roofline(self) -> Plot | None:
        """The layers under the peaks of the system; None if either is unknown."""
        found = self.found
        if found.roof is None or not found.points:
            return None
        return roofline_plot(found.points, found.roof)

    def layers(self) -> Iterator[Part]:
        """Yield a row for each group of layers, those first that lose most."""
        common = common_beginning([name for it in self.found.groups for name in it.layers])
        yield Heading(f"Layers of {common}..." if common else "Layers")
        yield Table(layer_columns(common), self.found.groups)


def layer_columns(common: str) -> tuple[Column[GroupTimes], ...]:
    """Return the columns of groups of layers, whose names all begin with some words that the title says."""

    def layers(it: GroupTimes) -> str:
        return ", ".join(name.removeprefix(common) for name in it.layers)

    def slower(it: GroupTimes) -> float | None:
        return it.latency_ps / it.best_ps - 1.0 if it.best_ps else None

    def style(it: GroupTimes) -> str:
        return "bad" if (slower(it) or 0.0) >= _SLOWER_FROM else "muted"

    fit = each_fit(lambda text, width: names_in(text.split(", "), width))
    return (
        Column("layers", layers, CellKind.NAME, fit=fit),
        Column("here ms", lambda it: milliseconds(from_picoseconds(it.latency_ps)), style="strong"),
        Column("best ms", lambda it: milliseconds(from_picoseconds(it.best_ps))),
        Column("slower", lambda it: or_dash(signed_percent, slower(it)), style=style),
        name_column("fastest", fastest_words, "muted"),
    )


def fastest_words(it: GroupTimes) -> str:
    """Return the executions in which layers were fastest: `ONNX Runtime on 1 thread + MXNet on 2 threads`."""
    return " + ".join(dict.fromkeys(map(_short_name, it.fastest)))


def _short_name(one: MeasuredExecution) -> str:
    """Return an execution in few words: its framework, settings of kernels, and threads."""
    runtime, threads = one.execution.runtime, one.found.variant.threads
    told = [runtime.traits.title, *(value.lower() for _, value in runtime.settings.environment)]
    told += ["unfused"] * (one.graph.level is Level.WRITTEN)
    return " ".join([*told, f"on {threads_in_words(threads)}"] if threads else told)


def stacked(parts: Sequence[tuple[LegendSign, float]]) -> tuple[Piece, ...]:
    """Return values as the parts of one bar; negative ones stand left of zero."""
    pieces, low, high = [], 0.0, 0.0
    for sign, value in parts:
        begin = high if value > 0 else low + value
        pieces.append(sign.piece(begin, begin + abs(value)))
        low, high = low + min(0.0, value), high + max(0.0, value)
    # The widest last, so that its neighbours do not hide a small part between them.
    return tuple(sorted(pieces, key=lambda it: it.low - it.high))


def _sign_of(baseline: MeasuredExecution) -> str:
    return sign_of(partial=baseline.estimate.is_partial, predicted=baseline.estimate.predicted_share > 0)


def _shares(best: BestMeasured | None) -> str:
    """Return how much of the best each execution has won, by time."""
    if best is None or not best.latency_ps:
        return ""
    won: dict[int, int] = {}
    for winner in best.winners:
        won[winner.execution] = won.get(winner.execution, 0) + winner.latency_ps
    several = sorted(((paid, number) for number, paid in won.items() if paid), reverse=True)
    shown, left = several[:_MOST_EXECUTIONS], len(several) - _MOST_EXECUTIONS
    told = [f"{percent(paid / best.latency_ps)} {_short_name(best.executions[it])}" for paid, it in shown]
    return ", ".join(told) + (f" and {left} more" if left > 0 else "")


_UNKNOWN = "(the runtime does not tell)"


def kernels_table(found: Sequence[ModelKernel]) -> Table[Sequence[ModelKernel]]:
    """Return a row for each kernel with its layers and their time, and the reasons against other kernels below it."""
    held: dict[str, list[ModelKernel]] = {}
    for it in found:
        held.setdefault(it.implementation, []).append(it)
    whole_ms = _sum_ms(found)
    columns: tuple[Column[Sequence[ModelKernel]], ...] = (
        name_column("kernel", lambda its: its[0].implementation or _UNKNOWN),
        Column("layers", lambda its: str(len(its))),
        Column("conversions", lambda its: str(sum(len(it.conversions) for it in its) or "-")),
        Column("ms", lambda its: milliseconds(_sum_ms(its))),
        Column("share", lambda its: percent(_sum_ms(its) / whole_ms) if whole_ms else "-"),
    )
    return Table(columns, sorted(held.values(), key=lambda its: -_sum_ms(its)), _reasons)


def layer_kernels_table(found: Sequence[ModelKernel]) -> Table[ModelKernel]:
    """Return a row for each layer with its kernel and its conversions, the longest first."""
    columns: tuple[Column[ModelKernel], ...] = (
        # The ends of long names tell layers apart.
        Column("layer", lambda it: it.layer, CellKind.NAME, fit=each_fit(cut_start)),
        Column("ms", lambda it: milliseconds(it.latency_ms)),
        name_column("kernel", lambda it: it.implementation or _UNKNOWN),
        name_column("conversions", lambda it: ", ".join(it.conversions) or "-"),
    )
    return Table(columns, sorted(found, key=lambda it: -it.latency_ms))


def _reasons(found: Sequence[ModelKernel]) -> Iterator[Part]:
    """Yield each reason once, with the number of its layers, or with the name of its only one."""
    layers: dict[tuple[str, bool], list[str]] = {}
    for it in found:
        for reason in it.refusals:
            layers.setdefault((reason, it.derived), []).append(it.layer)
    for (reason, is_derived), names in layers.items():
        where = names[0] if len(names) == 1 else counted(len(names), "layer")
        yield Sentence(f"{where}: {reason}{' (derived)' * is_derived}", "muted")


def _sum_ms(found: Sequence[ModelKernel]) -> float:
    return sum(it.latency_ms for it in found)


_GAP_SHARES = ("BEST", "SLOWER", "CONVERSIONS")
_LONGEST_NAME = 60
_BOUND = "<"


@dataclass(frozen=True, slots=True)
class _Numbers:
    """A column of numbers: its title, the values of the models, how they are written, and their mean."""

    title: str
    value: Callable[[Analysis], float | None]
    written: Callable[[float], str]
    mean: Callable[[Iterable[float | None]], float | None] | None = None
    # The cell of a model, if it says more than the value.
    text: Callable[[Analysis], str] | None = None

    def cells(self, models: Sequence[Analysis]) -> list[str]:
        """Return a cell for each model, the mean, and the number of models without a value."""
        values = [self.value(it) for it in models]
        texts = [or_dash(self.written, it) for it in values] if self.text is None else map(self.text, models)
        mean = "" if self.mean is None else or_dash(self.written, self.mean(values))
        return [*texts, mean, str(len(values) - len(known(values)))]


def analyses_parts(models: Sequence[Analysis]) -> Iterator[Part]:
    """Yield the three tables of each execution, with a row for each model, and what the signs in them mean."""
    for alike in by_execution(models):
        yield Sentence(f"{AnalysisDocument(alike[0]).way}: {counted(len(alike), 'model')}")
        yield BLANK_LINE
        yield bounds_table(alike)
        yield from map(Sentence, bounds_remarks(alike))
        yield BLANK_LINE
        if any(it.gains for it in alike):
            yield gains_table(alike)
        yield from map(Sentence, gains_remarks(alike))
        yield BLANK_LINE
        if any(it.gap is not None for it in alike):
            yield gaps_table(alike)
            yield BLANK_LINE
    yield from map(Sentence, _notes(models))


def bounds_table(models: Sequence[Analysis]) -> Table[Sequence[str]]:
    """Return the latencies, the bounds below them, and the ratios between them."""

    def text(bound: Bound, it: Analysis) -> str:
        value_ms = bound.value(it.answer)
        if bound.title == "MEASURED" and value_ms is None and it.answer.sequential_ms is not None:
            part = f"{_sign_of(it.baseline)}{milliseconds(it.answer.sequential_ms)}"
            return f"({figure_number(it.baseline.found) or part})"
        sign = PREDICTED if bound.title == "BEST" and it.is_predicted else ""
        return or_dash(lambda ms: f"{sign}{milliseconds(ms)}", value_ms)

    def values(bound: Bound) -> _Numbers:
        return _Numbers(bound.title, lambda it: bound.value(it.answer), milliseconds, text=lambda it: text(bound, it))

    def ratios(bound: Bound) -> _Numbers:
        return _Numbers(bound.ratio, lambda it: it.over(bound.value(it.answer)), "{:.2f}".format, mean_ratio)

    columns = [*(values(it) for it in BOUNDS if it.title), *(ratios(it) for it in BOUNDS if it.ratio)]
    return _table("BOUNDS in ms", "geometric mean", columns, models)


def bounds_remarks(models: Sequence[Analysis]) -> Iterator[str]:
    """Yield the models without a best, and how to get it."""
    incomplete = dict.fromkeys(it.answer.model for it in models if it.answer.best_ms is None)
    if incomplete:
        how = "`dlbricks analyze MODEL --measure` measures them"
        yield f"no best of {', '.join(incomplete)}, as results of layers are missing: {how}"


def gains_table(models: Sequence[Analysis]) -> Table[Sequence[str]]:
    """Return the gains of each kind of changes that has results."""
    kinds = [kind for kind in WhatIfKind if any(kind in it.gains for it in models)]
    return _table("GAINS in %", "geometric mean", [_gain(kind) for kind in kinds], models)


def gains_remarks(models: Sequence[Analysis]) -> Iterator[str]:
    """Yield the kinds of changes without results, and how to get these."""
    lacking = [kind.value for kind in WhatIfKind if all(kind not in it.gains for it in models)]
    if lacking:
        kinds = "" if len(lacking) == len(WhatIfKind) else f" --kinds {','.join(lacking)}"
        how = f"`dlbricks analyze MODEL --measure{kinds}` measures them"
        yield f"no model has results for these kinds of changes: {', '.join(lacking)}: {how}"


def gaps_table(models: Sequence[Analysis]) -> Table[Sequence[str]]:
    """Return the gap to the best, and the parts of the latency in percent."""

    def share(title: str, it: Analysis) -> float | None:
        parts, gap = it.shares, it.gap
        if parts is None or gap is None or (title == "UNEXPLAINED" and gap.unexplained_ms is None):
            return None
        return 100 * dict(zip((*_GAP_SHARES, "UNEXPLAINED"), parts, strict=True))[title]

    columns = [
        _Numbers("GAP ms", lambda it: None if it.gap is None else it.gap.total_ms, milliseconds),
        *(_Numbers(it, partial(share, it), "{:.1f}".format, middle) for it in (*_GAP_SHARES, "UNEXPLAINED")),
    ]
    return _table("GAP in % of the latency", "median", columns, models)


def _notes(models: Sequence[Analysis]) -> list[str]:
    """Return what columns and signs mean, of those that the tables have."""
    gains = [gain for it in models for gain in it.gains.values()]
    answers, estimates = [it.answer for it in models], [it.baseline.estimate for it in models]
    is_untimed = any(it.measured_ms is None and it.sequential_ms is not None for it in answers)
    has_gaps = any(it.gap is not None for it in models)
    notes = {
        "x: the latency over the best, over the longest path through it, and over the roofline": True,
        "( ) estimate: the model was not timed end to end": is_untimed,
        PREDICTED_LEGEND: any(it.is_predicted for it in models),
        f"{PARTLY}before a latency: the estimate leaves layers out": any(it.is_partial for it in estimates),
        "gains: the share of the latency that the best change of a kind saves, predicted/proved": bool(gains),
        f"{_BOUND} a bound that nobody can run": not all(gain.possible for gain in gains),
        "best + slower layers + conversions + unexplained are the whole latency": has_gaps,
    }
    return [note for note, applies in notes.items() if applies]


def _table(title: str, mean: str, numbers: Sequence[_Numbers], models: Sequence[Analysis]) -> Table[Sequence[str]]:
    """Return a row for each model, the mean over them, and the number of models without a value."""
    names = [
        *(model_label(it.answer.model, it.source.table1_id, _LONGEST_NAME) for it in models),
        mean,
        "without value",
    ]
    columns: list[Column[Sequence[str]]] = [Column(title, itemgetter(0), CellKind.NAME, is_named=True)]
    columns += [Column(it.title, itemgetter(at), is_named=True) for at, it in enumerate(numbers, 1)]
    return Table(tuple(columns), list(zip(names, *(it.cells(models) for it in numbers), strict=True)))


def _gain(kind: WhatIfKind) -> _Numbers:
    def text(it: Analysis) -> str:
        found = it.gains.get(kind)
        if found is None:
            return "-"
        proved = "" if found.proved is None else f"/{_points(found.proved)}"
        return f"{'' if found.possible else _BOUND}{_points(found.gain)}{proved}"

    return _Numbers(kind.value.upper(), lambda it: it.gain(kind), _points, mean_gain, text)


def _points(share: float) -> str:
    rounded = round(100 * share)
    return f"{rounded:+}" if rounded else "0"
