"""Runs with the real MXNet, of a network small enough to be measured in a moment."""

import json
from pathlib import Path
from typing import Any

import pytest

from dlbricks_tui.cli.main import main
from dlbricks_tui.jobs.events import Event
from dlbricks_tui.measure.stopping import FixedRuns, StoppingRule
from dlbricks_tui.measure.supervised_worker import TimeLimits
from dlbricks_tui.models.graph import Level
from dlbricks_tui.models.library import source_of
from dlbricks_tui.runs.events import ProgramFailed
from dlbricks_tui.runs.request import InputShape, RunRequest, chosen
from dlbricks_tui.runtime.process import INSIDE
from dlbricks_tui.runtime.registry import Registry
from tests.runs.killing import VICTIMS, kill_at_random
from tests.runs.runs import Site
from tests.runtime.symbols import Network

FAULTY_WORKER = Path(__file__).parent / "faulty_worker.py"

pytestmark = pytest.mark.mxnet


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A residual block and a classifier; the convolutions are alike."""
    network = Network()
    first = network.relu("relu1", network.batch_norm("norm1", network.convolution("conv1", "data")))
    second = network.batch_norm("norm2", network.convolution("conv2", first))
    joined = network.relu("relu2", network.add("elemwise_add", "add", second, first))
    scores = network.linear("fc", network.add("Flatten", "flatten", joined))
    path = tmp_path / "tiny-symbol.json"
    path.write_text(network.symbol(network.add("softmax", "scores", scores)))
    return path


def run(model: Path, capsys: pytest.CaptureFixture[str], *options: str) -> tuple[int, Any, str]:
    """Measures the network end to end and by bricks: status, document, standard error."""
    data = str(model.parent / "data")
    status = main(["--data-dir", data, "run", str(model), "--input", "data=1,3,32,32", "--json", *options])
    out, told = capsys.readouterr()
    return status, json.loads(out), told


def request(model: Path, site: Site, rule: StoppingRule, **changes: Any) -> RunRequest:
    """A run of the network by the framework of this interpreter."""
    return RunRequest(
        models=chosen([source_of(model)]),
        runtime=Registry(site.path).default(),
        inputs=(InputShape("data", (1, 3, 32, 32)),),
        rule=rule,
        **changes,
    )


# Faults, limits and crashes are tested at level written below.
@pytest.mark.usefixtures("without_versions")
@pytest.mark.parametrize("level", ["fused", pytest.param("written", marks=pytest.mark.soak)])
def test_a_network_is_measured_end_to_end_and_by_its_bricks(
    model: Path, capsys: pytest.CaptureFixture[str], level: str
) -> None:
    status, found, told = run(model, capsys, "--level", level, "--end-to-end", "--fixed-runs", "5")
    assert status == 0, told
    (estimate,) = found["models"]
    assert estimate["level"] == level
    assert estimate["coverage"]["missing"] == estimate["coverage"]["unmeasurable"] == 0
    assert estimate["sequential_ms"] > 0
    assert estimate["measured_ms"] > 0
    assert found["bricks"]["run"] == found["bricks"]["total"] > 3
    assert found["bricks"]["failed"] == 0


# With ONNX Runtime, and with the fake worker, sequences are measured in `make test`, too.
@pytest.mark.soak
def test_sequences_of_several_layers_are_measured_too(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, found, told = run(model, capsys, "-g", "10", "--cut", "runnable", "--end-to-end", "--fixed-runs", "10")
    assert status == 0, told
    assert found["bricks"] == {"total": 1, "run": 1, "reused": 0, "failed": 0}
    assert found["models"][0]["coverage"]["missing"] == 0


@pytest.mark.soak
def test_a_brick_that_needs_more_memory_than_allowed_fails_alone(
    model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = model.read_text().replace('"num_hidden": "10"', '"num_hidden": "1000"')
    model.write_text(text)
    status, found, told = run(model, capsys, "--level", "written", "--fixed-runs", "10", "--memory-limit", "4")
    assert status == 1
    assert found["bricks"]["failed"] == 1
    assert found["bricks"]["run"] == found["bricks"]["total"] - 1
    assert "too large" in told


# `test_run.py` states the same promises with the fake worker, and `test_onnx_runs.py` with ONNX Runtime.
@pytest.mark.soak
@pytest.mark.parametrize(
    ("operator", "fault", "run", "reason"),
    [
        ("Flatten", "segfault", 1, "crashed"),
        ("Flatten", "segfault", 2, "crashed"),
        ("softmax", "sleep", 1, "hung"),
        ("Flatten", "devour", 1, "too large"),
        ("Flatten", "devour", 2, "too large"),
        ("Flatten", "not a number", 1, "not finite"),
    ],
)
def test_a_brick_that_crashes_the_real_framework_fails_alone_and_is_named(
    model: Path, monkeypatch: pytest.MonkeyPatch, operator: str, fault: str, run: int, reason: str
) -> None:
    monkeypatch.setenv("FAULTS", json.dumps({operator: [fault, run]}))
    site = Site(model.parent / "data", FAULTY_WORKER)
    site.path.mkdir()
    limits = TimeLimits(5.0, 5.0)
    asked = request(model, site, FixedRuns(10), time_limits=limits, level=Level.WRITTEN, memory_limit_bytes=1 << 30)
    events: list[Event] = []
    state = site.run(asked, events.append)
    failed = [event for event in events if isinstance(event, ProgramFailed)]
    assert {it.reason for it in failed} == {reason}
    assert {it.label.split()[0] for it in failed} < {"flatten", "linear", "softmax"}
    # In each way in which it is timed.
    assert state.bricks.failed == len(failed) in (1, 2)
    assert state.bricks.measured == state.bricks.total - len(failed) > 3
    contents = site.contents()
    assert [it.reason for it in contents.failures] == [reason] * len(failed)
    assert len({it.brick for it in contents.failures}) == 1
    assert len(contents.measurements) == state.bricks.measured


@pytest.mark.soak
def test_a_brick_that_crashes_mxnet_fails_alone_however_short_the_limits_are(model: Path, tmp_path: Path) -> None:
    network = Network()
    whole_numbers = network.add("Cast", "cast", network.relu("relu", "data"), dtype="int32")
    divided = tmp_path / "divided-symbol.json"
    divided.write_text(network.symbol(network.add("_div_scalar", "divide", whole_numbers, scalar="0")))
    site = Site(model.parent / "data", INSIDE)
    site.path.mkdir()
    # Starting a worker may take longer, which is no brick's fault.
    asked = request(divided, site, FixedRuns(5), time_limits=TimeLimits(2.0, 2.0), level=Level.WRITTEN)
    state = site.run(asked)
    assert (state.bricks.total, state.bricks.measured) == (3, 2)
    (failure,) = site.contents().failures
    assert failure.reason == "crashed"
    # What MXNet had printed before has nothing to do with the crash.
    assert "SIGFPE: it printed nothing" in failure.message


@pytest.mark.soak
@pytest.mark.parametrize("victims", VICTIMS, ids="+".join)
def test_no_kill_among_ten_loses_an_acknowledged_result_or_leaves_a_process_behind(
    model: Path, victims: tuple[str, ...]
) -> None:
    site = Site(model.parent / "data", INSIDE)
    site.path.mkdir()

    kill_at_random(site, lambda rule: request(model, site, rule, end_to_end=True), victims, kills=10)
