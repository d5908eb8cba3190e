"""The published values of the same figures, from the paper and its authors' files.

The CSV file beside this module has the values of the authors' measurement files of 2019-10-19, for each model of
Table 1: its layers, its end-to-end latency on four systems, the sum of its layers timed one by one, and, on c5.2xlarge
only, the sequential and parallel sums of the paper's Figure 3.
"""

import csv
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

# The paper's four systems in its order.
SYSTEMS = ("c4.xlarge", "c4.2xlarge", "c5.xlarge", "c5.2xlarge")
# The system of the sequential and parallel sums.
COMPOSED_SYSTEM = "c5.2xlarge"

LAYERS = 10_815
UNIQUE_LAYERS = 1_529
# The paper's words about its accuracy and speed-up.
CLOSENESS = "within 5 % to 11 % of the end-to-end latency"
BEST_SPEEDUP = "up to 4.4 on c5.xlarge"
# The sum of all end-to-end latencies over that of the distinct layers (by kind, parameters and input shape) in the
# authors' files, over the models that have both.
SPEEDUP: Mapping[str, float] = {"c4.xlarge": 3.89, "c4.2xlarge": 4.22, "c5.xlarge": 4.43, "c5.2xlarge": 4.17}


@dataclass(frozen=True, slots=True)
class PublishedModel:
    """The published values of a model in Table 1; latencies are by system."""

    table1_id: str
    layers: int
    unique_layers: int
    end_to_end_ms: Mapping[str, float]
    layers_ms: Mapping[str, float]
    sequential_ms: float
    parallel_ms: float

    def ratio(self, system: str) -> float | None:
        """Return the sum of single layers over the end-to-end latency."""
        layers_ms, end_to_end_ms = self.layers_ms.get(system), self.end_to_end_ms.get(system)
        return layers_ms / end_to_end_ms if layers_ms and end_to_end_ms else None

    @property
    def sequential_ratio(self) -> float:
        """The sequential sum over the end-to-end latency, on c5.2xlarge."""
        return self.sequential_ms / self.end_to_end_ms[COMPOSED_SYSTEM]

    @property
    def parallel_ratio(self) -> float:
        """The parallel sum over the end-to-end latency, on c5.2xlarge."""
        return self.parallel_ms / self.end_to_end_ms[COMPOSED_SYSTEM]


@cache
def published_models() -> Mapping[str, PublishedModel]:
    """Return the models of Table 1 by number."""
    text = files("dlbricks_tui.answers").joinpath("published_2019.csv").read_text(encoding="utf-8")
    return {row["table1_id"]: _model(row) for row in csv.DictReader(text.splitlines())}


def published_model(table1_id: str | None) -> PublishedModel | None:
    """Return a model of Table 1, None for any other."""
    return None if table1_id is None else published_models().get(table1_id)


def geometric_mean(system: str) -> float | None:
    """Return the geometric mean of the ratios of all models; None for a system that the paper does not have."""
    ratios = [ratio for model in published_models().values() if (ratio := model.ratio(system)) is not None]
    return math.exp(math.fsum(map(math.log, ratios)) / len(ratios)) if ratios else None


def _model(row: Mapping[str, str]) -> PublishedModel:
    return PublishedModel(
        row["table1_id"],
        int(row["layers"]),
        int(row["unique_layers"]),
        _by_system(row, "end_to_end_ms"),
        _by_system(row, "layers_ms"),
        float(row["sequential_ms"]),
        float(row["parallel_ms"]),
    )


def _by_system(row: Mapping[str, str], column: str) -> Mapping[str, float]:
    found = {system: row[f"{column} {system}"] for system in SYSTEMS}
    return {system: float(text) for system, text in found.items() if text}
