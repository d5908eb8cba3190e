"""Time the results database at 1,000 to 1,000,000 results, and plain TinyDB on the same documents.

usage: python -m benchmarks.store_scale [SIZE ...]

Each store is opened in a process of its own, so that memory is that of one store. The promises at 100,000 results: an
insert in 5 ms or twice a bare write and fsync, an indexed get in 2 ms, an indexed search in 10 ms, opening in 1 s, a
sort or filter in 100 ms; at 1,000,000: an insert in 5 ms, a get in 2 ms, opening in 3 s, and 400 MB. Plain TinyDB is
left out above 100,000 results.
"""

import hashlib
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path

from tinydb import where
from tinydb.queries import QueryInstance

from benchmarks.promises import at_most, judge
from dlbricks_tui.models.graph import Level
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.index import INDEX_NAME
from dlbricks_tui.store.records import BrickForm, Measurement, Statistics, utc_now
from dlbricks_tui.store.selections import equal
from dlbricks_tui.store.statistics import summarise

SIZES = (1_000, 10_000, 100_000)
MOST_FOR_TINYDB = 100_000
SAMPLES = 25
# Each brick is measured ten times: on different days, say, or in several contexts.
RESULTS_PER_BRICK = 10
BATCH = 5_000
SERIES = 2_000
INSERTS = 300
LOOKUPS = 300
SYSTEM, RUNTIME = "c5.xlarge", "mxnet-1.9.1 python-3.11 threads-2"


@cache
def samples(number: int) -> tuple[tuple[float, ...], Statistics]:
    """One of some series of samples, with its statistics."""
    chance = random.Random(number)
    base_ms = chance.uniform(0.01, 10)
    found = tuple(round(base_ms * (1 + abs(chance.gauss(0, 0.02))), 4) for _ in range(SAMPLES))
    return found, summarise(found)


def measurement(chance: random.Random, bricks: int) -> Measurement:
    """A result as runs write them."""
    samples_ms, statistics = samples(chance.randrange(SERIES))
    return Measurement(
        brick=form(chance.randrange(bricks)).key,
        context="plain",
        system=SYSTEM,
        runtime=RUNTIME,
        level=Level.FUSED,
        protocol="interleaved",
        when=utc_now(),
        run="2026-11-21",
        statistics=statistics,
        samples_ms=samples_ms,
    )


@cache
def form(number: int) -> BrickForm:
    """One of the bricks."""
    operators = [{"op": "Convolution", "params": {"kernel": [3, 3]}, "inputs": [["data", 0, 0]]}]
    document = {"data": [[[1, 64, 56, number], "float32"]], "level": "fused", "operators": operators, "version": 1}
    canonical = json.dumps(document, separators=(",", ":"))
    return BrickForm(key=hashlib.sha256(canonical.encode()).hexdigest(), canonical=canonical)


def fill(folder: Path, size: int) -> None:
    """Stores that many results."""
    chance, bricks = random.Random(size), size // RESULTS_PER_BRICK
    with ResultsDatabase(folder) as store:
        store.add(*map(form, range(bricks)))
        for start in range(0, size, BATCH):
            store.add(*(measurement(chance, bricks) for _ in range(min(BATCH, size - start))))


def times_ms(work: Callable[[], object], repeats: int) -> list[float]:
    """Return the time that each of several calls took."""
    taken = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        taken.append(1000 * (time.perf_counter() - start))
    return taken


def resident_mib() -> float:
    """The memory of this process."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def peak_mib() -> float:
    """Return the most memory that this process has had; `getrusage` also counts the process that started it."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 2**10


