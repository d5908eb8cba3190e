"""The time of an execution on the graph of the file: fused layers share theirs among their written layers."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from dlbricks_tui.analysis.groups import MeasuredExecution, paid_ps, split
from dlbricks_tui.analysis.roofline import Roof, Work, written_works
from dlbricks_tui.estimate.compositions import milliseconds
from dlbricks_tui.models.graph import LayerGraph

# The balance of arithmetic and traffic where the peaks of a system are not known, in billions per second.
_USUAL_ROOF = Roof(1, {"any": 100.0}, 10.0, 20.0, 32 << 20, 0)


class Basis(str, Enum):
    """The source of a written layer's time.

    - `whole`: the runtime executes the layer by itself.
    - `measured`: it has a share of a fused layer, by the times of the written layers.
    - `roofline`: it has a share of a fused layer, by the least times that the work of the written layers needs.
    - `gone`: the runtime does not execute it.
    """

    WHOLE = "whole"
    MEASURED = "measured"
    ROOFLINE = "roofline"
    GONE = "gone"


@dataclass(frozen=True, slots=True)
class WrittenTime:
    """The time that a written layer takes in an inference."""

    latency_ps: int
    basis: Basis

    @property
    def latency_ms(self) -> float:
        """The time in milliseconds."""
        return milliseconds(self.latency_ps)


@dataclass(frozen=True, slots=True)
class WrittenTimes:
    """The time of each written layer, and that of the layers that the runtime inserted: conversions of layouts."""

    layers: tuple[WrittenTime, ...]
    inserted_ps: int

    @property
    def total_ps(self) -> int:
        """The time of all layers that the runtime executes, without its call."""
        return sum(it.latency_ps for it in self.layers) + self.inserted_ps


def written_times(
    one: MeasuredExecution, written: LayerGraph, shares: MeasuredExecution | None = None, roof: Roof | None = None
) -> WrittenTimes:
    """Return the time of each layer of the file in an execution; they add up to its layers exactly, in picoseconds.

    `shares` is the same file measured as written. Where it lacks a layer of a fused one, the roofline decides.
    """
    cover = one.nodes_of_parts
    layers = [layer.nodes for layer in written.layers]
    groups = split({0: range(len(cover)), 1: range(len(layers))}, (cover, layers))
    measured = [None] * len(layers) if shares is None else _measured_ps(shares, len(layers))
    works: tuple[Work, ...] = ()
    found = [WrittenTime(0, Basis.GONE) for _ in layers]
    inserted_ps = sum(part.paid_ps for part, nodes in zip(one.parts, cover, strict=True) if not nodes)
    for group in groups:
        parts, members = group.parts
        total_ps = paid_ps(one, parts)
        if not members:
            inserted_ps += total_ps
        elif len(members) == 1:
            found[members[0]] = WrittenTime(total_ps, Basis.WHOLE if parts else Basis.GONE)
        elif total_ps:
            known = [measured[member] for member in members]
            basis = Basis.MEASURED if all(it is not None for it in known) and any(known) else Basis.ROOFLINE
            if basis is Basis.ROOFLINE:
                works = works or written_works(written)
                weights = [_least_ms(works[member], roof or _USUAL_ROOF, written) for member in members]
            else:
                weights = [float(it or 0) for it in known]
            for member, share_ps in zip(members, _shared(total_ps, weights), strict=True):
                found[member] = WrittenTime(share_ps, basis)
        else:
            for member in members:
                found[member] = WrittenTime(0, Basis.WHOLE)
    return WrittenTimes(tuple(found), inserted_ps)


def _least_ms(work: Work, roof: Roof, written: LayerGraph) -> float:
    return roof.least_ms(work, float(written.weight_bytes))


def _measured_ps(shares: MeasuredExecution, count: int) -> list[int | None]:
    """Return the measured time of each written layer; None where a sequence of several layers was timed."""
    found: list[int | None] = [None] * count
    for part in shares.parts:
        if len(part.layers) == 1 and part.known:
            found[part.layers[0]] = part.paid_ps
    return found


def _shared(total_ps: int, weights: Sequence[float]) -> list[int]:
    """Return a time in parts that are as proportional to the weights as whole numbers can be, and add up to it."""
    whole = sum(weights)
    weights = weights if whole else [1.0] * len(weights)
    whole = whole or float(len(weights))
    exact = [total_ps * weight / whole for weight in weights]
    found = [int(share) for share in exact]
    # Rounding leaves a rest of less than a picosecond for each, or a few more in sums of large numbers.
    largest = max(range(len(exact)), key=exact.__getitem__)
    found[largest] += total_ps - sum(found)
    return found
