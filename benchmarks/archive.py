"""The archives of raw samples in docs/accuracy: pack exports into one, and unpack it into exports again.

usage: python -m benchmarks.archive pack EXPORT.json.gz ... [-o FILE]
       python -m benchmarks.archive unpack [FOLDER]

An export of the committed results takes 14 MB, most of it ids, statistics and digits of samples. The archive has each
sample as its difference from the trimmed mean, in thousandths of it, and everything that follows from samples and
content is computed when it is unpacked: statistics, keys of bricks, and ids. So latencies differ from the measured ones
by at most half a thousandth. Results by the method `alone` and those by `inside` become two exports.

`samples.json.xz` has measured networks that people know, and `made_up.json.xz` networks of `onnx_models --made-up`. An
archive is replaced when the method changes, since each version of it stays in the history of the project.
"""

import argparse
import hashlib
import json
import lzma
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from benchmarks.command_line import ROOT
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.documents import TABLE_OF, fields_of, record_of
from dlbricks_tui.store.exchange import export_all, import_file
from dlbricks_tui.store.records import (
    BrickForm,
    EndToEnd,
    Measurement,
    Record,
    Run,
    RuntimeRecord,
    Statistics,
    System,
    Timed,
)
from dlbricks_tui.store.statistics import summarise

ARCHIVE = ROOT / "docs" / "accuracy" / "samples.json.xz"
MADE_UP = ARCHIVE.with_name("made_up.json.xz")
UNPACKED = ROOT / "build" / "accuracy"
FORMAT = 1
# Samples and bounds of intervals are whole numbers of this share of the trimmed mean.
_PARTS = 1000
_DIGITS_OF_MEANS, _DIGITS_OF_SAMPLES, _DIGITS_OF_NOISE = 5, 7, 4
# Records that are kept as they are.
_PLAIN = (System, RuntimeRecord, Run)
# Fields with few values, kept once for each combination of them.
_COMMON = ("system", "runtime", "level", "protocol", "run", "batch_size", "dtype", "flags")
_OF_BRICK, _OF_MODEL = ("brick", "context", "kernel_variant", "occurrence"), ("model", "name")
_INSIDE = "inside"

Document = dict[str, Any]


def main() -> int:
    """Pack or unpack."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True, dest="command")
    packing = commands.add_parser("pack")
    packing.add_argument("files", type=Path, nargs="+", metavar="EXPORT")
    packing.add_argument("-o", "--output", type=Path, default=ARCHIVE)
    unpacking = commands.add_parser("unpack")
    unpacking.add_argument("folder", type=Path, nargs="?", default=_unpacked(ARCHIVE))
    arguments = parser.parse_args()
    if arguments.command == "pack":
        pack(arguments.files, arguments.output)
        print(f"{arguments.output}: {arguments.output.stat().st_size / 1e6:.2f} MB")
    else:
        for path in unpack(ARCHIVE, arguments.folder):
            print(path)
    return 0


def committed(archive: Path = ARCHIVE) -> tuple[Path, Path]:
    """Return the exports of an archive's results by `alone` and by `inside`; unpack it if it is newer."""
    paths = _paths(_unpacked(archive))
    if not all(it.exists() and it.stat().st_mtime >= archive.stat().st_mtime for it in paths):
        unpack(archive, _unpacked(archive))
    return paths


def _unpacked(archive: Path) -> Path:
    return UNPACKED / archive.name.partition(".")[0]


def pack(files: Iterable[Path], archive: Path) -> None:
    """Write an archive with the results of some exports."""
    with tempfile.TemporaryDirectory() as folder, ResultsDatabase(Path(folder)) as store:
        for file in files:
            if refused := import_file(store, file).refused:
                raise SystemExit(f"{file} has {len(refused)} records that cannot be imported")
        forms = {it.key: it.canonical for it in store.records(BrickForm)}
        place = {key: at for at, (key, _) in enumerate(sorted(forms.items(), key=lambda it: it[1]))}
        content: Document = {"format": FORMAT, "bricks": sorted(forms.values())}
        for kind in _PLAIN:
            content[TABLE_OF[kind]] = [_rounded(fields_of(it)) for it in store.records(kind)]
        bricks = [{**fields_of(it), "brick": place[it.brick]} for it in store.records(Measurement)]
        content["measurements"] = _columns(bricks, _OF_BRICK)
        content["end_to_end"] = _columns(map(fields_of, store.records(EndToEnd)), _OF_MODEL)
    text = json.dumps(content, separators=(",", ":")).encode()
    archive.parent.mkdir(parents=True, exist_ok=True)
    archive.write_bytes(lzma.compress(text, preset=9 | lzma.PRESET_EXTREME))


def unpack(archive: Path, folder: Path) -> tuple[Path, Path]:
    """Write an archive as two exports, of the results by `alone` and of those by `inside`."""
    content = json.loads(lzma.decompress(archive.read_bytes()))
    if content["format"] != FORMAT:
        raise SystemExit(f"{archive} has the unknown format {content['format']}")
    every = list(_records(content))
    folder.mkdir(parents=True, exist_ok=True)
    paths = _paths(folder)
    for path, wanted in zip(paths, (lambda it: not _by_inside(it), _by_inside), strict=True):
        with tempfile.TemporaryDirectory() as temporary, ResultsDatabase(Path(temporary)) as store:
            store.add(*_of(every, wanted))
            export_all(store, path)
    return paths