def bare_write_ms(folder: Path, length: int) -> float:
    """The median of writing so many bytes at the end of a file and making them durable: what no store can beat."""
    file = os.open(folder / "bare", os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def write() -> None:
        os.write(file, b"x" * length)
        os.fsync(file)

    taken = times_ms(write, INSERTS)
    os.close(file)
    return statistics.median(taken)


def measure_ours(folder: Path) -> dict[str, float]:
    """Measure our store, in a process that has done nothing else."""
    chance = random.Random(1)
    before_mib = resident_mib()
    found = {"open": statistics.median(times_ms(lambda: ResultsDatabase(folder).close(), 5))}
    store = ResultsDatabase(folder)
    table, bricks = store.table("measurements"), len(store.table("bricks"))
    found["memory MiB"] = resident_mib() - before_mib

    def about() -> QueryInstance:
        return equal(brick=form(chance.randrange(bricks)).key, system=SYSTEM)

    table.get(doc_id=1)
    found["get"] = statistics.median(times_ms(lambda: table.get(about()), LOOKUPS))
    found["get by number"] = statistics.median(times_ms(lambda: table.get(doc_id=chance.randrange(bricks)), LOOKUPS))
    found["search"] = statistics.median(times_ms(lambda: table.search(about()), LOOKUPS))
    slow = where("statistics").trimmed_mean_ms > 9
    found["count"] = statistics.median(times_ms(lambda: table.count(slow), 5))
    found["filter"] = statistics.median(times_ms(lambda: store.select("name~56x7", "good=yes"), 5))
    found["sort"] = statistics.median(times_ms(lambda: store.select(order=["-ms"]), 5))
    new = iter([measurement(chance, bricks) for _ in range(INSERTS + 1)])
    # The first insert of a process sorts the ids once.
    found["first insert"] = times_ms(lambda: store.add(next(new)), 1)[0]
    inserts = times_ms(lambda: store.add(next(new)), INSERTS)
    found["insert"] = statistics.median(inserts)
    found["insert, 95th"] = statistics.quantiles(inserts, n=20)[-1]
    found["write+fsync"] = bare_write_ms(folder, int(store.generation.index.column("length")[-1]))
    found["peak memory MiB"] = peak_mib() - before_mib
    store.close()
    (folder / INDEX_NAME).unlink(missing_ok=True)
    found["open, no index"] = times_ms(lambda: ResultsDatabase(folder), 1)[0]
    return found


def measure_tinydb(path: Path) -> dict[str, float]:
    """Measure plain TinyDB for the same; each of its calls reads the whole file, inserts write it too."""
    import tinydb

    chance = random.Random(1)
    before_mib = resident_mib()
    database = tinydb.TinyDB(path)
    table = database.table("measurements")
    found = {"open": times_ms(lambda: len(table), 1)[0]}
    keys = [form(number).key for number in range(len(database.table("bricks")))]
    found["look-up"] = times_ms(lambda: table.search(tinydb.where("brick") == chance.choice(keys)), 1)[0]
    document = dict(next(iter(table)))
    found["insert"] = statistics.median(times_ms(lambda: table.insert(document), 2))
    # What it held is given back by now: the peak is what the machine has to have.
    found["memory MiB"] = peak_mib() - before_mib
    return found


def in_own_process(which: str, path: Path) -> dict[str, float]:
    """The figures of one store, by name."""
    command = [sys.executable, "-m", "benchmarks.store_scale", which, str(path)]
    found: dict[str, float] = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    return found


def main(sizes: list[int]) -> int:
    """Prints the figures of all sizes, then how they grow and whether the promises hold."""
    ours: dict[int, dict[str, float]] = {}
    plain: dict[int, dict[str, float]] = {}
    for size in sizes:
        folder = Path(tempfile.mkdtemp(prefix="store-scale-"))
        try:
            fill(folder, size)
            ours[size] = {"file MiB": sum(path.stat().st_size for path in folder.glob("journal*")) / 2**20}
            ours[size] |= in_own_process("ours", folder)
            if size <= MOST_FOR_TINYDB:
                with ResultsDatabase(folder) as store:
                    path = store.compact()
                plain[size] = in_own_process("tinydb", path)
        finally:
            shutil.rmtree(folder)
    print("ms unless said otherwise" + "".join(f"{size:>12,}" for size in sizes))
    for name in ours[sizes[0]]:
        print(f"{name:<24}" + "".join(f"{ours[size][name]:12.3f}" for size in sizes))
    for name in next(iter(plain.values()), {}):
        print(f"{'tinydb ' + name:<24}" + "".join(f"{plain[size][name]:12.3f}" for size in plain))
    last, large = ours[sizes[-1]], sizes[-1] > MOST_FOR_TINYDB
    return judge(
        [
            at_most(5 if large else max(5.0, 2 * last["write+fsync"]), "ms", "an insert", last["insert"]),
            at_most(2, "ms", "an indexed get", last["get"]),
            at_most(10, "ms", "an indexed search", last["search"]),
            at_most(3000 if large else 1000, "ms", "opening", last["open"]),
            *([] if large else [at_most(100, "ms", name, last[name]) for name in ("filter", "sort")]),
            at_most(400 if large else 200, "MiB", "memory", last["peak memory MiB"]),
        ]
    )


if __name__ == "__main__":
    if sys.argv[1:2] == ["ours"]:
        print(json.dumps(measure_ours(Path(sys.argv[2]))))
    elif sys.argv[1:2] == ["tinydb"]:
        print(json.dumps(measure_tinydb(Path(sys.argv[2]))))
    else:
        sys.exit(main([int(size) for size in sys.argv[1:]] or list(SIZES)))
