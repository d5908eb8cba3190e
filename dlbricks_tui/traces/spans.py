"""The tracks of a level, from the runs that a worker traced, and what is said beside their spans.

Times of a track count from the start of the first run.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from statistics import fmean, median
from typing import NamedTuple

from dlbricks_tui.analysis.kernels import ran_primitive
from dlbricks_tui.models.graph import LayerGraph
from dlbricks_tui.printable import printable
from dlbricks_tui.runtime.protocol import TracedRun, TracedRuns
from dlbricks_tui.store.records import Fact, Facts
from dlbricks_tui.traces.trace import (
    PLAIN_MS,
    Counter,
    LevelTrace,
    Trace,
    TracedLayer,
    TraceLevel,
    TraceSpan,
    Track,
    TrackKind,
)

_NS_PER_MS = 1_000_000
# A file with more spans of operators or primitives opens slowly.
MOST_SPANS = 60_000


class _Ran(NamedTuple):
    """An operator that ran, or all of one layer that ran without one of another layer between them."""

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
        TraceSpan(name=f"inference {number + 1}", start_ns=begin, duration_ns=run.duration_ns, inference=number)
        for number, begin, run in _shown(found, all_runs=True)
    ]
    return Track(name="inferences", kind=TrackKind.INFERENCES, spans=tuple(spans))


def layer_tracks(found: TracedRuns, network: TracedNetwork) -> tuple[Track, ...]:
    """Return the track of layers, and that of operators without a layer if there are any."""
    layers: list[TraceSpan] = []
    added: list[TraceSpan] = []
    for number, begin, run in _shown(found):
        parts = list(_parts(_ran(found, run, begin, network.owners)))
        layers += _without_overlap(_layer_spans(number, begin, parts, network.graph))
        added += _without_overlap(
            TraceSpan(name=it.kinds[0], start_ns=it.start_ns, duration_ns=it.duration_ns, inference=number)
            for it in parts
            if it.layer is None
        )
    tracks = [Track(name="layers", kind=TrackKind.LAYERS, spans=tuple(layers))]
    if added:
        tracks.append(Track(name="added operators", kind=TrackKind.ADDED, spans=tuple(added)))
    return tuple(tracks)


def primitive_track(found: TracedRuns, network: TracedNetwork | None) -> Track:
    """Return the track of the primitives of oneDNN; without a network, they belong to no layer."""
    spans: list[TraceSpan] = []
    owners = {} if network is None else network.owners
    for number, begin, run in _shown(found):
        ran = _ran(found, run, begin, owners) if found.has_starts else []
        spans += _without_overlap(_primitive_spans(number, begin, run, ran, owners))
    return Track(name="oneDNN primitives", kind=TrackKind.PRIMITIVES, spans=tuple(spans))


def _shown(found: TracedRuns, *, all_runs: bool = False) -> Iterator[tuple[int, int, TracedRun]]:
    """Yield the number, the begin and the run of those that are shown, or of all."""
    for number, run in enumerate(found.runs if all_runs else found.runs[: shown_runs(found)]):
        yield number, run.start_ns - found.runs[0].start_ns, run


def _ran(found: TracedRuns, run: TracedRun, begin: int, owners: Mapping[int, int]) -> list[_Ran]:
    """Return the operators of a run in the order of their starts, within the run."""
    factor, end = 1.0, begin + run.duration_ns
    if not found.has_starts:
        # The mean times of all runs become those of this one, which has to have room for them.
        factor = run.duration_ns / fmean(it.duration_ns for it in found.runs)
        if together := sum(it.duration_ns for it in run.operators):
            factor = min(factor, run.duration_ns / together)
    ran = []
    for it in run.operators:
        start = begin + round(factor * it.start_ns)
        stop = start + round(factor * it.duration_ns)
        ran.append(_Ran(owners.get(it.node), (it.kind,), min(start, end), min(stop, end)))
    return ran


def _parts(ran: Iterable[_Ran]) -> Iterator[_Ran]:
    for layer, group in groupby(ran, key=lambda it: it.layer):
        members = list(group)
        if layer is None:
            yield from members
        else:
            kinds = tuple(dict.fromkeys(kind for it in members for kind in it.kinds))
            yield _Ran(layer, kinds, members[0].start_ns, max(it.end_ns for it in members))


def _layer_spans(number: int, begin: int, parts: Iterable[_Ran], graph: LayerGraph) -> Iterator[TraceSpan]:
    """Yield one span for each layer, in the order of the graph.

    The span of a layer whose operators ran apart is the longest part. A layer without operators only passes on memory:
    it takes no time after the layers that it reads.
    """
    by_layer: dict[int, list[_Ran]] = defaultdict(list)
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
        at = {"start_ns": start, "duration_ns": end - start, "inference": number, "layer": layer.index}
        yield TraceSpan(name=layer.name, details=details, **at)


def _details(parts: Sequence[_Ran], longest: _Ran) -> Facts:
    kinds = dict.fromkeys(kind for part in parts for kind in part.kinds if kind)
    found: Facts = (("operators", " + ".join(kinds)),) if kinds else ()
    apart_ns = sum(it.duration_ns for it in parts if it is not longest)
    return (*found, ("apart_ms", apart_ns / _NS_PER_MS)) if len(parts) > 1 else found


def _primitive_spans(
    number: int, begin: int, run: TracedRun, ran: Sequence[_Ran], owners: Mapping[int, int]
) -> Iterator[TraceSpan]:
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
            # The layer whose operator ran in the middle of it.
            moment = start + duration // 2
            place = bisect_right(starts, moment) - 1
            layer = ran[place].layer if place >= 0 and moment <= ran[place].end_ns else None
        start = min(start, end)
        duration = min(duration, end - start)
        last = start + duration
        facts = (("layouts", " -> ".join(primitive.layouts)), ("problem", primitive.problem))
        details = tuple((name, value) for name, value in facts if value)
        name = f"{primitive.primitive} {primitive.implementation}"
        at = {"start_ns": start, "duration_ns": duration, "inference": number}
        yield TraceSpan(name=name, layer=layer, details=details, **at)


def _without_overlap(spans: Iterable[TraceSpan]) -> list[TraceSpan]:
    """Return the spans in the order of their starts, each ended where the next one starts.

    Clocks that count microseconds let one operator seem to start before the end of the one before.
    """
    found = sorted(spans, key=lambda it: (it.start_ns, it.duration_ns))
    for place in range(len(found) - 1):
        most = found[place + 1].start_ns - found[place].start_ns
        if found[place].duration_ns > most:
            found[place] = replace(found[place], duration_ns=most)
    return found


# A name in a file may be a megabyte long, and stands in each of its spans. Our own files have it whole.
_LONGEST = 200
Annotations = tuple[tuple[str, Fact | Facts], ...]


def shown(text: str) -> str:
    """Return a text as valid UTF-8 in one line, the middle of a very long one left out."""
    spelled = printable(text[: 2 * _LONGEST] + text[-_LONGEST:] if len(text) > 4 * _LONGEST else text)
    if len(spelled) > _LONGEST:
        return f"{spelled[: _LONGEST // 2]} ... {spelled[-_LONGEST // 2 :]}"
    return spelled


def level_title(number: int, level: LevelTrace) -> str:
    """Return the title of a level: `2 layer level: 3.400 ms per inference, +0.200 ms`.

    The number keeps the levels in their order in programs that sort them by their titles.
    """
    title = f"{number} {level.level.value} level"
    if level.inference_ms:
        title += f": {median(level.inference_ms):.3f} ms per inference"
    return title if level.overhead_ms is None else f"{title}, {level.overhead_ms:+.3f} ms"


def trace_title(trace: Trace) -> str:
    """Return the title of a trace: the model and its runtime."""
    return f"{trace.model} on {trace.runtime}"


def about_trace(trace: Trace) -> Annotations:
    """Return the facts about a trace, and the cost of its levels."""
    overheads = tuple((f"{it.level.value}_overhead_ms", it.overhead_ms) for it in trace.levels)
    missing = tuple((f"{it.level.value}_is_missing", it.reason) for it in trace.missing)
    return (*_identity(trace), *_known(overheads), *missing)


def about_level(trace: Trace, level: LevelTrace) -> Annotations:
    """Return the facts about a level and its trace."""
    times = (
        ("inferences", len(level.inference_ms)),
        ("inference_ms", median(level.inference_ms) if level.inference_ms else None),
        ("overhead_ms", level.overhead_ms),
    )
    notes = tuple((f"note_{number}", note) for number, note in enumerate(level.notes, start=1))
    totals: Annotations = (("totals", level.totals),) if level.totals else ()
    return (*_identity(trace), *_known(times), *notes, *totals)


class ShownSpan(NamedTuple):
    """A span as other programs show it, with its facts."""

    name: str
    # By which programs search and filter.
    groups: tuple[str, ...]
    start_ns: int
    duration_ns: int
    facts: Annotations


def slices_of(trace: Trace, level: LevelTrace) -> Iterator[tuple[str, Sequence[ShownSpan]]]:
    """Yield the name and the slices of each track of a level, and before them one slice about the level itself."""
    layers = {layer.index: layer for layer in trace.layers}
    start_ns, end_ns = level_ns(level)
    yield "about", [ShownSpan(trace_title(trace), ("about",), start_ns, end_ns - start_ns, about_level(trace, level))]
    for track in level.tracks:
        yield track.name, [_slice(it, track.kind, layers) for it in track.spans]


def _slice(span: TraceSpan, kind: TrackKind, layers: Mapping[int, TracedLayer]) -> ShownSpan:
    """Return a span with the layer and the brick that it belongs to, and its details."""
    layer = None if span.layer is None else layers.get(span.layer)
    facts: Facts = (("inference", span.inference),)
    groups: tuple[str, ...] = (kind.value,)
    if layer is not None:
        groups += (layer.kind,)
        facts += (("layer", layer.index), ("layer_name", layer.name))
        facts += tuple((name, getattr(layer, name)) for name in ("kind", "brick", "context", "brick_ms"))
    details: Annotations = (("details", span.details),) if span.details else ()
    return ShownSpan(span.name, groups, span.start_ns, span.duration_ns, (*_known(facts), *details))


def first_ns(trace: Trace) -> int:
    """Return the earliest time of all levels, 0 if none is before the first inference."""
    return min((0, *(level_ns(level)[0] for level in trace.levels)))


def level_ns(level: LevelTrace) -> tuple[int, int]:
    """Return the start and the end of everything in a level."""
    spans = [span for track in level.tracks for span in (*track.spans[:1], *track.spans[-1:])]
    times = [time for counter in level.counters for time in (*counter.times_ns[:1], *counter.times_ns[-1:])]
    starts, ends = [span.start_ns for span in spans], [span.start_ns + span.duration_ns for span in spans]
    return min([*starts, *times], default=0), max([*ends, *times], default=0)


def _identity(trace: Trace) -> Facts:
    return (
        ("model", trace.model),
        ("model_key", trace.model_key),
        ("runtime", trace.runtime),
        ("system", trace.system),
        ("layers", trace.graph_level.value),
        ("batch_size", trace.batch_size),
        ("trace", trace.id),
        ("when", trace.when),
    )


def _known(facts: Facts) -> Facts:
    return tuple((name, value) for name, value in facts if value is not None)


@dataclass(frozen=True, slots=True)
class Instruments:
    """The instruments of a level."""

    profiler: bool = False
    lines: bool = False
    threads: bool = False


@dataclass(frozen=True, slots=True)
class LevelRound:
    """The runs of a level in a round, and what its threads did meanwhile."""

    runs: TracedRuns
    # Of the same network without the profiler, at the layer level.
    plain_ms: tuple[float, ...] = ()
    # What the threads did, their counters and sums, and a line for the events that could not be counted.
    tracks: tuple[Track, ...] = ()
    counters: tuple[Counter, ...] = ()
    totals: Facts = ()
    uncounted: tuple[str, ...] = ()

    @property
    def inference_ms(self) -> tuple[float, ...]:
        return tuple(run.duration_ns / _NS_PER_MS for run in self.runs.runs)


@dataclass(frozen=True, slots=True)
class MeasuredLevel:
    """A level with its rounds, in the order of time."""

    level: TraceLevel
    instruments: Instruments
    # The runs after which the model is as fast as it is later.
    untimed: int = 0
    rounds: list[LevelRound] = field(default_factory=list)

    @property
    def inference_ms(self) -> tuple[float, ...]:
        """All inferences. Those that the timeline shows come first, so that they have its numbers."""
        return tuple(ms for it in reversed(self.rounds) for ms in it.inference_ms)

    @property
    def plain_ms(self) -> float | None:
        """The median inference without the profiler; None if there is none."""
        found = [ms for it in self.rounds for ms in it.plain_ms]
        return median(found) if found else None


def level_trace(
    measured: MeasuredLevel, below: MeasuredLevel | None, network: TracedNetwork, title: str, *, has_file: bool
) -> LevelTrace:
    """Return a level of a trace, with its overhead over the level below.

    `title` is that of the runtime. A model that has a file runs from it at the level `model`.
    """
    last, instruments = measured.rounds[-1], measured.instruments
    known = network if instruments.profiler else None
    tracks = [inference_track(last.runs)]
    if known is not None:
        tracks += layer_tracks(last.runs, known)
    if instruments.lines:
        tracks.append(primitive_track(last.runs, known))
    tracks += last.tracks
    totals: Facts = () if measured.plain_ms is None else ((PLAIN_MS, measured.plain_ms),)
    return LevelTrace(
        level=measured.level,
        inference_ms=measured.inference_ms,
        overhead_ms=None if below is None else median(measured.inference_ms) - median(below.inference_ms),
        tracks=tuple(tracks),
        counters=last.counters,
        totals=(*totals, *last.totals),
        notes=tuple(_notes(measured, below, title, has_file=has_file)),
    )


def _notes(measured: MeasuredLevel, below: MeasuredLevel | None, title: str, *, has_file: bool) -> Iterator[str]:
    """Yield what a reader should know about a level."""
    last, runs = measured.rounds[-1], measured.rounds[-1].runs
    if below is not None:
        # The overhead in each round.
        pairs = zip(measured.rounds, below.rounds, strict=True)
        added_ms = [median(it.inference_ms) - median(other.inference_ms) for it, other in pairs]
        least_ms, most_ms = min(added_ms), max(added_ms)
        if len(added_ms) == 1:
            yield "the levels were traced one after another: the overhead includes changes of the host's speed"
        elif most_ms - least_ms > abs(median(measured.inference_ms) - median(below.inference_ms)):
            yield f"the overhead is uncertain: the {len(added_ms)} rounds differ, {least_ms:+.3f} to {most_ms:+.3f} ms"
    if has_file and measured.plain_ms is not None:
        yield (
            f"the profiler needs the layers as a network of their own: it takes {measured.plain_ms:.3f} ms without "
            "the profiler, and the level `model` runs the model file"
        )
    if not runs.has_starts:
        yield (
            f"{title} tells the mean time of each layer, and not when it starts: each inference shows these means "
            "one after another, in proportion to its own time"
        )
    if (shown := shown_runs(runs)) < len(runs.runs):
        yield f"layers and primitives are shown of the first {shown} inferences only, since there are so many"
    if last.totals:
        yield "perf events also count the inferences that warm up, and the preparation of the profiler"
    yield from last.uncounted
