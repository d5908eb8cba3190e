"""Estimates for programs: JSON documents by the contract of the command line, and comma-separated values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from dlbricks_tui.bricks.decomposition import Decomposition
from dlbricks_tui.cli.output import Json
from dlbricks_tui.estimate.accuracy import Accuracy, Group
from dlbricks_tui.estimate.explanation import Residual, by_region, by_type, costliest, residual
from dlbricks_tui.estimate.system_estimate import SystemEstimate


def estimate_document(decomposition: Decomposition, one: SystemEstimate) -> dict[str, Json]:
    """All about one estimate."""
    found = one.estimate
    composed, coverage = found.composed, found.coverage
    explained = residual(one)
    return {
        "model": found.model,
        "system": one.way.system,
        "runtime": one.way.runtime or None,
        "protocol": one.way.protocol or None,
        "level": found.level.value,
        "granularity": found.cutting.granularity,
        "cut": found.cutting.cut.value,
        "order": found.cutting.order.value,
        "sequential_ms": composed.sequential_ms if composed else None,
        "parallel_ms": composed.parallel_ms if composed else None,
        "workers": found.options.workers,
        "workers_ms": composed.workers_ms if composed else None,
        "call_ms": composed.call_ms if composed else None,
        "interval_ms": [composed.interval.low_ms, composed.interval.high_ms] if composed else None,
        "coverage": {
            "measured": coverage.measured,
            "missing": coverage.missing,
            "unmeasurable": coverage.unmeasurable,
            "bridged": coverage.bridged,
            "own_carrier": coverage.own_carrier,
        },
        "complete": coverage.complete,
        "partial": found.is_partial,
        "unfused": found.is_unfused,
        "obstacle": found.obstacle or None,
        "next_step": next_step(one),
        "measured_ms": one.end_to_end.value_ms if one.end_to_end else None,
        "error": one.error,
        "residual": None if explained is None else _residual(explained),
        "critical_path": list(found.critical_layers),
        "types": [
            {"type": it.label, "layers": it.layers, "latency_ms": it.latency_ms, "share": it.share}
            for it in by_type(decomposition.graph, found)
        ],
        "regions": [
            {
                "first": min(it.layers),
                "last": max(it.layers),
                "layers": len(it.layers),
                "repeats": it.repeats,
                "latency_ms": it.latency_ms,
                "share": it.share,
            }
            for it in by_region(decomposition.graph, found)
        ],
        "costliest": [
            {
                "brick": it.part.brick.key,
                "context": it.part.context,
                "layer": it.part.layers[0],
                "uses": it.uses,
                "latency_ms": it.latency_ms,
                "share": it.share,
            }
            for it in costliest(found)
        ],
        "remaining": {"bricks": len(found.remaining.pairs), "seconds": found.remaining.seconds},
    }


def next_step(one: SystemEstimate) -> str | None:
    """The run that tells more of the model; None if no run does."""
    found = one.estimate
    if found.remaining.pairs and not found.obstacle:
        return "run"
    return "run --end-to-end" if found.is_partial and one.end_to_end is None else None


def estimate_row(one: SystemEstimate) -> dict[str, Json]:
    """One estimate as a line of a table."""
    found = one.estimate
    composed = found.composed
    return {
        "model": found.model,
        "system": one.way.system,
        "runtime": one.way.runtime,
        "level": found.level.value,
        "granularity": found.cutting.granularity,
        "cut": found.cutting.cut.value,
        "sequential_ms": composed.sequential_ms if composed else None,
        "low_ms": composed.interval.low_ms if composed else None,
        "high_ms": composed.interval.high_ms if composed else None,
        "parallel_ms": composed.parallel_ms if composed else None,
        "workers": found.options.workers,
        "workers_ms": composed.workers_ms if composed else None,
        "measured_layers": found.coverage.measured,
        "missing_layers": found.coverage.missing,
        "unmeasurable_layers": found.coverage.unmeasurable,
        "bridged_layers": found.coverage.bridged,
        "complete": found.coverage.complete,
        "partial": found.is_partial,
        "unfused": found.is_unfused,
        "obstacle": found.obstacle or None,
        "measured_ms": one.end_to_end.value_ms if one.end_to_end else None,
        "error": one.error,
    }


def accuracy_document(group: Group, found: Accuracy) -> dict[str, Json]:
    """How well the estimates of one way of measuring agree with the truth."""
    return {
        "system": group.way.system,
        "runtime": group.way.runtime,
        "level": group.way.level.value,
        "protocol": group.way.protocol,
        "granularity": group.granularity,
        "cut": group.cut.value,
        "models": found.models,
        "geometric_mean": found.geometric_mean,
        "mean_absolute_error": found.mean_absolute_error,
        "worst_error": found.worst_error,
        "within_5_percent": found.within_5_percent,
        "within_10_percent": found.within_10_percent,
        "speedup": found.speedup,
    }


def csv_rows(rows: Sequence[Mapping[str, Json]]) -> Iterator[Sequence[Json]]:
    """Yield the names, then the values of each row; nothing where there are no rows."""
    if rows:
        names = list(rows[0])
        yield names
        yield from ([row[name] for name in names] for row in rows)


def _residual(explained: Residual) -> Json:
    return {
        "residual_ms": explained.residual_ms,
        "sampling_ms": explained.sampling_ms,
        "method_ms": explained.method_ms,
        "lacking_ms": explained.lacking_ms,
        "host_ms": explained.host_ms,
        "times_slower": explained.times_slower,
        "unexplained_ms": explained.unexplained_ms,
    }
