"""Compare estimates of language models with the engine of a runtime, which runs the whole model beside them.

usage: python -m benchmarks.language_models [--minutes M] [--threads 1,2] [--precision int4,f32] [--generate N]
                                            [--runtime all] [--prompt 16,128,1024,4096] [--data-dir FOLDER] [MODEL ...]

A cell of the grid is a model with its precision, threads, prompt and runtime, behind which tokens are generated. Its
bricks and, in the same rounds, the whole model with random weights are timed, the cheapest cells first. Each is written
to `cells.json` in the data folder as soon as it is known: called again with that folder, the benchmark goes on. With
`--minutes 0` it only reports.

The promise: errors of prefill and of decode have a mean of 3 %, all are within 8 %, and 90 % are inside their
intervals. The order of the executions of a model, as `--compare` shows it for whole answers, is that of the engines for
nine of ten pairs that differ by more than 5 %. Predictions made before, as `--list` shows them, have a median error of
15 % once other models were measured. Where free memory is scattered (`dlbricks doctor`), the program that loads first
decodes slower. Exit status 1 if a promise is broken. Without models these are ten of the library, of 0.1 to 3 billion
parameters.
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations, product
from pathlib import Path
from statistics import fmean, median

from dlbricks_tui import api
from dlbricks_tui.api.language_answers import runtimes_here
from dlbricks_tui.errors import UserError
from dlbricks_tui.folders import DataFolder

MODELS = (
    *("smollm2-135m", "gemma-3-270m", "smollm2-360m", "qwen2.5-0.5b", "qwen3-0.6b", "gemma-3-1b"),
    *("tinyllama-1.1b", "llama-3.2-1b", "qwen2.5-1.5b", "granite-3.3-2b"),
)
CELLS = "cells.json"
_MEAN, _MOST, _INSIDE, _PREDICTED = 0.03, 0.08, 0.9, 0.15
# Pairs whose engines differ by more than this share, and the share of them in the right order.
_APART, _ORDERED = 0.05, 0.9
# A cell takes about so long: for the start of processes, for a gigabyte that is written and loaded, and in runs of the
# engine, beside which the bricks take about as long.
_SECONDS, _SECONDS_PER_GIGABYTE, _RUNS = 40.0, 15.0, 8


@dataclass(frozen=True)
class Cell:
    """A model in one execution, and the prompt behind which it generates tokens."""

    model: str
    precision: str
    threads: int
    prompt: int
    # The name of a registered runtime, or of a framework.
    runtime: str = "onnxruntime"


@dataclass(frozen=True)
class Compared:
    """A phase of a cell in milliseconds, for a token when decoding: predicted, estimated, and of the engine."""

    phase: str
    predicted: float
    estimate: float
    low: float
    high: float
    engine: float

    @property
    def error(self) -> float:
        return self.estimate / self.engine - 1

    @property
    def is_inside(self) -> bool:
        """True if the interval of the estimate holds what the engine took."""
        return self.low <= self.engine <= self.high


Known = dict[Cell, list[Compared]]


def main() -> int:
    """Measure the cells that are not known yet, and report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=MODELS)
    parser.add_argument("--minutes", type=float, default=60.0, help="the longest time for all cells")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--precision", default="int4,f32")
    parser.add_argument("--prompt", default="16,128,1024,4096")
    parser.add_argument("--generate", type=int, default=32)
    parser.add_argument("--runtime", default="onnxruntime", help="names of runtimes, or all")
    parser.add_argument("--data-dir", type=Path, help="go on with the results in this folder")
    arguments = parser.parse_args()
    until = time.monotonic() + 60 * arguments.minutes
    threads, prompts = ([int(it) for it in text.split(",")] for text in (arguments.threads, arguments.prompt))
    with tempfile.TemporaryDirectory() as folder:
        data = arguments.data_dir or Path(folder)
        data.mkdir(parents=True, exist_ok=True)
        found = read(data / CELLS)
        runtimes = runtimes_here(DataFolder(data)) if arguments.runtime == "all" else arguments.runtime.split(",")
        grid = product(arguments.models, arguments.precision.split(","), threads, prompts, runtimes)
        cells = [Cell(*it) for it in grid]
        if arguments.minutes:
            measure([it for it in cells if it not in found], arguments.generate, data, until, found)
    return report({it: found[it] for it in cells if it in found}, arguments.generate)


def options(cell: Cell, generate: int) -> api.LanguageOptions:
    """Return the options that ask for a cell."""
    precision = api.WeightPrecision(cell.precision)
    return api.LanguageOptions(
        prompt=cell.prompt,
        generate=generate,
        precisions=(precision,),
        threads=(cell.threads,),
        runtimes=(cell.runtime,),
    )


def measure(cells: Sequence[Cell], generate: int, data: Path, until: float, found: Known) -> None:
    """Measure cells, the cheapest first, as long as there is time, and write each of them to the file."""
    expected: dict[Cell, float] = {}
    for cell in cells:
        try:
            (answer,) = api.language(cell.model, options(cell, generate), measure=False, data=data)
        except UserError as error:
            # The context of some models is shorter, and some runtimes lack a precision.
            _narrate(str(error))
            continue
        run_seconds = (answer.prefill_ms + generate * 1000 / answer.decode_tokens_per_second) / 1000
        expected[cell] = _SECONDS + _SECONDS_PER_GIGABYTE * answer.memory.weights / 1e9 + _RUNS * run_seconds
    ordered = sorted(expected, key=expected.__getitem__)
    _narrate(f"{len(ordered)} cells, in about {sum(expected.values()) / 60:.0f} min")
    for number, cell in enumerate(ordered, start=1):
        began = time.monotonic()
        if began + expected[cell] > until:
            _narrate(f"stopped before cell {number} of {len(ordered)}: the time is over")
            return
        try:
            phases = compared(cell, generate, data)
        except UserError as error:
            _narrate(f"{cell} was not measured: {error}")
            continue
        if not phases:
            continue
        found[cell] = phases
        write(data / CELLS, found)
        seconds = time.monotonic() - began
        for it in phases:
            print(line(cell, it), flush=True)
        _narrate(f"cell {number} of {len(ordered)} took {seconds:.0f} s, about {expected[cell]:.0f} were expected")


