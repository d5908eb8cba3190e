"""An evaluation with every key of the format, as text and recorded results."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from dlbricks_tui.evaluations.baseline import Baseline, baseline_of_one_process
from dlbricks_tui.evaluations.evaluation import (
    RecordedResult,
)
from dlbricks_tui.models.graph import Level
from dlbricks_tui.store.statistics import summarise

MINIMAL = """\
format = 1
name = "smallest"

[[model]]
name = "squeezenet1.1"

[[runtime]]
framework = "onnxruntime"
"""

# Tests count the lines of this text: line 1 is the format.
FULL = (Path(__file__).parent / "full.toml").read_text(encoding="utf-8")


def baseline(base_ms: float = 30.0, processes: int = 3, **fields: Any) -> Baseline:
    """Return a result around a latency over so many processes."""
    found = baseline_of_one_process(recorded(base_ms, **fields), Level.FUSED)
    return replace(found, timing=found.timing and replace(found.timing, processes=processes))


def recorded(base_ms: float = 30.0, **fields: Any) -> RecordedResult:
    """Return a result around a latency."""
    samples = tuple(base_ms * (1 + number % 5 / 1000) for number in range(20))
    found = summarise(samples)
    usual: dict[str, Any] = {
        "model": "resnet50_v1",
        "framework": "onnxruntime",
        "version": "1.23.2",
        "threads": 2,
        "batch": 1,
        "when": "2026-11-21T08:00:00.000000+00:00",
        "measured_ms": found.trimmed_mean_ms,
        "low_ms": found.low_ms,
        "high_ms": found.high_ms,
        "samples_ms": samples,
        "estimate_ms": base_ms * 1.01,
        "estimate_low_ms": base_ms,
        "estimate_high_ms": base_ms * 1.02,
        "packages": (("dlbricks", "0.2.0"), ("onnxruntime", "1.23.2"), ("method", "inside-1")),
        "host": (("cpu", "Xeon 8124M"), ("cores", 4), ("kernel", "6.1.0"), ("governor", "performance")),
        "sha256": "ab" * 32,
    }
    return RecordedResult(**{**usual, **fields})
