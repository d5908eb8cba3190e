"""Records the demonstration of `dlbricks demo`: measures on this host, and packs the results without its names.

usage: python -m docs.recording FOLDER            measure into an empty data folder, which takes some minutes
       python -m docs.recording FOLDER --pack     pack what is there
"""

import argparse
import io
import json
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, closing, suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from dlbricks_tui.api.demonstration import DATA_MARK, FACTS, FILES, PACKED, RESULTS, SAMPLES_MARK, SCHEMA
from dlbricks_tui.folders import SAMPLE_MODELS, DataFolder
from dlbricks_tui.host.fingerprint import fingerprint
from dlbricks_tui.jobs.folder import RunFolders
from dlbricks_tui.models.frameworks import Frameworks
from dlbricks_tui.models.graph import Level
from dlbricks_tui.models.library import Library
from dlbricks_tui.models.loading import UNLOADABLE
from dlbricks_tui.runtime.registry import Registry
from dlbricks_tui.runtime.traits import Format
from dlbricks_tui.settings.variant import BATCH_SIZES
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.documents import SAMPLES, TABLES, to_document, to_record
from dlbricks_tui.store.records import Proof, Timed
from dlbricks_tui.store.statistics import summarise
from dlbricks_tui.store.verification import check_plausible

MOST_BYTES = 400_000
# The name in place of that of the host.
HOST = "demo"
# Measured at several batch sizes and numbers of threads in all runtimes, analysed, served and traced.
VARIED = "squeezenet1.1"
RUNTIMES = "mxnet,onnxruntime,openvino"
BATCHES = (1, 2, 4, 8)
# The batch sizes that the workbench reads for a curve.
READ_BATCHES = BATCH_SIZES
FIRST_RUN = (VARIED, "mobilenet0.5", "resnet18_v1", "inceptionv3")
PLACES = "Inception V1 Trained on Places365 Data"
COMMANDS: tuple[tuple[str, ...], ...] = (
    ("run", *FIRST_RUN, "--end-to-end"),
    ("run", "mobilenet1.0", "resnet50_v1", PLACES, "--end-to-end"),
    ("run", VARIED, "--runtime", RUNTIMES, "--batch", ",".join(map(str, BATCHES)), "--end-to-end"),
    ("run", VARIED, "--runtime", RUNTIMES, "--threads", "1,2", "--end-to-end"),
    ("run", "resnet18_v1", "mobilenet0.5", "--runtime", "onnxruntime,openvino", "--end-to-end"),
    ("analyze", VARIED, "--measure", "--prove", "all"),
    ("scenario", VARIED, "--kind", "server", "--bound-ms", "100", "--both"),
    ("scenario", VARIED, "--kind", "single", "--both"),
    ("trace", VARIED, "--runtime", "openvino", "--force", "-o", "{folder}/trace.pftrace"),
)
# The same on one of the cores, which is another system.
ONE_CORE: tuple[tuple[str, ...], ...] = (
    ("run", *FIRST_RUN[:3], "--end-to-end"),
    ("run", VARIED, "--runtime", "onnxruntime,openvino"),
)
ON_ONE_CORE = ["taskset", "-c", "0"]
SCHEDULER = "tcp://127.0.0.1:8797"
# Read, but not measured: their estimates are predictions.
PREDICTED = (
    *("squeezenet1.0", "mobilenet0.25", "mobilenetv2_1.0", "resnet34_v1", "resnet18_v2", "alexnet", "vgg11", "vgg16"),
    *(
        "Inception V1 Trained on Extended Salient Object Subitizing Data",
        "Inception V1 Trained on ImageNet Competition Data",
    ),
)
MEASURED = (*FIRST_RUN, "mobilenet1.0", "resnet50_v1", PLACES)
MODELS = (*MEASURED, *PREDICTED)
# Parts of the data folder that the demonstration needs.
PARTS = ("runs", "scenarios", "traces", "fleets", "prices.json")
# The events of a run of many combinations are too large.
MOST_EVENT_BYTES = 250_000
# Nothing refers to these records by their UUID, and random digits cannot be compressed.
WITHOUT_UUID = ("bricks", "systems", "runtimes", "end_to_end", "measurements")
# Of a run, what only resuming it or a report of a defect needs.
LEFT_OUT = ("*.log", "lock", "pause", "mlperf_log_trace.json.gz")


def measure(folder: Path) -> None:
    """Measure everything that the demonstration shows."""
    dlbricks = _dlbricks(folder)
    for command in COMMANDS:
        _execute([*dlbricks, *(word.format(folder=folder) for word in command)])
    for command in ONE_CORE:
        _execute([*ON_ONE_CORE, *dlbricks, *command])
    measure_fleet(folder)