def compared(cell: Cell, generate: int, data: Path) -> list[Compared]:
    """Return prefill and decode of a cell; nothing if the whole model could not be timed."""
    asked = options(cell, generate)
    (before,) = api.language(cell.model, asked, measure=False, data=data)
    (after,) = api.language(cell.model, asked, end_to_end=True, data=data, progress=_narrate)
    if after.measured is None:
        return []
    prefill = Compared(
        "prefill", before.prefill_ms, after.prefill_ms, *after.intervals.prefill_ms, after.measured.prefill_ms
    )
    low, high = after.intervals.decode_tokens_per_second
    rates = before, after, after.measured
    predicted, estimate, engine = (1000 / it.decode_tokens_per_second for it in rates)
    return [prefill, Compared("decode", predicted, estimate, 1000 / high, 1000 / low, engine)]


def read(path: Path) -> Known:
    """Return the cells in a file; none if it is not there yet."""
    entries = json.loads(path.read_text(encoding="utf-8")) if path.exists() else []
    return {Cell(**it["cell"]): [Compared(**phase) for phase in it["phases"]] for it in entries}


def write(path: Path, found: Known) -> None:
    """Write all cells so that a run that is killed loses none."""
    entries = [{"cell": asdict(cell), "phases": [asdict(it) for it in phases]} for cell, phases in found.items()]
    new = path.with_suffix(".new")
    new.write_text(json.dumps(entries, indent=1), encoding="utf-8")
    new.replace(path)


def _narrate(words: str) -> None:
    print(words, file=sys.stderr, flush=True)


def line(cell: Cell, it: Compared) -> str:
    """Return a phase of a cell as a line."""
    name = " ".join([cell.model, *execution(cell), it.phase, str(cell.prompt)])
    outside = "" if it.is_inside else "  outside"
    return (
        f"{name:<52}{it.predicted:>11.2f}{it.estimate:>11.2f}{it.engine:>11.2f} ms"
        f"{it.error:>+8.1%}  +-{(it.high - it.low) / 2 / it.estimate:.1%}{outside}"
    )


def execution(cell: Cell) -> tuple[str, ...]:
    return cell.runtime, cell.precision, f"{cell.threads}t"


def report(found: Known, generate: int) -> int:
    """Print how far the estimates are off, by phase and execution; return 1 if a promise is broken."""
    if not found:
        print("no model was timed as a whole", file=sys.stderr)
        return 1
    print(f"{'':<34}{'figures':>8}{'mean error':>12}{'worst':>8}{'in interval':>13}{'predicted before':>18}")
    is_kept = True
    for phase in ("prefill", "decode"):
        for name, of in groups(found, phase):
            errors = [it.error for it in of]
            mean, worst = fmean(map(abs, errors)), max(errors, key=abs)
            inside = fmean(it.is_inside for it in of)
            predicted = median(abs(it.predicted / it.engine - 1) for it in of)
            print(f"{name:<34}{len(of):>8}{mean:>12.1%}{worst:>+8.1%}{inside:>13.0%}{predicted:>18.1%}")
        is_kept &= mean <= _MEAN and abs(worst) <= _MOST and inside >= _INSIDE and predicted <= _PREDICTED
    agree, pairs = ordered_alike(found, generate)
    if pairs:
        print(f"order: {agree} of {pairs} pairs that differ by more than {_APART:.0%} agree")
    return 0 if is_kept and agree >= _ORDERED * pairs else 1


def ordered_alike(found: Known, generate: int) -> tuple[int, int]:
    """Return how many pairs of executions have the order of the engines, and how many there are that differ enough."""
    agree = pairs = 0
    # The estimate and the engine's time for a whole answer.
    totals: dict[Cell, tuple[float, float]] = {}
    for cell, (prefill, decode) in found.items():
        later = generate - 1
        totals[cell] = prefill.estimate + later * decode.estimate, prefill.engine + later * decode.engine
    for one, other in combinations(totals, 2):
        (estimate, engine), (estimated, other_engine) = totals[one], totals[other]
        is_apart = abs(engine - other_engine) > _APART * min(engine, other_engine)
        if (one.model, one.prompt) == (other.model, other.prompt) and is_apart:
            pairs += 1
            agree += (estimate < estimated) == (engine < other_engine)
    return agree, pairs


def groups(found: Known, phase: str) -> Iterator[tuple[str, list[Compared]]]:
    """Yield a phase of the cells by their execution, and last of all cells."""
    own = {cell: it for cell, phases in found.items() for it in phases if it.phase == phase}
    for words in sorted(set(map(execution, own)), reverse=True):
        yield " ".join((phase, *words)), [it for cell, it in own.items() if execution(cell) == words]
    yield f"{phase} all", list(own.values())


if __name__ == "__main__":
    sys.exit(main())
