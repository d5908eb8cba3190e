"""What-ifs as lines of plain characters: their gains with intervals, their proofs, and doubts about them."""

from collections.abc import Callable, Sequence

from dlbricks_tui.analysis.groups import MeasuredExecution
from dlbricks_tui.analysis.what_if import Doubt, Gain, WhatIf, WhatIfKind
from dlbricks_tui.wording.layers import named_layers
from dlbricks_tui.wording.numbers import counted, in_ms, milliseconds, signed_percent
from dlbricks_tui.wording.tables import names_and_numbers

_INDENT = "    "
NO_WHAT_IFS = "none, as no other execution has results of all layers"
# Where a proof and a prediction differ by more, the prediction is wrong. A proof with a wider interval cannot tell.
_AGREE_WITHIN = 0.10
# Larger losses are not told apart: the interval of a noisy latency may reach down to almost zero.
_LARGEST_LOSS = -9.99
# Why unproved what-ifs are not to be trusted: in a list, and as a sentence about one of them.
_DOUBTS = {
    Doubt.PARALLEL: ("parallel (never gained)", "Parallel layers gained in no proof so far."),
    Doubt.SMALL_GAIN: ("gains below 10 %", "A gain below 10 % can be a loss: prove it."),
    Doubt.LOSS: ("sizes of losses", "Sizes of losses are often wrong: prove it."),
}
# The gain of a proof by the id of its what-if.
Proved = Callable[[str], Gain | None]


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


def largest_gain(found: Sequence[WhatIf], proved: Proved) -> str:
    """Return the change that saves most, by its proof if it has one; empty if none saves anything for certain."""

    def saved(it: WhatIf) -> float:
        proof = proved(it.id)
        gain = it.gain if proof is None else proof
        return gain.value if gain.low > 0 else 0.0

    best = max((it for it in found if it.change is not None), key=saved, default=None)
    if best is None or saved(best) <= 0:
        return ""
    proof = proved(best.id)
    gain = gain_with_interval(best.gain) if proof is None else f"{gain_with_interval(proof)}, proved"
    told = ", to be proved" if proof is None and best.doubt is not None else ""
    return f"largest gain: {best.id}, {gain}{told}"


def gains_sentence(found: Sequence[WhatIf], proved: Proved) -> str:
    """Return how many what-ifs save time for certain, and the largest gain, as a sentence."""
    if not found:
        return "There are no what-ifs: no other execution has results of all layers."
    gains = [proved(it.id) or it.gain for it in found if it.change is not None]
    certain = sum(it.low > 0 for it in gains)
    largest = largest_gain(found, proved)
    if not largest:
        return f"None of {counted(len(gains), 'change')} saves time for certain."
    return f"{certain} of {counted(len(gains), 'change')} {'saves' if certain == 1 else 'save'} time; {largest}."


def remarks_on(found: WhatIf, changed: MeasuredExecution | None, proof: Gain | None) -> list[str]:
    """Return why the prediction of a what-if is to be trusted or not, in sentences."""
    remarks = []
    if proof is not None:
        remarks.append(_judged(found.gain, proof))
    elif found.doubt is not None:
        remarks.append(_DOUBTS[found.doubt][1])
    if found.change is None:
        remarks.append("It is a bound that no runtime reaches, so it cannot be proved.")
    known = proof or found.gain
    if known.low <= 0 <= known.high:
        remarks.append("The interval contains 0: the change may gain nothing.")
    if found.kind is WhatIfKind.PARALLEL:
        remarks.append("The layers were timed one at a time: side by side they compete for caches and bandwidth.")
    if changed is not None and proof is None:
        measured = changed.found.end_to_end
        if measured is None:
            remarks.append("It compares sums of layers: the whole model was not timed after the change.")
        else:
            remarks.append(f"The whole model took {in_ms(measured.value_ms)} after the change, in another run.")
    return remarks


def _judged(predicted: Gain, proof: Gain) -> str:
    """Return whether a proof agrees with a prediction, in a sentence."""
    if proof.high - proof.low > 2 * _AGREE_WITHIN:
        return f"The proof is noisy: its interval is {interval_of(proof)}. Repeat it on a quiet host."
    points = abs(proof.value - predicted.value)
    judged = "agrees with" if points <= _AGREE_WITHIN else "refutes"
    return f"The proof {judged} the prediction: they differ by {counted(round(100 * points), 'point')}."


def what_if_lines(found: Sequence[WhatIf], proved: Proved, width: int) -> list[str]:
    """Return a row for each what-if, and under it the setting and the layers that are responsible.

    The interval of a measured gain is left out where the lines would be too long.
    """
    if not found:
        return [f"what-ifs: {NO_WHAT_IFS}"]
    rows = [("WHAT IF", "GAIN", "95 %", "MS", "PROVED", "95 %")]
    for it in found:
        proof = proved(it.id)
        rows.append(
            (
                it.id,
                signed_percent(it.gain.value),
                interval_of(it.gain),
                milliseconds(it.estimate_ms),
                "bound" if it.change is None else "-" if proof is None else signed_percent(proof.value),
                "" if proof is None else interval_of(proof),
            )
        )
    table = names_and_numbers(rows)
    if not any(proved(it.id) for it in found) or len(table[0]) > width:
        table = names_and_numbers([row[:-1] for row in rows])
    titles, *changes = (line.rstrip() for line in table)
    lines = [titles]
    for it, change in zip(found, changes, strict=True):
        lines += [change, f"{_INDENT}{it.how}"]
        if it.layers:
            lines.append(f"{_INDENT}{named_layers(it.layers, width - len(_INDENT))}")
    doubts = {it.doubt for it in found if proved(it.id) is None}
    if told := [name for doubt, (name, _) in _DOUBTS.items() if doubt in doubts]:
        lines.append(f"to be proved first: {', '.join(told)}")
    return lines
