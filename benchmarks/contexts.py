"""Compare the oneDNN primitives of a model with those of its bricks put together.

usage: python -m benchmarks.contexts [--level written|fused] [-g GRANULARITY] [MODEL ...]

MODEL is a name that `dlbricks models` lists, table1:ID, or table1 for all fifty; without any it is all samples. A
primitive is what oneDNN says of it: kind, kernel, layouts, fused operations and sizes. Each distinct brick in each
distinct context runs once, where it stands first. Exit status 1 if a model and its bricks differ.
"""

import argparse
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from dlbricks_tui.bricks.decomposition import Cutting, Decomposition, decompose
from dlbricks_tui.bricks.identity import times_paid
from dlbricks_tui.bricks.programs import model_program, sequence_program
from dlbricks_tui.folders import SAMPLE_MODELS
from dlbricks_tui.models.errors import ModelError
from dlbricks_tui.models.frameworks import WorkerFramework
from dlbricks_tui.models.graph import LayerGraph, Level
from dlbricks_tui.models.library import Library, ModelSource
from dlbricks_tui.models.loading import Loader
from dlbricks_tui.runtime.errors import WorkerError
from dlbricks_tui.runtime.process import Worker
from dlbricks_tui.runtime.protocol import Load, Program, Sample, Unload
from dlbricks_tui.runtime.registry import Registry
from dlbricks_tui.runtime.runtime import Runtime, Settings
from dlbricks_tui.runtime.traits import Format

# One for today's oneDNN and one for the one of MXNet 1.5.
TELLING = Settings(environment=(("DNNL_VERBOSE", "1"), ("MKLDNN_VERBOSE", "1")))
EXECUTED = ("dnnl_verbose,exec,", "mkldnn_verbose,exec,")
PATIENCE_SECONDS = 600.0
MOST_SHOWN = 12

Primitives = Counter[str]


class Listener:
    """A worker whose oneDNN tells what it computes."""

    def __init__(self, worker: Worker, log: Path) -> None:
        self._worker = worker
        self._log = log

    def primitives(self, program: Program) -> Primitives:
        """Return what one run of the program's network computes, once weights have found their layouts."""
        # What is timed cold does nothing when it is not timed.
        warm = replace(program, prelude=None, cold=False)
        self._worker.ask(Load("it", warm, check_values=False), PATIENCE_SECONDS)
        self._run_once()
        before = self._log.stat().st_size
        self._run_once()
        lines = self._log.read_bytes()[before:].decode(errors="replace").splitlines()
        self._worker.ask(Unload(("it",)), PATIENCE_SECONDS)
        # The last field is how long it took.
        return Counter(line.rpartition(",")[0].split(",", 2)[2] for line in lines if line.startswith(EXECUTED))

    def primitives_behind_the_prelude(self, program: Program) -> Primitives:
        """Return what the sequence computes that the program is written for."""
        found = self.primitives(program)
        if program.prelude is not None:
            found -= self.primitives(replace(program, network=program.prelude))
        return found

    def _run_once(self) -> None:
        self._worker.ask(Sample(("it",), 1, 0), PATIENCE_SECONDS)


@dataclass(frozen=True)
class Comparison:
    """The primitives of a model, and for each of its layers by name those of the brick that stands for it."""

    model: Primitives
    layers: tuple[tuple[str, Primitives], ...]

    @property
    def bricks(self) -> Primitives:
        return sum((found for _, found in self.layers), Primitives())

    def differences(self) -> Iterator[str]:
        """Primitives that the bricks lack or have too often, with the layers that compute something of those sizes."""
        for what, surplus in (("model only", self.model - self.bricks), ("bricks only", self.bricks - self.model)):
            for primitive, count in surplus.items():
                sizes = primitive.rpartition(",")[2]
                near = [name for name, found in self.layers if any(it.endswith(f",{sizes}") for it in found)]
                yield f"{what} {count}x {primitive} (near {', '.join(near[:3]) or 'no layer'})"


def main() -> int:
    """Compares every model at the chosen levels."""
    arguments = parsed()
    equal = True
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder)
        runtime = Registry(data).default({})
        library = Library(SAMPLE_MODELS, data)
        samples = [sample for sample in library.samples() if sample.format is Format.MXNET]
        sources = library.find_all(arguments.models) if arguments.models else samples
        cutting = Cutting(arguments.granularity)
        with WorkerFramework(runtime, data / "framework.log") as framework:
            loader = Loader(data / "cache", framework)
            for source in {source.path: source for source in sources}.values():
                for level in [Level(arguments.level)] if arguments.level else Level:
                    equal &= reported(loader, source, level, cutting, replace(runtime, settings=TELLING), data)
    return 0 if equal else 1


def parsed() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*")
    parser.add_argument("--level", choices=[level.value for level in Level])
    parser.add_argument("-g", "--granularity", type=int, default=1)
    return parser.parse_args()


def reported(loader: Loader, source: ModelSource, level: Level, cutting: Cutting, runtime: Runtime, data: Path) -> bool:
    """Compares one model at one level and says how it went."""
    try:
        decomposition = decompose(loader.load(source, level), cutting)
        log = data / "telling.log"
        log.unlink(missing_ok=True)
        with Worker(runtime, log) as worker:
            comparison = compared(decomposition, Listener(worker, log))
    except (ModelError, WorkerError) as error:
        print(f"{source.name:44} {level.value:8} FAILED: {error}", flush=True)
        return False
    differences = list(comparison.differences())
    counts = f"{comparison.model.total():6} primitives, {len(decomposition.pairs):4} contexts"
    print(f"{source.name[:44]:44} {level.value:8} {counts}: {len(differences) or 'no'} differences", flush=True)
    for difference in differences[:MOST_SHOWN]:
        print(f"    {difference}", flush=True)
    return not differences


def compared(decomposition: Decomposition, listener: Listener) -> Comparison:
    """Runs the model and all its bricks."""
    graph = decomposition.graph
    known: dict[tuple[str, str], Primitives] = {}
    layers = []
    for occurrence in decomposition.occurrences:
        indices = occurrence.sequence.layers
        if not is_run(graph, indices):
            continue
        pair = (occurrence.brick.key, occurrence.context)
        if pair not in known:
            known[pair] = listener.primitives_behind_the_prelude(sequence_program(graph, indices))
        times = times_paid(graph, indices)
        layers.append((graph.layers[indices[0]].name, Primitives({it: times * n for it, n in known[pair].items()})))
    return Comparison(listener.primitives(model_program(graph)), tuple(layers))


def is_run(graph: LayerGraph, indices: tuple[int, ...]) -> bool:
    """Return True if there is anything in a sequence to compute."""
    return any(graph.layers[index].operators for index in indices)


if __name__ == "__main__":
    sys.exit(main())