def measure_fleet(folder: Path) -> None:
    """Let two hosts measure for a fleet: this one, and one of its cores. They take turns."""
    scheduler = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--no-dashboard", "--host", SCHEDULER]
    with ExitStack() as opened, tempfile.TemporaryDirectory() as place:
        _start(opened, scheduler)
        for name, on_cores in (("two-cores", []), ("one-core", ON_ONE_CORE)):
            worker = [*_dlbricks(Path(place, name)), "fleet", "worker", SCHEDULER, "--name", name]
            _start(opened, [*on_cores, *worker])
        asked = ["--scheduler", SCHEDULER, "--question", "which-host", "--probe-seconds", "10"]
        _execute([*_dlbricks(folder), "fleet", "run", *FIRST_RUN[:3], *asked])


def _dlbricks(folder: Path) -> list[str]:
    return [sys.executable, "-m", "dlbricks_tui", "--data-dir", str(folder)]


def _start(opened: ExitStack, command: list[str]) -> None:
    """Start a process that ends with the block."""
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL)
    opened.callback(process.wait)
    opened.callback(process.terminate)
    # The workers look for the scheduler for a while.
    time.sleep(3)


def _execute(command: list[str]) -> None:
    print("$", *command, file=sys.stderr)
    # A what-if that cannot be proved is a result, too.
    if subprocess.run(command, stdin=subprocess.DEVNULL, check=False).returncode not in (0, 1):
        raise SystemExit(f"failed: {' '.join(command)}")


def pack(folder: Path, file: Path) -> None:
    """Pack a data folder without names of this host."""
    data = DataFolder(folder)
    with tempfile.TemporaryDirectory() as place:
        cache = Path(place, "cache")
        _read_models(data, cache)
        contents = {
            f"cache/{path.relative_to(cache)}": path.read_bytes() for path in _files_in(cache, ("fused", "inferred"))
        }
    contents |= {str(path.relative_to(folder)): _shortened_file(path) for path in _files_in(folder, PARTS)}
    # The answers of frameworks hold no names, but long numbers as text.
    contents = {
        name: content if name.startswith("cache/") else _anonymous(content, folder)
        for name, content in contents.items()
    }
    parts = {
        FACTS: json.dumps(_facts(data), indent=1).encode(),
        RESULTS: _anonymous(b"".join(_results(data)), folder),
        **{f"{FILES}{name}": content for name, content in sorted(contents.items())},
    }
    _write(parts, file)
    size = file.stat().st_size
    print(f"{file.name}: {size:,} bytes")
    if size > MOST_BYTES:
        raise SystemExit(f"that is more than {MOST_BYTES:,} bytes: record less")


def _facts(data: DataFolder) -> dict[str, Any]:
    runtimes = Registry(data.path).all()
    runs = RunFolders(data.runs).states()
    first = next(it for it in reversed(runs) if it.models == FIRST_RUN)
    return {
        "schema": SCHEMA,
        "name": HOST,
        "system": _without_names(to_document(fingerprint())),
        "versions": {package: it.version for it in runtimes for package in it.traits.packages[:1]},
        "python": platform.python_version(),
        "recorded": first.started[:10],
        "replayed": first.run,
        "models": MODELS,
    }


def _read_models(data: DataFolder, cache: Path) -> None:
    """Let the frameworks read all models as in the demonstration, where the host has another name."""
    registry, node = Registry(data.path), platform.node
    platform.node = lambda: HOST
    try:
        for runtime in registry.all():
            form = runtime.traits.format
            library = Library(SAMPLE_MODELS, data.path, form)
            runtimes = {**registry.one_of_each_format(), form: runtime}
            with closing(Frameworks(runtimes, cache, data.log / "recording.log")) as frameworks:
                loader = frameworks.loader
                usual = registry.preferred_for(tuple(Format))
                for name in MODELS if runtime == usual else MEASURED:
                    (source,) = library.find(name)
                    for batch in (None, *(READ_BATCHES if name == VARIED else ())):
                        for level in Level:
                            with suppress(*UNLOADABLE):
                                loader.load(source, level, batch_size=batch)
    finally:
        platform.node = node


