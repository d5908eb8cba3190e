"""Records for tests: valid by default, with the fields that a test changes."""

import hashlib
import json
import math
from pathlib import Path
from typing import Any

from dlbricks_tui.models.graph import Level
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.documents import SCHEMA, TABLE_OF, TABLES, Document, fields_of
from dlbricks_tui.store.files import EntryKind, JournalEntry, line_of, sealed, write_tinydb_file
from dlbricks_tui.store.records import (
    BrickForm,
    EndToEnd,
    Failure,
    Import,
    LoadTest,
    Measurement,
    Peaks,
    Proof,
    Provenance,
    Record,
    Run,
    RuntimeRecord,
    System,
)
from dlbricks_tui.store.statistics import pack_latencies, summarise, trimmed_mean

WHEN = "2026-11-21T08:00:00.000000+00:00"
WAY: dict[str, Any] = {"system": "c5.xlarge", "runtime": "mxnet-1.9.1", "level": Level.FUSED, "protocol": "hot"}


def form(number: int = 0, op: str = "Convolution") -> BrickForm:
    """Return a brick form, a different one for each number."""
    document = {
        "version": 1,
        "level": "fused",
        "operators": [{"op": op, "params": {"kernel": [3, 3], "stride": [2, 2]}, "inputs": [["data", 0, 0]]}],
        "data": [[[1, 64, 56, number], "float32"]],
        "weights": [],
    }
    canonical = json.dumps(document, separators=(",", ":"), sort_keys=True)
    return BrickForm(key=hashlib.sha256(canonical.encode()).hexdigest(), canonical=canonical)


def brick(number: int = 0) -> str:
    """Return the key of that brick."""
    return form(number).key


def measurement(base_ms: float = 1.0, **fields: Any) -> Measurement:
    """Return a measurement of a brick around a latency."""
    return Measurement(**{"brick": brick(), "context": "plain", **_timed(base_ms), **fields})


def end_to_end(base_ms: float = 30.0, **fields: Any) -> EndToEnd:
    """Return a measurement of a whole model around a latency."""
    return EndToEnd(**{"model": "ab" * 32, "name": "resnet50_v1", **_timed(base_ms), **fields})


def system(name: str = "c5.xlarge", **fields: Any) -> System:
    """Return a system."""
    described = {"id": name, "name": name, "cpu": "Xeon 8124M", "cores": 4, "memory_bytes": 8 << 30}
    return System(**{**described, "instance_type": name, "facts": (("governor", None), ("smt", True)), **fields})


def runtime(name: str = "mxnet-1.9.1", **fields: Any) -> RuntimeRecord:
    """Return a runtime."""
    described = {"id": name, "name": "ours", "framework": "mxnet", "version": "1.9.1", "python": "3.11", "threads": 2}
    return RuntimeRecord(**{**described, "settings": (("OMP_NUM_THREADS", "2"),), **fields})


def peaks(**fields: Any) -> Peaks:
    """Return the peaks of a system."""
    speeds = {"arithmetic": (("avx512", 98.5), ("avx2", 61.0)), "bandwidth": (("memory", 21.0), ("shared cache", 64.0))}
    return Peaks(**{"system": "c5.xlarge", "when": WHEN, "threads": 2, **speeds, **fields})


def run(name: str = "r1", **fields: Any) -> Run:
    """Return a run."""
    state = {"started": WHEN, "when": WHEN, "state": "done", "granularity": 2, "models": ("resnet50_v1",)}
    return Run(**{**WAY, "id": name, **state, "measured": 3, "failed": 1, "settings": (("target_ci", 0.01),), **fields})


def provenance(**fields: Any) -> Provenance:
    """Return where the results of the run come from."""
    way = {name: value for name, value in WAY.items() if name != "level"}
    packages = (("dlbricks", "0.2.0"), ("python", "3.11.2"), ("mxnet", "1.9.1"), ("onednn", "2.4.0"))
    host = (("cpu", "Xeon 8124M"), ("kernel", "6.1.0-13-cloud-amd64"), ("governor", "performance"), ("turbo", True))
    known = {"packages": packages, "host": host, "models": (("ab" * 32, "0f" * 32),)}
    return Provenance(**{**way, "when": WHEN, "run": "r1", **known, **fields})


def former_calibration() -> Document:
    """Return a document of a table that only earlier versions have."""
    fitted = {"constants": {"warm_brick_ms": 0.016}, "residuals": {"net-1": -0.02}, "densities": {"net-1": 0.4}}
    about = {"uuid": f"{99:032x}", "when": WHEN, **WAY, "level": "fused", "run": "r1"}
    return {"table": "calibrations", "schema": 1, **about, **fitted}


