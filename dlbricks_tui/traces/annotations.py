"""The words that both formats for other programs put on the levels and spans of a trace."""

from collections.abc import Mapping
from statistics import median

from dlbricks_tui.printable import printable
from dlbricks_tui.store.records import Fact, Facts
from dlbricks_tui.traces.trace import LevelTrace, Span, Trace, TracedLayer, Track

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


def span_annotations(span: Span, layers: Mapping[int, TracedLayer]) -> Annotations:
    """Return the facts about a span: the layer and the brick that it belongs to, and its details."""
    layer = None if span.layer is None else layers.get(span.layer)
    facts: Facts = (("inference", span.inference),)
    if layer is not None:
        facts += (
            ("layer", layer.index),
            ("layer_name", layer.name),
            ("kind", layer.kind),
            ("brick", layer.brick),
            ("context", layer.context),
            ("brick_ms", layer.brick_ms),
        )
    details: Annotations = (("details", span.details),) if span.details else ()
    return (*_known(facts), *details)


def categories(track: Track, span: Span, layers: Mapping[int, TracedLayer]) -> tuple[str, ...]:
    """Return the groups that a span belongs to, by which programs search and filter."""
    layer = None if span.layer is None else layers.get(span.layer)
    return (track.kind.value,) if layer is None else (track.kind.value, layer.kind)


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
