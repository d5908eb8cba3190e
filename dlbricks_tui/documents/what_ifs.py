"""The what-ifs of a model: gain, proof, setting, reasons to trust a prediction, and the roofline."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from dlbricks_tui.analysis.what_if import Doubt, Gain, MeasuredGain, WhatIf, WhatIfKind
from dlbricks_tui.documents.parts import Column, Fact, Heading, Names, Part, Sentence, Table, word_column
from dlbricks_tui.documents.pictures import Axis, BarRow, LegendSign, Mark, Piece, Plot, Rows, Series
from dlbricks_tui.models.kinds import Kind
from dlbricks_tui.wording.answers import what_if_words
from dlbricks_tui.wording.numbers import counted, in_ms, milliseconds, percent, signed_percent

if TYPE_CHECKING:
    from dlbricks_tui.analysis.bounds import LayerPoint, Roof
    from dlbricks_tui.analysis.groups import MeasuredExecution

NO_WHAT_IFS = "none, as no other execution has results of all layers"
# Where a proof and a prediction differ by more, the prediction is wrong. A proof with a wider interval cannot tell.
_AGREE_WITHIN = 0.10
# Larger losses are not told apart: the interval of a noisy latency may reach down to almost zero.
_LARGEST_LOSS = -9.99
# In pictures, larger losses are drawn at the left edge.
_LARGEST_DRAWN_LOSS = -1.0
_PREDICTED, _PROVED = "o", "#"
# Why unproved what-ifs are not to be trusted: in a list, and as a sentence about one of them.
_DOUBTS = {
    Doubt.PARALLEL: ("branches at once (never gained)", "Branches at once gained in no proof so far."),
    Doubt.SMALL_GAIN: ("gains below 10 %", "A gain below 10 % can be a loss: prove it."),
    Doubt.LOSS: ("", "Sizes of losses are often wrong: prove it."),
}


class ShownWhatIf(NamedTuple):
    """A what-if, with its newest proof and the execution that it is predicted from, as far as there are any."""

    what_if: WhatIf
    proof: MeasuredGain | None
    changed: MeasuredExecution | None

    @property
    def is_bound(self) -> bool:
        """Return whether nobody can make the change."""
        return self.what_if.change is None

    @property
    def words(self) -> str:
        """The change in plain words."""
        return what_if_words(self.what_if.id)

    @property
    def predicted(self) -> str:
        """The predicted gain; a loss has no size here, as predicted ones are often wrong."""
        gain = self.what_if.gain.value
        return "no gain" if gain < 0 else signed_percent(gain)

    @property
    def gain(self) -> Gain:
        """The gain of the proof, and without one the predicted gain."""
        return self.what_if.gain if self.proof is None else self.proof.with_interval


def interval_of(gain: Gain) -> str:
    """Return the 95 % interval of a gain in percent: `-21 to +1`; `<-999` for the end of a larger loss.

    It ends at 100 %, since no change saves more time than there is.
    """
    if gain.high < _LARGEST_LOSS:
        return "below -999"
    low = "<-999" if gain.low < _LARGEST_LOSS else _in_points(gain.low)
    return f"{low} to {_in_points(min(gain.high, 1.0))}"


def _in_points(share: float) -> str:
    """Return a share in percent, without the unit: `+3`."""
    return f"{round(100 * share):+}"


def gain_with_interval(gain: Gain) -> str:
    """Return a gain with its interval: `-9.4 % (-21 to +1)`."""
    return f"{signed_percent(gain.value)} ({interval_of(gain)})"


def largest_gain(changes: Sequence[ShownWhatIf]) -> str:
    """Return the change that saves most, by its proof if it has one; empty if none saves anything for certain."""
    certain = [it for it in changes if not it.is_bound and it.gain.low > 0]
    best = max(certain, key=lambda it: it.gain.value, default=None)
    if best is None:
        return ""
    remark = ", proved" if best.proof is not None else ", to be proved" if best.what_if.doubt is not None else ""
    return f"largest gain: {best.words}, {gain_with_interval(best.gain)}{remark}"


def gains_sentence(changes: Sequence[ShownWhatIf]) -> str:
    """Return how many what-ifs save time for certain, and the largest gain, as a sentence."""
    possible = [it for it in changes if not it.is_bound]
    if not possible:
        return "Which change is worth making is not known: no other execution has results of all layers."
    certain = sum(it.gain.low > 0 for it in possible)
    largest = largest_gain(changes)
    if not largest:
        return f"No change is worth making: none of {counted(len(possible), 'change')} saves time for certain."
    return f"{certain} of {counted(len(possible), 'change')} {'saves' if certain == 1 else 'save'} time; {largest}."


def gains_picture(changes: Sequence[ShownWhatIf]) -> Rows | None:
    """Return the predicted and the proved gains of what-ifs with their intervals, the largest gain first."""
    if not changes:
        return None
    ordered = sorted(changes, key=lambda it: -it.gain.value)
    rows = []
    for it in ordered:
        predicted, gain = it.what_if.gain, it.gain
        low, high = max(_LARGEST_DRAWN_LOSS, gain.low), min(1.0, gain.high)
        marks = [Mark(100 * max(_LARGEST_DRAWN_LOSS, predicted.value), _PREDICTED, "accent")]
        if it.proof is not None:
            marks.append(Mark(100 * max(_LARGEST_DRAWN_LOSS, gain.value), _PROVED, style_of(gain.value)))
        if high <= _LARGEST_DRAWN_LOSS:
            low = high = _LARGEST_DRAWN_LOSS
        limit = " limit" if it.is_bound and predicted.value >= 0 else ""
        text = f"{it.predicted}{limit}" if it.proof is None else f"{signed_percent(gain.value)} proved"
        style = "good" if gain.low > 0 else "bad" if gain.high < 0 else "text"
        rows.append(BarRow(it.words, (Piece(100 * low, 100 * high, "-", "─", "muted"),), tuple(marks), text, style))
    lowest = min(100 * max(_LARGEST_DRAWN_LOSS, it.what_if.gain.low) for it in ordered)
    across = Axis(min(-10.0, lowest), max(20.0, *(100 * min(1.0, it.what_if.gain.high) for it in ordered)))
    legend = (
        LegendSign(_PREDICTED, "predicted", "accent"),
        *([LegendSign(_PROVED, "proved", "good")] if any(it.proof for it in ordered) else []),
        LegendSign("-", "95 % interval", "muted", "─"),
    )
    return Rows("Gain, %", gains_sentence(changes), across, tuple(rows), legend, upright=0.0)


def what_if_columns(
    changes: Sequence[ShownWhatIf], under_way: Mapping[str, str] | None = None
) -> tuple[Column[ShownWhatIf], ...]:
    """Return the columns of what-ifs; `under_way` has the words on proofs under way, by the ids of their what-ifs."""
    proving = under_way or {}

    def proved(it: ShownWhatIf) -> str:
        told = "cannot" if it.is_bound else "not yet" if it.proof is None else signed_percent(it.proof.gain)
        return proving.get(it.what_if.id, told)

    def style(it: ShownWhatIf) -> str:
        if it.what_if.id in proving:
            return "warn"
        return "muted" if it.proof is None else style_of(it.proof.gain)

    columns: tuple[Column[ShownWhatIf], ...] = (
        word_column("what if", lambda it: it.words),
        Column("gain", lambda it: it.predicted, style=lambda it: style_of(it.what_if.gain.value)),
        Column("95 %", lambda it: interval_of(it.what_if.gain), style="muted", is_optional=True, goes_last=True),
        Column("ms", lambda it: milliseconds(it.what_if.estimate_ms)),
        Column("proved", proved, style=style),
    )
    interval: Column[ShownWhatIf] = Column(
        "95 %",
        lambda it: "" if it.proof is None else interval_of(it.proof.with_interval),
        style="muted",
        is_optional=True,
    )
    return (*columns, interval) if any(it.proof for it in changes) else columns


def style_of(gain: float) -> str:
    """Return the style of a gain, or of a loss."""
    return "good" if gain > 0 else "bad"


def what_ifs_parts(changes: Sequence[ShownWhatIf]) -> Iterator[Part]:
    """Yield a row for each what-if, and under it the setting and the layers that are responsible."""
    if not changes:
        yield Sentence(f"what-ifs: {NO_WHAT_IFS}")
        return

    def how(it: ShownWhatIf) -> Iterator[Part]:
        yield Sentence(it.what_if.how if it.is_bound else f"{it.what_if.how} (--prove {it.what_if.id})")
        if it.what_if.layers:
            yield Names(it.what_if.layers)

    yield Table(what_if_columns(changes), changes, how)
    doubts = {it.what_if.doubt for it in changes if it.proof is None}
    if told := [name for doubt, (name, _) in _DOUBTS.items() if name and doubt in doubts]:
        yield Sentence(f"to be proved first: {', '.join(told)}")


def change_facts(it: ShownWhatIf) -> Iterator[Part]:
    """Yield how a change is made, and its gains."""
    predicted = it.what_if.gain
    yield Fact("how", it.what_if.how, style="strong")
    yield Fact("predicted", f"{it.predicted} ({interval_of(predicted)})", style=style_of(predicted.value))
    yield Fact("", "", f"{in_ms(it.what_if.estimate_ms)} after the change")
    if it.proof is not None:
        yield Fact("proved", gain_with_interval(it.gain), f", on {it.proof.when[:10]}", style_of(it.proof.gain))
        yield Fact("", "", f"{in_ms(it.proof.before_ms)} before and {in_ms(it.proof.measured_ms)} after the change")


def change_reasons(it: ShownWhatIf) -> Iterator[Part]:
    """Yield how far to trust the prediction of a change, and the layers that are responsible."""
    yield Heading("How far to trust it")
    yield from (Sentence(f"  {remark}") for remark in remarks_on(it))
    if it.what_if.layers:
        yield Heading("Layers responsible")
        yield from (Sentence(f"  {layer}") for layer in it.what_if.layers)


def remarks_on(it: ShownWhatIf) -> Iterator[str]:
    """Yield why the prediction of a what-if is to be trusted or not, in sentences."""
    if it.proof is not None:
        yield proof_sentence(it.what_if.gain, it.gain)
    elif it.what_if.doubt is not None:
        yield _DOUBTS[it.what_if.doubt][1]
    if it.proof is None and (correction := it.what_if.correction) is not None:
        others, without = counted(correction.proofs, "other model"), gain_with_interval(correction.uncorrected)
        yield f"Corrected by proofs of {others} on this host; without them: {without}."
    if it.is_bound:
        gain = "and it would gain nothing" if it.what_if.gain.value < 0 else "so it is a limit, and cannot be proved"
        yield f"No runtime can do it, {gain}."
    if it.gain.low <= 0 <= it.gain.high:
        yield "The interval contains 0: the change may gain nothing."
    if it.what_if.kind is WhatIfKind.PARALLEL:
        yield "The layers were timed one at a time: side by side they compete for caches and bandwidth."
    if it.changed is not None and it.proof is None:
        measured = it.changed.found.end_to_end
        if measured is None:
            yield "It compares sums of layers: the whole model was not timed after the change."
        else:
            yield f"The whole model took {in_ms(measured.value_ms)} after the change, in another run."


def proof_sentence(predicted: Gain, proof: Gain) -> str:
    """Return whether a proof agrees with a prediction, in a sentence."""
    if proof.high - proof.low > 2 * _AGREE_WITHIN:
        return f"The proof is noisy: its interval is {interval_of(proof)}. Repeat it on a quiet host."
    points = abs(proof.value - predicted.value)
    judged = "agrees with" if points <= _AGREE_WITHIN else "refutes"
    return f"The proof {judged} the prediction: they differ by {counted(round(100 * points), 'point')}."


# The letter of each kind of layer, in the order of the legend; a capital letter takes a large share of the time.
_LETTERS: Mapping[str, tuple[str, tuple[Kind, ...]]] = {
    "c": ("convolution", (Kind.CONVOLUTION,)),
    "d": ("deconvolution", (Kind.DECONVOLUTION,)),
    "m": ("matrix product", (Kind.LINEAR,)),
    "r": ("recurrent", (Kind.RECURRENT,)),
    "a": ("attention", (Kind.ATTENTION,)),
    "p": ("pooling", (Kind.POOLING,)),
    "n": ("normalisation", (Kind.BATCHNORM, Kind.NORM, Kind.LRN)),
    "e": ("elementwise", (Kind.ELEMENTWISE,)),
    "s": ("sum", (Kind.COMBINE,)),
    "j": ("concat", (Kind.CONCAT,)),
    "x": ("softmax", (Kind.SOFTMAX,)),
    "o": ("other", ()),
}
_BY_KIND = {kind: letter for letter, (_, kinds) in _LETTERS.items() for kind in kinds}
_LARGE_SHARE = 0.05
_MEMORY, _CACHE, _ARITHMETIC = ".", ":", "-"
# Slower layers stand at the lower edge, ones of less intensity at the left one.
_LOWEST_SHARE, _LEAST_INTENSITY, _MOST_INTENSITY = 1e-3, 2.0**-6, 2.0**14


def roofline_plot(points: Sequence[LayerPoint], roof: Roof) -> Plot:
    """Return the layers of a model under the peaks of their system; views compute and move nothing and are left out."""
    drawn = [it for it in points if it.work.operations and it.work.bytes and it.billions_per_second]
    across, up = _axes(drawn, roof)
    total_ms = sum(it.times * it.latency_ms for it in points) or 1.0
    placed: defaultdict[str, list[tuple[float, float]]] = defaultdict(list)
    for it in sorted(drawn, key=lambda each: each.times * each.latency_ms):
        letter = next((_BY_KIND[kind] for kind in it.kinds if kind in _BY_KIND), "o")
        is_large = it.times * it.latency_ms >= _LARGE_SHARE * total_ms
        placed[letter.upper() if is_large else letter].append((it.work.intensity, it.billions_per_second))
    series = [*_roofs(roof, across, up)]
    # Layers that take more of the time cover others.
    for letter in sorted(placed, key=str.isupper):
        series.append(Series("", letter, "strong" if letter.isupper() else "accent", tuple(placed[letter])))
    letters = {letter.lower() for letter in placed}
    named = [f"{letter} {name}" for letter, (name, _) in _LETTERS.items() if letter in letters]
    legend = (*named, f"capital: {percent(_LARGE_SHARE)} of the time or more")
    return Plot("GFLOP/s by FLOP/byte", _sentence(points, roof), across, up, tuple(series), legend=legend)


def _axes(drawn: Sequence[LayerPoint], roof: Roof) -> tuple[Axis, Axis]:
    intensities = [min(_MOST_INTENSITY, max(_LEAST_INTENSITY, it.work.intensity)) for it in drawn]
    ridge = roof.highest / roof.memory
    low, high = min([*intensities, ridge / 8]), max([*intensities, ridge * 4])
    speeds = [max(it.billions_per_second, roof.highest * _LOWEST_SHARE) for it in drawn]
    lowest, highest = min([*speeds, roof.memory * low]), roof.highest * 1.3
    return Axis(low, high, is_log=True), Axis(lowest, highest, is_log=True)


def _roofs(roof: Roof, across: Axis, up: Axis) -> list[Series]:
    """Return the lines of the roofs: each bandwidth up to the highest arithmetic, and each arithmetic from there on."""
    slopes = [("memory", roof.memory, _MEMORY, "bad")]
    if roof.shared_cache is not None:
        slopes.append(("shared cache", roof.shared_cache, _CACHE, "warn"))
    widest = max(bandwidth for _, bandwidth, _, _ in slopes)
    found = []
    for name, bandwidth, sign, style in slopes:
        ends = max(across.low, up.low / bandwidth), roof.highest / bandwidth
        line = tuple((it, it * bandwidth) for it in ends)
        found.append(Series(f"{name} {bandwidth:,.0f} GB/s", sign, style, line, sign))
    for name, speed in roof.arithmetic.items():
        line = ((speed / widest, speed), (across.high, speed))
        found.append(Series(f"{name} {speed:,.0f} GFLOP/s", _ARITHMETIC, "muted", line, _ARITHMETIC))
    return found


def _sentence(points: Sequence[LayerPoint], roof: Roof) -> str:
    """Return the share of the time in layers that traffic bounds, and in those that come close to their bound."""
    total_ms = sum(it.times * it.latency_ms for it in points) or 1.0
    traffic_ms = near_ms = 0.0
    for it in points:
        taken_ms = it.times * it.latency_ms
        traffic_ms += taken_ms if it.least_ms > roof.arithmetic_ms(it.work) else 0.0
        near_ms += taken_ms if it.least_ms >= it.latency_ms / 2 else 0.0
    return (
        f"{percent(traffic_ms / total_ms)} of the time is in layers bound by memory or caches; "
        f"{percent(near_ms / total_ms)} in layers that take at most twice their bound."
    )
