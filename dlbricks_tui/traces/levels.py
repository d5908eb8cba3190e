"""A level of a trace, from the rounds in which its worker ran the model. The timeline shows the last round."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from statistics import median

from dlbricks_tui.runtime.protocol import TracedRuns
from dlbricks_tui.store.records import Facts
from dlbricks_tui.traces.perf_events import PerfTotals
from dlbricks_tui.traces.spans import TracedNetwork, inference_track, layer_tracks, primitive_track, shown_runs
from dlbricks_tui.traces.threads import ThreadActivity
from dlbricks_tui.traces.trace import PLAIN_MS, LevelTrace, TraceLevel

_NS_PER_MS = 1e6


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
    threads: ThreadActivity | None = None
    events: PerfTotals | None = None

    @property
    def inference_ms(self) -> tuple[float, ...]:
        return tuple(run.duration_ns / _NS_PER_MS for run in self.runs.runs)


@dataclass(frozen=True, slots=True)
class MeasuredLevel:
    """A level with its rounds, in the order of time."""

    level: TraceLevel
    instruments: Instruments
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

    def added_ms(self, below: "MeasuredLevel") -> list[float]:
        """Return the overhead in each round."""
        pairs = zip(self.rounds, below.rounds, strict=True)
        return [median(it.inference_ms) - median(other.inference_ms) for it, other in pairs]


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
    if last.threads is not None:
        tracks += last.threads.tracks
    totals: Facts = () if measured.plain_ms is None else ((PLAIN_MS, measured.plain_ms),)
    return LevelTrace(
        level=measured.level,
        inference_ms=measured.inference_ms,
        overhead_ms=None if below is None else median(measured.inference_ms) - median(below.inference_ms),
        tracks=tuple(tracks),
        counters=() if last.threads is None else last.threads.counters,
        totals=totals if last.events is None else (*totals, *last.events.totals),
        notes=(
            *_doubts(measured, below),
            *(_about_network(measured) if has_file else ()),
            *_about_spans(last.runs, title),
            *_about_events(last.events),
        ),
    )


def _doubts(measured: MeasuredLevel, below: MeasuredLevel | None) -> Iterator[str]:
    """Yield a note if the overhead is uncertain."""
    if below is None:
        return
    added_ms = measured.added_ms(below)
    least_ms, most_ms = min(added_ms), max(added_ms)
    if len(added_ms) == 1:
        yield "the levels were traced one after another: the overhead includes changes of the host's speed"
    elif most_ms - least_ms > abs(median(measured.inference_ms) - median(below.inference_ms)):
        yield f"the overhead is uncertain: the {len(added_ms)} rounds differ, {least_ms:+.3f} to {most_ms:+.3f} ms"


def _about_network(measured: MeasuredLevel) -> Iterator[str]:
    if measured.plain_ms is not None:
        yield (
            f"the profiler needs the layers as a network of their own: it takes {measured.plain_ms:.3f} ms without "
            "the profiler, and the level `model` runs the model file"
        )


def _about_spans(runs: TracedRuns, title: str) -> Iterator[str]:
    if not runs.has_starts:
        yield (
            f"{title} tells the mean time of each layer, and not when it starts: each inference shows these means "
            "one after another, in proportion to its own time"
        )
    shown = shown_runs(runs)
    if shown < len(runs.runs):
        yield f"layers and primitives are shown of the first {shown} inferences only, since there are so many"


def _about_events(events: PerfTotals | None) -> Iterator[str]:
    if events is not None:
        if events.totals:
            yield "perf events also count the inferences that warm up, and the preparation of the profiler"
        yield from events.missing
