"""Results of two systems and two runtimes for comparisons, and files of them."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from dlbricks_tui.api.sides import Side, side_of
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.exchange import export_all
from dlbricks_tui.store.records import EndToEnd, Measurement, Record, new_uuid
from dlbricks_tui.store.statistics import summarise
from tests.store.samples import brick, end_to_end, form, measurement, provenance, run, runtime, system

ONE = "onnxruntime-1.20 python-3.11 threads-1"
TWO = "onnxruntime-1.20 python-3.11 threads-2"
NEWER = "onnxruntime-1.21 python-3.11 threads-1"
MXNET = "mxnet-1.9.1 python-3.11 threads-1"
_VERSIONS = {ONE: "1.20", TWO: "1.20", NEWER: "1.21", MXNET: "1.9.1"}
DEFINITIONS: tuple[Record, ...] = (
    system("here"),
    system("there", cpu="EPYC"),
    *(
        runtime(it, framework=it.partition("-")[0], version=version, settings=(), python="3.11.7")
        for it, version in _VERSIONS.items()
    ),
    *(form(number) for number in range(4)),
)


def _samples(latency_ms: float, noise: float, count: int) -> dict[str, Any]:
    samples = tuple(latency_ms * (1 + noise * (number * 7 % 11 - 5) / 5) for number in range(count))
    return {"samples_ms": samples, "statistics": summarise(samples)}


def model(name: str, latency_ms: float, *, noise: float = 0.005, count: int = 22, **fields: Any) -> EndToEnd:
    """A whole model; its key is made of its name."""
    usual = {"system": "here", "runtime": ONE, "name": name, "model": name.encode().hex().ljust(64, "0")}
    return end_to_end(**{**usual, **_samples(latency_ms, noise, count), **fields})


def layer(number: int, latency_ms: float, *, noise: float = 0.005, count: int = 22, **fields: Any) -> Measurement:
    """A brick."""
    usual = {"system": "here", "runtime": ONE, "brick": brick(number)}
    return measurement(**{**usual, **_samples(latency_ms, noise, count), **fields})


def in_three_runs(*records: EndToEnd | Measurement) -> list[EndToEnd | Measurement]:
    """The same results of three runs, each in processes of its own."""
    return [replace(it, run=f"{it.run}{number}", uuid=new_uuid()) for it in records for number in range(3)]


def side(name: str, *records: Record) -> Side:
    """A side with these results."""
    return side_of(name, [*DEFINITIONS, *records])


def exported(path: Path, *records: Record) -> Path:
    """A file of these results."""
    with ResultsDatabase(path.with_suffix(".store")) as store:
        store.add(*DEFINITIONS, run(), *records)
        export_all(store, path)
    return path


def origin(**fields: Any) -> Record:
    """The provenance of the usual run."""
    return provenance(**{"system": "here", "runtime": ONE, **fields})
