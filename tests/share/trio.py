"""The owner of private models, the vendor of a machine, and the files that they exchange."""

import json
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

FAKE_WORKER = Path(__file__).parent / "fake_worker.py"
GIBIBYTE = 1 << 30
SECRET = "unobtainium"
# No published network has layers of these widths.
PRIVATE_WIDTHS = (24, 40)
DECOY_WIDTHS = ((16, 32), (8, 48), (64, 64))


def network(widths: Sequence[int], name: str = "layer", side: int = 16, normed: bool = False, steps: int = 0) -> bytes:
    """Return a chain of convolution, relu and pooling for each width, and a classifier, with names and a comment.

    Convolutions may have a batch norm behind them, and then there may be steps that share their weights.
    """
    nodes: list[dict[str, object]] = [
        {"op": "null", "name": f"{name}_data", "attrs": {"__shape__": f"(1, 3, {side}, {side})"}, "inputs": []}
    ]

    def add(op: str, role: str, inputs: Sequence[int], **attributes: str) -> int:
        about = {"__comment__": f"{name} v7", **attributes} if op != "null" else {}
        entries = [[source, 0, 0] for source in inputs]
        nodes.append({"op": op, "name": f"{name}_{role}", "attrs": about, "inputs": entries})
        return len(nodes) - 1

    last = 0
    for number, width in enumerate(widths):
        arrays = [add("null", f"conv{number}_{role}", ()) for role in ("weight", "bias")]
        window = {"kernel": "(3, 3)", "pad": "(1, 1)", "num_filter": str(width)}
        convolution = add("Convolution", f"conv{number}", [last, *arrays], **window)
        if normed:
            arrays = [add("null", f"norm{number}_{role}", ()) for role in ("gamma", "beta", "mean", "var")]
            convolution = add("BatchNorm", f"norm{number}", [convolution, *arrays])
        relu = add("Activation", f"relu{number}", [convolution], act_type="relu")
        last = add("Pooling", f"pool{number}", [relu], kernel="(2, 2)", stride="(2, 2)", pool_type="max")
    last = add("Flatten", "flat", [last])
    if steps:
        arrays = [add("null", f"begin_{role}", ()) for role in ("weight", "bias")]
        last = add("FullyConnected", "begin", [last, *arrays], num_hidden="256")
        arrays = [add("null", f"step_{role}", ()) for role in ("weight", "bias")]
    for number in range(steps):
        last = add("FullyConnected", f"step{number}", [last, *arrays], num_hidden="256")
    arrays = [add("null", f"fc_{role}", ()) for role in ("weight", "bias")]
    scores = add("FullyConnected", "fc", [last, *arrays], num_hidden="10")
    head = add("softmax", "scores", [scores])
    return json.dumps({"nodes": nodes, "heads": [[head, 0, 0]], "attrs": {"mxnet_version": ["int", 10500]}}).encode()


def packings(level: Level) -> Mapping[str, Packing]:
    """Return the packing of MXNet's bricks, which are read back."""
    return {"mxnet": Packing(MXNetReader(TableFramework(), level, GIBIBYTE).read)}


@dataclass(frozen=True)
class Trio:
    """Their folders; a suite is written to `suite`, and its results to `results`."""

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

    def taken_apart(
        self, widths: Sequence[int], level: Level, name: str = SECRET, *, normed: bool = False, steps: int = 0
    ) -> Decomposition:
        """Return the decomposition of a model of the owner."""
        path = self.owner.path / f"{name}-{'-'.join(map(str, widths))}-symbol.json"
        path.write_bytes(network(widths, name, normed=normed, steps=steps))
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
