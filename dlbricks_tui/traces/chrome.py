"""A trace in the Trace Event Format, which chrome://tracing and Perfetto's UI open."""

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from dlbricks_tui.store.records import Fact
from dlbricks_tui.traces.spans import (
    Annotations,
    about_level,
    about_trace,
    categories,
    first_ns,
    level_ns,
    level_title,
    shown,
    span_annotations,
    trace_title,
)
from dlbricks_tui.traces.trace import LevelTrace, Trace, TracedLayer, TraceSpan

Event = dict[str, Any]
# Whole numbers that JavaScript holds exactly.
_MOST_INTEGER = 1 << 53


def chrome_json(trace: Trace) -> str:
    """Return the text of a file: a process for each level, all starting at zero, and a thread for each track.

    The levels lie above one another, so that the same inference at several levels can be compared by eye.
    """
    layers = {layer.index: layer for layer in trace.layers}
    zero_ns = first_ns(trace)
    events = [
        event
        for number, level in enumerate(trace.levels, start=1)
        for event in _level_events(trace, level, number, layers, zero_ns)
    ]
    document = {"displayTimeUnit": "ms", "otherData": _arguments(about_trace(trace)), "traceEvents": events}
    return json.dumps(document, allow_nan=False, separators=(",", ":"))


def _level_events(
    trace: Trace, level: LevelTrace, number: int, layers: dict[int, TracedLayer], zero_ns: int
) -> Iterator[Event]:
    yield _named("process_name", number, name=level_title(number, level))
    yield _named("process_sort_index", number, sort_index=number)
    yield from _thread_names(number, 0, "about")
    start_ns, end_ns = level_ns(level)
    about = _arguments(about_level(trace, level))
    yield _slice(number, 0, trace_title(trace), ("about",), start_ns - zero_ns, end_ns - start_ns, about)
    for thread, track in enumerate(level.tracks, start=1):
        yield from _thread_names(number, thread, track.name)
        for span, (start_ns, end_ns) in zip(track.spans, _side_by_side(track.spans, zero_ns), strict=True):
            groups, arguments = categories(track, span, layers), _arguments(span_annotations(span, layers))
            yield _slice(number, thread, span.name, groups, start_ns, end_ns - start_ns, arguments)
    for counter in level.counters:
        for time_ns, value in zip(counter.times_ns, counter.values, strict=True):
            yield {
                "ph": "C",
                "pid": number,
                "name": shown(counter.name),
                "ts": (time_ns - zero_ns) / 1000,
                "args": {shown(counter.unit): value},
            }


def _side_by_side(spans: Sequence[TraceSpan], zero_ns: int) -> list[tuple[int, int]]:
    """Return the start and the end of each span; no two spans end in the same microsecond.

    chrome://tracing rounds ends to microseconds, and draws a span below another one that ends in the same one. So spans
    before one of less than a microsecond end up to a microsecond sooner.
    """
    found: list[tuple[int, int]] = []
    latest_ns: int | None = None
    for span in reversed(spans):
        start_ns = span.start_ns - zero_ns
        end_ns = start_ns + span.duration_ns
        if latest_ns is not None and _rounded(end_ns) > latest_ns:
            end_ns = max(0, latest_ns)
        found.append((min(start_ns, end_ns), end_ns))
        latest_ns = _rounded(end_ns) - 1000
    return found[::-1]


def _rounded(time_ns: int) -> int:
    return (time_ns + 500) // 1000 * 1000


def _named(what: str, process: int, **arguments: object) -> Event:
    return {"ph": "M", "pid": process, "tid": 0, "name": what, "args": arguments}


def _thread_names(process: int, thread: int, name: str) -> Iterator[Event]:
    for what, arguments in (("thread_name", {"name": shown(name)}), ("thread_sort_index", {"sort_index": thread})):
        yield {**_named(what, process, **arguments), "tid": thread}


def _slice(
    process: int, thread: int, name: str, groups: Iterable[str], start_ns: int, duration_ns: int, arguments: Event
) -> Event:
    return {
        "ph": "X",
        "pid": process,
        "tid": thread,
        "name": shown(name),
        # A comma separates categories.
        "cat": ",".join(shown(it).replace(",", " ") for it in groups),
        "ts": start_ns / 1000,
        "dur": duration_ns / 1000,
        "args": arguments,
    }


def _arguments(annotations: Annotations) -> Event:
    return {
        shown(name): {shown(key): _json_value(each) for key, each in value}
        if isinstance(value, tuple)
        else _json_value(value)
        for name, value in annotations
    }


def _json_value(value: Fact) -> Fact:
    """Return a value that JSON and JavaScript hold exactly."""
    if isinstance(value, str):
        return shown(value)
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if type(value) is int and abs(value) > _MOST_INTEGER:
        return str(value)
    return value