def _results(data: DataFolder) -> Iterator[bytes]:
    with ResultsDatabase(data.store) as store:
        for kind in TABLES.values():
            for record in _newest(store.records(kind)):
                document = _without_names(_shortened(record))
                # What `dlbricks demo` exports can be imported.
                check_plausible(to_record(document))
                if document["table"] in WITHOUT_UUID:
                    del document["uuid"]
                yield json.dumps(document, separators=(",", ":")).encode() + b"\n"


def _newest(records: Iterable[Any]) -> list[Any]:
    """Return the records without the results that later ones have replaced."""
    found: dict[object, Any] = {}
    for number, record in enumerate(records):
        names = ("system", "runtime", "protocol", "brick", "context", "model")
        is_result = hasattr(record, "statistics")
        found[tuple(getattr(record, name, "") for name in names) if is_result else number] = record
    return list(found.values())


def _shortened(record: Any) -> dict[str, Any]:
    """Return a record as a document with fewer digits; what is computed from its samples still follows from them."""
    if isinstance(record, Proof):
        return to_document(record)
    if isinstance(record, Timed):
        record = _with_short_samples(record)
    return {**_rounded(to_document(record)), **_rounded(_statistics_of(record), 9)}


def _with_short_samples(result: Any) -> Any:
    """Return a result with samples of four digits and their statistics."""
    warm_up = len(result.samples_ms) - result.statistics.count
    samples = tuple(_digits(sample, 4) for sample in result.samples_ms)
    found = summarise(samples[warm_up:])
    if result.statistics != summarise(result.samples_ms[warm_up:]):
        # Its interval has more in it than the samples tell.
        low, high = max(result.statistics.low_ms, min(samples)), min(result.statistics.high_ms, max(samples))
        found = replace(found, low_ms=low, high_ms=high)
    return replace(result, samples_ms=samples, statistics=found)


def _statistics_of(record: Any) -> dict[str, Any]:
    return {"statistics": asdict(record.statistics)} if isinstance(record, Timed) else {}


def _rounded(value: Any, digits: int = 5) -> Any:
    if isinstance(value, float):
        return _digits(value, digits)
    if isinstance(value, dict):
        return {name: _rounded(each, 4 if name in SAMPLES else digits) for name, each in value.items()}
    return [_rounded(each, digits) for each in value] if isinstance(value, list) else value


def _digits(number: float, digits: int) -> float:
    return float(f"{number:.{digits}g}")


def _without_names(document: dict[str, Any]) -> dict[str, Any]:
    """Return a document without the build of the kernel, which may name where this host runs."""
    for name in ("facts", "host"):
        if "kernel" in document.get(name, {}):
            document[name]["kernel"] = ".".join(document[name]["kernel"].split(".")[:2])
    return document


def _shortened_file(path: Path) -> bytes:
    """Return the content of a file; events with as many digits as the results have."""
    if path.suffix == ".jsonl":
        lines = [
            json.dumps(_rounded(json.loads(line)), separators=(",", ":")) for line in path.read_text().splitlines()
        ]
        return "".join(f"{line}\n" for line in lines).encode()
    return path.read_bytes()


def _anonymous(content: bytes, folder: Path) -> bytes:
    names = {
        str(folder): DATA_MARK,
        str(SAMPLE_MODELS): SAMPLES_MARK,
        sys.executable: "/usr/bin/python3",
        str(Path.cwd()): "/home/demo/dlbricks",
        str(Path.home()): "/home/demo",
    }
    for name, instead in names.items():
        content = content.replace(name.encode(), instead.encode())
    # The data folders of other runs, for which a run has waited.
    return re.sub(rb"/(?:tmp|root|work|Users)/[\w./-]*", b"/home/demo/other", content)


def _files_in(folder: Path, parts: Iterable[str]) -> list[Path]:
    found = [
        path for part in parts for path in ((folder / part).rglob("*") if (folder / part).is_dir() else [folder / part])
    ]
    large = {path.parent for path in found if path.name == "events.jsonl" and path.stat().st_size > MOST_EVENT_BYTES}
    kept = (path for path in found if path.is_file() and path.parent not in large)
    return sorted(path for path in kept if not any(path.match(it) for it in LEFT_OUT))


def _write(parts: dict[str, bytes], file: Path) -> None:
    with tarfile.open(file, "w:xz", preset=9) as archive:
        for name, content in parts.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))


def main() -> None:
    """Measure or pack."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--pack", action="store_true")
    parser.add_argument("--file", type=Path, default=PACKED)
    args = parser.parse_args()
    folder = args.folder.absolute()
    if not args.pack:
        shutil.rmtree(folder / "log", ignore_errors=True)
        measure(folder)
    pack(folder, args.file)


if __name__ == "__main__":
    main()