def _paths(folder: Path) -> tuple[Path, Path]:
    return folder / "alone.json.gz", folder / "inside.json.gz"


def _by_inside(record: Timed | Run) -> bool:
    return record.protocol.startswith(_INSIDE)


def _of(every: Iterable[Record], wanted: Callable[[Any], bool]) -> Iterator[Record]:
    """Yield the records of wanted results, and the bricks, systems and runtimes that these need."""
    dated = [it for it in every if isinstance(it, Timed | Run) and wanted(it)]
    used = {it.brick for it in dated if isinstance(it, Measurement)}
    used.update(it.system for it in dated)
    used.update(it.runtime for it in dated)
    for it in every:
        identity = it.key if isinstance(it, BrickForm) else it.id if isinstance(it, System | RuntimeRecord) else None
        if identity in used:
            yield it
    yield from dated


def _columns(documents: Iterable[Document], own: Sequence[str]) -> Document:
    """Return timed results as columns, similar ones after one another."""
    ordered = sorted(documents, key=lambda it: [str(it[name]) for name in (*_COMMON[:4], own[0], own[1], "when")])
    common: dict[str, int] = {}
    columns: Document = {name: [] for name in (*own, "common", "when", "noise", "mean", "bounds", "samples")}
    for it in ordered:
        steady: Mapping[str, Any] = it["statistics"]
        mean = _significant(steady["trimmed_mean_ms"], _DIGITS_OF_MEANS)
        key = json.dumps([it[name] for name in _COMMON])
        for name in own:
            columns[name].append(it[name])
        columns["common"].append(common.setdefault(key, len(common)))
        columns["when"].append(round(datetime.fromisoformat(it["when"]).timestamp()))
        noise = {"warm_up": len(it["samples_ms"]) - steady["count"], **_rounded(it["noise"])}
        columns["noise"].append(noise)
        columns["mean"].append(mean)
        columns["bounds"].append([_parts(steady[name], mean) for name in ("low_ms", "high_ms")])
        columns["samples"].append([_parts(sample, mean) for sample in it["samples_ms"]])
    return {"kinds": [json.loads(it) for it in common], **columns}


def _records(content: Document) -> Iterator[Record]:
    """Yield the records of an archive."""
    keys = [hashlib.sha256(it.encode()).hexdigest() for it in content["bricks"]]
    for key, canonical in zip(keys, content["bricks"], strict=True):
        yield BrickForm(key=key, canonical=canonical)
    for kind in _PLAIN:
        for document in content[TABLE_OF[kind]]:
            yield record_of(TABLE_OF[kind], document)
    for table, own in ((TABLE_OF[Measurement], _OF_BRICK), (TABLE_OF[EndToEnd], _OF_MODEL)):
        columns = content[table]
        for at in range(len(columns["when"])):
            document = dict(zip(_COMMON, columns["kinds"][columns["common"][at]], strict=True))
            document.update((name, columns[name][at]) for name in own)
            if "brick" in document:
                document["brick"] = keys[document["brick"]]
            document["when"] = datetime.fromtimestamp(columns["when"][at], timezone.utc).isoformat(
                timespec="microseconds"
            )
            document["noise"] = columns["noise"][at]
            samples = [_latency(it, columns["mean"][at]) for it in columns["samples"][at]]
            statistics = _statistics(samples[document["noise"]["warm_up"] :], columns["bounds"][at])
            document.update(samples_ms=samples, statistics=asdict(statistics))
            identity = json.dumps(document, sort_keys=True).encode()
            yield record_of(table, {**document, "uuid": hashlib.sha256(identity).hexdigest()[:32]})


def _statistics(samples: Sequence[float], bounds: Sequence[int]) -> Statistics:
    """Return the statistics of samples with an interval that was not computed from them alone."""
    found = summarise(samples)
    mean = found.trimmed_mean_ms
    low, high = (min(max(_latency(it, mean), min(samples)), max(samples)) for it in bounds)
    return replace(found, low_ms=min(low, mean), high_ms=max(high, mean))


def _parts(latency_ms: float, mean_ms: float) -> int:
    """Return the difference of a latency from a mean in thousandths of it, or the latency itself if the mean is 0."""
    return round(_PARTS * (latency_ms / mean_ms - 1)) if mean_ms else round(latency_ms * 1e6)


def _latency(parts: int, mean_ms: float) -> float:
    """Return the latency behind the result of `_parts`."""
    return _significant(mean_ms * (1 + parts / _PARTS), _DIGITS_OF_SAMPLES) if mean_ms else parts / 1e6


def _significant(value: float, digits: int) -> float:
    return float(f"{value:.{digits}g}")


def _rounded(value: Any) -> Any:
    """Return JSON values with fewer digits."""
    if isinstance(value, float):
        return _significant(value, _DIGITS_OF_NOISE)
    if isinstance(value, Mapping):
        return {name: _rounded(it) for name, it in value.items()}
    return value


if __name__ == "__main__":
    sys.exit(main())
