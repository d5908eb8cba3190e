"""Rows of the tables over many models, with made-up values."""

from dataclasses import fields
from typing import Any

from dlbricks_tui.analysis.bounds import Gap
from dlbricks_tui.analysis.what_if import WhatIfKind
from dlbricks_tui.api.analyses import BestGain, ModelAnalysis, ModelRow
from dlbricks_tui.models.graph import Level
from dlbricks_tui.runtime.variant import Variant
from dlbricks_tui.store.selections import Way


def analysed(name: str = "net", **changed: Any) -> ModelRow:
    """A model that takes 10 ms, of which 2 ms are in slower layers and 2 ms are unexplained."""
    values: dict[str, Any] = {
        "table1_id": None,
        "way": Way("here", "mxnet-1.9.1 python-3.11 threads-1", Level.FUSED, "inside"),
        "variant": Variant(threads=1),
        "measured_ms": 10.0,
        "sequential_ms": 8.0,
        "best_ms": 6.0,
        "best_parallel_ms": 5.0,
        "roofline_ms": None,
        "gap": Gap(2 * 10**9, 0, 2 * 10**9),
        "gains": {WhatIfKind.RUNTIME: BestGain("runtime-other", 0.25, 0.24, False)},
    }
    values |= changed
    told = dict.fromkeys([it.name for it in fields(ModelAnalysis)])
    own = {it: values.pop(it) for it in told.keys() & values.keys() - {"gap"}}
    answer = ModelAnalysis(**{**told, **own, "model": name})
    return ModelRow(answer, **values)
