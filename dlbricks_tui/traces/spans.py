"""The tracks of a level, from the runs that a worker traced.

Times of a track count from the start of the first run.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from statistics import fmean
from typing import NamedTuple

from dlbricks_tui.analysis.onednn import ran_primitive
from dlbricks_tui.models.graph import LayerGraph
from dlbricks_tui.runtime.protocol import TracedRun, TracedRuns
from dlbricks_tui.store.records import Facts
from dlbricks_tui.traces.trace import Span, Track, TrackKind

_NS_PER_MS = 1_000_000
# A file with more spans of operators or primitives opens slowly.
MOST_SPANS = 60_000


class _Ran(NamedTuple):
    """An operator that ran, with the layer that it belongs to."""

    layer: int | None
    kind: str
    start_ns: int
    end_ns: int


class _Part(NamedTuple):
    """Operators of one layer that ran without one of another layer between them."""

    layer: int | None
    kinds: tuple[str, ...]
    start_ns: int
    end_ns: int

    @property
    def duration_ns(self) -> int:
        return self.end_ns - self.start_ns


@dataclass(frozen=True, slots=True)
class TracedNetwork:
    """A graph whose layers were traced, and the layer of each operator of its network."""

    graph: LayerGraph
    owners: Mapping[int, int]


def shown_runs(found: TracedRuns) -> int:
    """Return the number of runs whose operators and primitives a trace shows: all, unless they are too many."""
    most = max((max(len(run.operators), len(run.lines)) for run in found.runs), default=0)
    return len(found.runs) if not most else min(len(found.runs), max(1, MOST_SPANS // most))


def inference_track(found: TracedRuns) -> Track:
    """Return the track of whole inferences."""
    spans = [
        Span(name=f"inference {number + 1}", start_ns=begin, duration_ns=run.duration_ns, inference=number)
        for number, (begin, run) in enumerate(_with_begins(found.runs))
    ]
    return Track(name="inferences", kind=TrackKind.INFERENCES, spans=tuple(spans))


def layer_tracks(found: TracedRuns, network: TracedNetwork) -> tuple[Track, ...]:
    """Return the track of layers, and that of operators without a layer if there are any."""
    layers: list[Span] = []
    added: list[Span] = []
    for number, (begin, run) in _shown(found):
        parts = list(_parts(_ran(found, run, begin, network.owners)))
        layers += _without_overlap(_layer_spans(number, begin, parts, network.graph))
        added += _without_overlap(
            Span(name=it.kinds[0], start_ns=it.start_ns, duration_ns=it.duration_ns, inference=number)
            for it in parts
            if it.layer is None
        )
    tracks = [Track(name="layers", kind=TrackKind.LAYERS, spans=tuple(layers))]
    if added:
        tracks.append(Track(name="added operators", kind=TrackKind.ADDED, spans=tuple(added)))
    return tuple(tracks)


def primitive_track(found: TracedRuns, network: TracedNetwork | None) -> Track:
    """Return the track of the primitives of oneDNN; without a network, they belong to no layer."""
    spans: list[Span] = []
    owners = {} if network is None else network.owners
    for number, (begin, run) in _shown(found):
        ran = _ran(found, run, begin, owners) if found.has_starts else []
        spans += _without_overlap(_primitive_spans(number, begin, run, ran, owners))
    return Track(name="oneDNN primitives", kind=TrackKind.PRIMITIVES, spans=tuple(spans))


def _with_begins(runs: Sequence[TracedRun]) -> Iterator[tuple[int, TracedRun]]:
    for run in runs:
        yield run.start_ns - runs[0].start_ns, run


def _shown(found: TracedRuns) -> Iterator[tuple[int, tuple[int, TracedRun]]]:
    return enumerate(_with_begins(found.runs[: shown_runs(found)]))


def _ran(found: TracedRuns, run: TracedRun, begin: int, owners: Mapping[int, int]) -> list[_Ran]:
    """Return the operators of a run in the order of their starts, within the run."""
    factor = 1.0 if found.has_starts else _factor(found, run)
    end = begin + run.duration_ns
    ran = []
    for it in run.operators:
        start = begin + round(factor * it.start_ns)
        stop = start + round(factor * it.duration_ns)
        ran.append(_Ran(owners.get(it.node), it.kind, min(start, end), min(stop, end)))
    return ran


def _factor(found: TracedRuns, run: TracedRun) -> float:
    """Return what makes the mean times of all runs those of one run, which has to have room for them."""
    together = sum(it.duration_ns for it in run.operators)
    factor = run.duration_ns / fmean(it.duration_ns for it in found.runs)
    return min(factor, run.duration_ns / together) if together else factor


def _parts(ran: Iterable[_Ran]) -> Iterator[_Part]:
    for layer, group in groupby(ran, key=lambda it: it.layer):
        members = list(group)
        if layer is None:
            yield from (_Part(None, (it.kind,), it.start_ns, it.end_ns) for it in members)
        else:
            kinds = tuple(dict.fromkeys(it.kind for it in members))
            yield _Part(layer, kinds, members[0].start_ns, max(it.end_ns for it in members))


def _layer_spans(number: int, begin: int, parts: Iterable[_Part], graph: LayerGraph) -> Iterator[Span]:
    """Yield one span for each layer, in the order of the graph.

    The span of a layer whose operators ran apart is the longest part. A layer without operators only passes on memory:
    it takes no time after the layers that it reads.
    """
    by_layer: dict[int, list[_Part]] = defaultdict(list)
    for part in parts:
        if part.layer is not None:
            by_layer[part.layer].append(part)
    ends: list[int] = []
    for layer in graph.layers:
        found = by_layer.get(layer.index)
        if found is None:
            start = end = max((ends[source] for source in graph.predecessors[layer.index]), default=begin)
            details: Facts = ()
        else:
            longest = max(found, key=lambda it: it.duration_ns)
            start, end = longest.start_ns, longest.end_ns
            details = _details(found, longest)
        ends.append(end)
        yield Span(
            name=layer.name,
            start_ns=start,
            duration_ns=end - start,
            inference=number,
            layer=layer.index,
            details=details,
        )


def _details(parts: Sequence[_Part], longest: _Part) -> Facts:
    kinds = dict.fromkeys(kind for part in parts for kind in part.kinds if kind)
    found: Facts = (("operators", " + ".join(kinds)),) if kinds else ()
    apart_ns = sum(it.duration_ns for it in parts if it is not longest)
    return (*found, ("apart_ms", apart_ns / _NS_PER_MS)) if len(parts) > 1 else found


def _primitive_spans(
    number: int, begin: int, run: TracedRun, ran: Sequence[_Ran], owners: Mapping[int, int]
) -> Iterator[Span]:
    """Yield a span for each line; one without a time follows the one before it in its layer, or in the run."""
    starts = [it.start_ns for it in ran]
    # The first moment of each layer that no primitive has taken yet.
    free = {it.layer: it.start_ns for it in reversed(ran)}
    last, end = begin, begin + run.duration_ns
    for line in run.lines:
        primitive = ran_primitive(line.line)
        if primitive is None:
            continue
        duration = round(primitive.taken_ms * _NS_PER_MS)
        layer = None if line.node is None else owners.get(line.node)
        if primitive.host_ns is not None:
            start = begin + max(0, primitive.host_ns - run.host_ns)
        else:
            start = last if layer is None else max(last, free.get(layer, last))
        if line.node is None:
            layer = _layer_at(start + duration // 2, ran, starts)
        start = min(start, end)
        duration = min(duration, end - start)
        last = start + duration
        facts = (("layouts", " -> ".join(primitive.layouts)), ("problem", primitive.problem))
        yield Span(
            name=f"{primitive.primitive} {primitive.implementation}",
            start_ns=start,
            duration_ns=duration,
            inference=number,
            layer=layer,
            details=tuple((name, value) for name, value in facts if value),
        )


def _layer_at(moment: int, ran: Sequence[_Ran], starts: Sequence[int]) -> int | None:
    """Return the layer whose operator ran at a moment."""
    place = bisect_right(starts, moment) - 1
    return ran[place].layer if place >= 0 and moment <= ran[place].end_ns else None


def _without_overlap(spans: Iterable[Span]) -> list[Span]:
    """Return the spans in the order of their starts, each ended where the next one starts.

    Clocks that count microseconds let one operator seem to start before the end of the one before.
    """
    found = sorted(spans, key=lambda it: (it.start_ns, it.duration_ns))
    for place in range(len(found) - 1):
        most = found[place + 1].start_ns - found[place].start_ns
        if found[place].duration_ns > most:
            found[place] = replace(found[place], duration_ns=most)
    return found
