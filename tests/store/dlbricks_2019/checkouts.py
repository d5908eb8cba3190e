"""Checkouts as the authors' repository lays them out, with invented times."""

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path

MODEL_HEADER = ("id", "name", "machine_name", "min_time", "mean_time", "max_time", "raw_time")
LAYER_HEADER = (
    *("model_name", "instance_type", "start_index", "end_index", "sequence_length", "num_runs"),
    *("start_name", "end_name", "sequence_name", "start_layer_kind", "end_layer_kind", "sequence_layer_kind"),
    *("start_layer_path_time", "mean_path_time", "end_layer_path_time", "raw_path_time"),
)


def wolfram(times: Sequence[float]) -> str:
    """Return times as the Wolfram Language prints them: from a million on with an exponent."""
    printed = (f"{time / 1e6!r}*^6" if time >= 1e6 else repr(time).removesuffix("0") for time in times)
    return "{" + ", ".join(printed) + "}"


def model_file(checkout: Path, system: str, model: str) -> Path:
    """Return the file with the times of a whole model."""
    return checkout / "data" / "mxnet_model" / system / f"{model.replace(' ', '_')}.csv"


def layer_file(checkout: Path, system: str, model: str) -> Path:
    """Return the file with the times of a model's layers."""
    return checkout / "data" / "mxnet_layer_sequence" / "seq_0" / system / f"{model.replace(' ', '_')}.csv"


def time_model(checkout: Path, system: str, model: str, times: Sequence[float]) -> Path:
    """Write times of a whole model in microseconds."""
    row = (7, model, system, *_summary(times), wolfram(times))
    return _write(model_file(checkout, system, model), MODEL_HEADER, [row])


def time_layers(checkout: Path, system: str, model: str, times: Mapping[str, Sequence[float]]) -> Path:
    """Write times of a model's layers, by name, in microseconds."""
    rows = [
        (model, system, number, number, 0, len(some), *3 * (layer,), *3 * ("Kind",), *_summary(some), wolfram(some))
        for number, (layer, some) in enumerate(times.items(), 1)
    ]
    return _write(layer_file(checkout, system, model), LAYER_HEADER, rows)


def _summary(times: Sequence[float]) -> tuple[float, float, float]:
    return (min(times), sum(times) / len(times), max(times)) if times else (0.0, 0.0, 0.0)


def _write(path: Path, header: Sequence[str], rows: Sequence[Sequence[object]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        table = csv.writer(file, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\n")
        table.writerows([header, *rows])
    return path
