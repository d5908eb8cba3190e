"""Runs with the real MXNet, of a network small enough to be measured in a moment."""

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest

from dlbricks_tui.bench.host_lock import HOST_LOCK_VARIABLE
from dlbricks_tui.bench.request import InputShape, RunRequest, chosen
from dlbricks_tui.bench.stopping import StoppingRule
from dlbricks_tui.cli.main import main
from dlbricks_tui.models.library import source_of
from dlbricks_tui.runtime.process import INSIDE
from dlbricks_tui.runtime.registry import Registry
from tests.bench.killing import VICTIMS, kill_at_random
from tests.bench.runs import Site
from tests.runtime.symbols import Network

pytestmark = pytest.mark.skipif(importlib.util.find_spec("mxnet") is None, reason="no MXNet for this interpreter")


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A residual block and a classifier; the convolutions are alike."""
    monkeypatch.setenv(HOST_LOCK_VARIABLE, str(tmp_path / "host.lock"))
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


@pytest.mark.parametrize("level", ["fused", "written"])
def test_a_network_is_measured_end_to_end_and_by_its_bricks(
    model: Path, capsys: pytest.CaptureFixture[str], level: str
) -> None:
    status, found, told = run(model, capsys, "--level", level, "--end-to-end", "--fixed-runs", "20")
    assert status == 0, told
    (estimate,) = found["models"]
    assert estimate["level"] == level
    assert estimate["coverage"]["missing"] == estimate["coverage"]["unmeasurable"] == 0
    assert estimate["sequential_ms"] > 0
    assert estimate["measured_ms"] > 0
    assert found["bricks"]["run"] == found["bricks"]["total"] > 3
    assert found["bricks"]["failed"] == 0
    again = run(model, capsys, "--level", level, "--end-to-end", "--fixed-runs", "20")[1]
    assert (again["bricks"]["run"], again["end_to_end"]["reused"]) == (0, 1)
    assert again["models"] == found["models"]


def test_sequences_of_several_layers_are_measured_too(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, found, told = run(model, capsys, "-g", "10", "--cut", "runnable", "--end-to-end", "--fixed-runs", "10")
    assert status == 0, told
    assert found["bricks"] == {"total": 1, "run": 1, "reused": 0, "failed": 0}
    assert found["models"][0]["coverage"]["missing"] == 0


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


@pytest.mark.soak
@pytest.mark.parametrize("victims", VICTIMS, ids="+".join)
def test_no_kill_among_ten_loses_an_acknowledged_result_or_leaves_a_process_behind(
    model: Path, victims: tuple[str, ...]
) -> None:
    site = Site(model.parent / "data", INSIDE)
    site.path.mkdir()

    def request(rule: StoppingRule) -> RunRequest:
        return RunRequest(
            models=chosen([source_of(model)]),
            runtime=Registry(site.path).default(),
            inputs=(InputShape("data", (1, 3, 32, 32)),),
            rule=rule,
            end_to_end=True,
        )

    kill_at_random(site, request, victims, kills=10)
