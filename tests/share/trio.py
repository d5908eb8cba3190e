"""The owner of private models, the vendor of a machine, and the files that they exchange."""

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from dlbricks_tui.bricks.decomposition import Decomposition, decompose
from dlbricks_tui.jobs.events import Event
from dlbricks_tui.jobs.folder import JobState
from dlbricks_tui.measure.method import Method
from dlbricks_tui.measure.stopping import Adaptive
from dlbricks_tui.models.graph import Level
from dlbricks_tui.models.library import source_of
from dlbricks_tui.models.loading import Loader
from dlbricks_tui.runs.control import create_run
from dlbricks_tui.runs.request import RunRequest, SuiteChoice
from dlbricks_tui.share.exporting import Assembled, assemble, write_assembled
from dlbricks_tui.share.mxnet_excerpts import MXNetReader
from dlbricks_tui.share.packing import Packing, SuiteModel
from dlbricks_tui.share.results_file import SuiteImport, import_results, read_results
from dlbricks_tui.share.suite_files import key_path, open_suite, read_key, seed_of
from dlbricks_tui.share.suite_runs import execute_any
from dlbricks_tui.store.database import ResultsDatabase
from tests.models.table_framework import TableFramework
from tests.runs.runs import FAKE, Site
from tests.runtime import symbols

FAKE_WORKER = Path(__file__).parent / "fake_worker.py"
GIBIBYTE = 1 << 30
SECRET = "unobtainium"
# No published network has layers of these widths.
PRIVATE_WIDTHS = (24, 40)
DECOY_WIDTHS = ((16, 32), (8, 48), (64, 64))


def network(widths: Sequence[int], name: str = "layer", side: int = 16) -> bytes:
    """Return a chain of convolution, relu and pooling for each width, and a classifier, with names and a comment."""
    net = symbols.Network()

    def add(op: str, role: str, *inputs: str, **attributes: str) -> str:
        return net.add(op, f"{name}_{role}", *inputs, __comment__=f"{name} v7", **attributes)

    last = net.add("null", f"{name}_data", __shape__=f"(1, 3, {side}, {side})")
    for number, width in enumerate(widths):
        arrays = [f"{name}_conv{number}_{role}" for role in ("weight", "bias")]
        window = {"kernel": "(3, 3)", "pad": "(1, 1)", "num_filter": str(width)}
        convolution = add("Convolution", f"conv{number}", last, *arrays, **window)
        relu = add("Activation", f"relu{number}", convolution, act_type="relu")
        last = add("Pooling", f"pool{number}", relu, kernel="(2, 2)", stride="(2, 2)", pool_type="max")
    flat = add("Flatten", "flat", last)
    scores = add("FullyConnected", "fc", flat, f"{name}_fc_weight", f"{name}_fc_bias", num_hidden="10")
    return net.symbol(add("softmax", "scores", scores)).encode()


def packings(level: Level) -> Mapping[str, Packing]:
    """Return the packing of MXNet's bricks, which are read back."""
    return {"mxnet": Packing(MXNetReader(TableFramework(), level, GIBIBYTE).read)}


@dataclass(frozen=True)
class Trio:
    """The folders of the owner and the vendor; a suite is written to `suite`, and its results to `results`."""

    path: Path

    @property
    def owner(self) -> Site:
        return self._site("owner")

    @property
    def vendor(self) -> Site:
        return self._site("vendor")

    @property
    def suite(self) -> Path:
        return self.path / "handed-on"

    @property
    def results(self) -> Path:
        return self.path / "results.json"

    def taken_apart(self, widths: Sequence[int], level: Level, name: str = SECRET) -> Decomposition:
        """Return the decomposition of a model of the owner."""
        path = self.owner.path / f"{name}-{'-'.join(map(str, widths))}-symbol.json"
        path.write_bytes(network(widths, name))
        return decompose(Loader(self.owner.path / "cache", TableFramework()).load(source_of(path), level))

    def export(self, level: Level = Level.WRITTEN, seed: str = "a seed") -> Assembled:
        """Export a suite as the owner."""
        models = [SuiteModel(self.taken_apart(PRIVATE_WIDTHS, level))]
        decoys = [SuiteModel(self.taken_apart(widths, level, "decoy")) for widths in DECOY_WIDTHS]
        assembled = assemble(models, decoys, seed_of(seed), level, packings(level))
        write_assembled(assembled, self.suite, key_path(self.owner.data, assembled.manifest.suite))
        return assembled

    def request(self, **changes: object) -> RunRequest:
        """Return the vendor's request."""
        about = {"rule": Adaptive(target=0.9), "level": open_suite(self.suite).manifest.level, **changes}
        about.setdefault("suite", SuiteChoice(self.suite, self.results))
        return RunRequest(models=(), runtime=FAKE, method=Method.INSIDE, **about)  # type: ignore[arg-type]

    def run(
        self, events: list[Event] | None = None, clock: Callable[[], float] = time.monotonic, **changes: object
    ) -> JobState:
        """Measure the suite as the vendor."""
        request = self.request(**changes)
        folder = create_run(request, self.vendor.data)
        listener = None if events is None else events.append
        return execute_any(folder, request, replace(self.vendor.place, clock=clock), self.vendor.queue, listener).state

    def bring_home(self) -> SuiteImport:
        """Import the results as the owner."""
        results = read_results(self.results)
        key = read_key(key_path(self.owner.data, results.suite))
        with ResultsDatabase(self.owner.data.store) as store:
            return import_results(store, key, results, str(self.results))

    def _site(self, who: str) -> Site:
        (self.path / who).mkdir(exist_ok=True)
        return Site(self.path / who, FAKE_WORKER)


def piped(path: Path) -> None:
    """Put a pipe in the place of a file."""
    path.unlink()
    os.mkfifo(path)


def grown(path: Path) -> None:
    """Let a file have a tebibyte: a hole, so that no disk is filled."""
    os.truncate(path, 1 << 40)