def failure(**fields: Any) -> Failure:
    """Return a failure."""
    what = {"brick": brick(1), "context": "plain", "reason": "memory", "message": "exceeded 4 GiB"}
    return Failure(**{**WAY, "when": WHEN, "run": "r1", **what, **fields})


def proof(before_ms: float = 30.0, after_ms: float = 24.0, **fields: Any) -> Proof:
    """Return the proof of a change from one latency to another."""
    before, after = (
        tuple(base_ms * (1 + number % 5 / 100) for number in range(10)) for base_ms in (before_ms, after_ms)
    )
    gain = 1 - math.exp(trimmed_mean([math.log(new / old) for old, new in zip(before, after, strict=True)]))
    way = {name: value for name, value in WAY.items() if name != "protocol"}
    changed = {"changed_runtime": "mxnet-1.9.1 threads-1", "changed_level": Level.FUSED, "changed_batch_size": 1}
    known = {"model": "ab" * 32, "name": "resnet50_v1", "what_if": "parallel-2", "kind": "parallel", "batch_size": 1}
    found = {"before": summarise(before), "after": summarise(after), "samples_ms": before, "changed_samples_ms": after}
    gains = {"gain": gain, "gain_low": gain - 0.01, "gain_high": gain + 0.01}
    predicted = {"predicted_gain": 0.25, "predicted_low": 0.2, "predicted_high": 0.3}
    return Proof(**{**way, **changed, **known, **found, **gains, **predicted, "when": WHEN, **fields})


def load_test(**fields: Any) -> LoadTest:
    """Return a server that answered 700 requests, most of them in 8 to 12 ms."""
    way = {name: value for name, value in WAY.items() if name != "protocol"}
    latencies_ns = [8_000_000 + number % 41 * 100_000 + number for number in range(700)]
    asked = {"kind": "server", "percentile": 99.0, "bound_ms": 20.0, "rate": 40.0, "sought": True, "batch_size": 1}
    found = {"per_second": 39.6, "valid": True, "reasons": (), "queries": 700, "seconds": 17.5, "passing_ms": 0.15}
    found["wake_up_ms"] = 0.0
    known = {"model": "ab" * 32, "name": "resnet50_v1", "instances": 1, "latencies": pack_latencies(latencies_ns)}
    return LoadTest(**{**way, **asked, **found, **known, "when": WHEN, **fields})


def imported(*uuids: str, **fields: Any) -> Import:
    """Return the record that records came from a signed file."""
    return Import(**{"when": WHEN, "file": "team/a.json", "signer": "ann@example.org", "records": uuids, **fields})


def counts(store: ResultsDatabase) -> dict[str, int]:
    """Return the number of records in each table."""
    return {table: len(store.table(table)) for table in TABLES}


def line_of_record(record: Record, schema: int = SCHEMA, doc_id: int = 1, **changed: Any) -> bytes:
    """Return a record as a line of a journal, with the changed values, of a schema."""
    entry = JournalEntry(EntryKind.PUT, TABLE_OF[type(record)], doc_id, {**fields_of(record), **changed})
    return sealed(line_of(entry), schema)


def write_file(path: Path, *documents: Document) -> Path:
    """Write documents that name their table and schema into a file like an export."""

    def numbered(number: int, document: Document) -> tuple[str, int, bytes]:
        content = {name: value for name, value in document.items() if name not in ("table", "schema")}
        line = line_of(JournalEntry(EntryKind.PUT, document["table"], number, content))
        return document["table"], number, sealed(line, document["schema"])

    with path.open("wb") as file:
        write_tinydb_file(file, [numbered(number, each) for number, each in enumerate(documents, 1)])
    return path


def one_of_each() -> list[Record]:
    """Return a record of every table with values in all fields, always the same ones."""
    noise = (("load", 0.5), ("governor", "powersave"), ("steal", None))
    return [
        form(),
        system(),
        runtime(),
        peaks(uuid=f"{6:032x}"),
        run(uuid=f"{1:032x}"),
        provenance(uuid=f"{9:032x}", evaluation="nightly.toml", unmet=("governor is powersave",)),
        failure(uuid=f"{3:032x}"),
        proof(uuid=f"{7:032x}"),
        load_test(uuid=f"{8:032x}"),
        end_to_end(uuid=f"{4:032x}", noise=noise),
        measurement(
            uuid=f"{5:032x}",
            noise=noise,
            flags=("drift",),
            kernel_variant="jit:avx512",
            occurrence=(("model", "resnet50_v1"), ("layer", "conv1")),
        ),
        # Of a result that was deleted since.
        imported("f0" * 16, uuid=f"{10:032x}"),
    ]


def _timed(base_ms: float) -> dict[str, Any]:
    samples = tuple(base_ms * (1 + number % 5 / 100) for number in range(10))
    return {**WAY, "when": WHEN, "run": "r1", "statistics": summarise(samples), "samples_ms": samples}
