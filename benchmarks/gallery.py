"""Time the import of a gallery: a folder with a file per host and day, signed by a key.

usage: python -m benchmarks.gallery [FILES [RESULTS PER FILE]]

Promised for 100 files of 1,000 results: 60 s, and a second import adds nothing. The ratios are over reading all files
as JSON in the same minute.
"""

import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from benchmarks.promises import at_most, judge
from benchmarks.store_scale import form, samples
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.models.graph import Level
from dlbricks_tui.share.galleries import Imported, Trust, import_paths
from dlbricks_tui.share.signatures import export_signed, signers_of
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.exporting import export_selection
from dlbricks_tui.store.filters import equal
from dlbricks_tui.store.records import Measurement, Provenance, Run, Runtime, System
from dlbricks_tui.store.selections import OLDEST_FIRST

FILES, RESULTS = 100, 1_000
DAYS = 10
MOST_S = 60.0
RUNTIME = Runtime(
    id="onnxruntime-1.23.0 threads-2", name="ours", framework="onnxruntime", version="1.23.0", python="3.11", threads=2
)
Value = TypeVar("Value")


def publish(folder: Path, files: int, results: int, key: Path) -> None:
    """Write a file per host and day, each with all bricks of the host."""
    chance = random.Random(files)
    for host in range(-(-files // DAYS)):
        system = System(id=f"host-{host}", name=f"host {host}", cpu="Xeon 8124M", cores=4, memory_bytes=8 << 30)
        (folder / system.id).mkdir(parents=True)
        with tempfile.TemporaryDirectory() as store_folder, ResultsDatabase(Path(store_folder)) as store:
            store.add(system, RUNTIME, *map(form, range(results)))
            for day in range(min(DAYS, files - host * DAYS)):
                when, run = f"2026-11-{10 + day}T08:00:00.000000+00:00", f"{system.id}-{day}"
                way: dict[str, Any] = {"system": system.id, "runtime": RUNTIME.id, "protocol": "inside-5"}
                started = Run(
                    **way, id=run, started=when, when=when, state="done", granularity=1, models=(), level=Level.FUSED
                )
                origin = Provenance(**way, when=when, run=run, packages=(("dlbricks", "0.2.0"),), host=(), models=())
                store.add(started, origin, *measured(system, run, when, results, chance))
                export = partial(export_selection, store.select(equal(run=run), order=OLDEST_FIRST))
                export_signed(folder / system.id / f"{when[:10]}.json", key, export)


def measured(system: System, run: str, when: str, results: int, chance: random.Random) -> list[Measurement]:
    """Return a result of each brick; one in a hundred is another latency than on other days."""
    found = []
    for number in range(results):
        samples_ms, statistics = samples(number if chance.random() < 0.99 else number + 1)
        found.append(
            Measurement(
                brick=form(number).key,
                context="plain",
                system=system.id,
                runtime=RUNTIME.id,
                level=Level.FUSED,
                protocol="inside-5",
                when=when,
                run=run,
                statistics=statistics,
                samples_ms=samples_ms,
            )
        )
    return found


def read_json(folder: Path) -> int:
    """Read the JSON of all files, and return the number of documents."""
    read = 0
    for path in sorted(folder.rglob("*.json")):
        for tables in json.loads(path.read_bytes()).values():
            read += len(tables)
    return read


def timed(what: str, work: Callable[[], Value]) -> tuple[float, Value]:
    """Print how long work took, and return the seconds and its result."""
    start, busy = time.perf_counter(), time.process_time()
    value = work()
    taken = time.perf_counter() - start
    print(f"{what}: {taken:.1f} s, of which {time.process_time() - busy:.1f} s of the processor")
    return taken, value


def import_gallery(data: DataFolder, gallery: Path) -> Imported:
    """Import the gallery like `dlbricks results import`, with all signatures required."""
    with ResultsDatabase(data.store) as store:
        return import_paths(store, [gallery], Trust(signers_of(data), required=True))


def new_records(done: Imported) -> int:
    """Return the number of new records."""
    return sum(it.report.new for path in done.paths for it in path.files)


def main() -> int:
    """Measure, and judge the promises."""
    given = [int(it) for it in sys.argv[1:3]]
    files, results = [*given, *(FILES, RESULTS)[len(given) :]]
    with tempfile.TemporaryDirectory() as folder:
        gallery, data, key = Path(folder, "gallery"), DataFolder(Path(folder, "data")), Path(folder, "key")
        data.path.mkdir()
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
        data.allowed_signers.write_text(f"team@example.org {key.with_suffix('.pub').read_text()}")
        publish(gallery, files, results, key)
        size = sum(path.stat().st_size for path in gallery.rglob("*.json"))
        reading_s, _ = timed("reading the JSON", lambda: read_json(gallery))
        first_s, first = timed("first import", lambda: import_gallery(data, gallery))
        again_s, again = timed("second import", lambda: import_gallery(data, gallery))
        assert first.complete and again.complete
    print(f"{files} files, {files * results:,} results, {size / 1e6:.0f} MB; {len(first.claims):,} contradictions")
    print(f"first import: {first_s / reading_s:.1f} times as long as reading; {new_records(first):,} new records")
    print(
        f"second import: {again_s:.1f} s, {again_s / reading_s:.1f} times as long; {new_records(again):,} new records"
    )
    most_s = MOST_S * files * results / (FILES * RESULTS)
    return judge(
        [
            at_most(most_s, "s", "first import", first_s),
            at_most(0, "records", "new records of the second import", new_records(again)),
        ]
    )


if __name__ == "__main__":
    sys.exit(main())
