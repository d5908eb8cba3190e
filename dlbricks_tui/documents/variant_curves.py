"""A model in several variants as curves: latency and throughput over batch sizes or threads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dlbricks_tui.documents.pictures import Axis, Level, Plot, Series
from dlbricks_tui.estimate.curve import per_second
from dlbricks_tui.wording.curves import curve_sentences, curve_series, varies_by_batch

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dlbricks_tui.estimate.curve import Point

_STYLES = ("accent", "good", "warn", "bad", "strong", "mark", "match", "bar")
# The room above the highest point, and beside the first and the last one.
_ABOVE, _BESIDE = 1.08, 1.2


def curve_pictures(points: Sequence[Point], bound_ms: float | None) -> tuple[Plot, Plot] | None:
    """Return the latency and the throughput over batch sizes or threads; None with fewer than two points."""
    series = curve_series(points)
    axis = sorted({x for each in series for x, it in each.points if it.latency_ms})
    if len(axis) < 2:
        return None
    against = "batch size" if varies_by_batch(points) else "threads"
    across = Axis(axis[0] / _BESIDE, axis[-1] * _BESIDE, True, tuple((float(x), str(x)) for x in axis))

    def plot(title: str, value_of: Callable[[int, float], float], says: str, bound: float | None) -> Plot:
        drawn: list[Series] = []
        for number, each in enumerate(series):
            style = _STYLES[number % len(_STYLES)]
            sizes = {x: it.batch_size for x, it in each.points}
            estimated = tuple((float(x), value_of(sizes[x], ms)) for x, ms in each.estimated())
            measured = tuple((float(x), value_of(sizes[x], ms)) for x, ms in each.measured())
            # Where nothing is estimated, the line joins what was measured.
            line, names = ("", ("estimated", "measured")) if estimated else (".", ("", "measured"))
            if each.name:
                names = (each.name, "" if estimated else each.name)
            drawn.append(Series(names[0], each.estimated_mark, style, estimated, "."))
            drawn.append(Series(names[1], each.measured_mark, "strong" if estimated else style, measured, line))
        drawn = [it for it in drawn if it.points]
        most = max(y for it in drawn for _, y in it.points)
        up = Axis(0.0, _ABOVE * max(most, bound if bound is not None and bound <= 2 * most else 0.0))
        levels = () if bound is None or bound > up.high else (Level(f"bound {bound:g} ms", bound),)
        legend = ("capitals: measured",) if any(it.name for it in series) else ()
        return Plot(f"{title} by {against}", says, across, up, tuple(drawn), levels, legend=legend)

    of_latency, of_throughput = curve_sentences(points)
    latencies = plot("ms", lambda _, ms: ms, of_latency, bound_ms)
    throughputs = plot("Per second", lambda size, ms: per_second(size, ms) or 0.0, of_throughput, None)
    return latencies, throughputs
