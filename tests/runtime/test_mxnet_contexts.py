"""In MXNet, bricks execute what their models execute: the same kernels, layouts and conversions."""

from pathlib import Path

import pytest

from benchmarks import made_up_networks
from benchmarks.contexts import Listener, compared
from benchmarks.made_up_networks import network
from dlbricks_tui.bricks.decomposition import decompose
from dlbricks_tui.models.graph import Level
from dlbricks_tui.models.library import source_of
from dlbricks_tui.models.loading import Loader
from dlbricks_tui.runtime.process import Worker
from dlbricks_tui.runtime.runtime import Runtime
from tests.runtime.workers import Telling, framework_of

pytestmark = pytest.mark.mxnet

# It has sums of two and of many tensors, partly plain ones, windows far apart, and channels that fill no block.
NUMBER = 287


def test_a_random_network_and_its_bricks_execute_the_same_primitives(
    our_runtime: Runtime, mxnet_worker: Worker, telling: Telling, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(made_up_networks, "WIDTHS", made_up_networks.WIDTHS[:2])
    monkeypatch.setattr(made_up_networks, "SIDES", (64,))
    path = tmp_path / "net-symbol.json"
    path.write_bytes(network(NUMBER))
    loader = Loader(tmp_path / "cache", framework_of(our_runtime, mxnet_worker))
    # Conversions between layouts are most at level fused.
    comparison = compared(decompose(loader.load(source_of(path), Level.FUSED)), Listener(*telling))
    assert sum(comparison.model.values()) > 30
    assert not list(comparison.differences())


def test_a_seed_always_makes_the_same_network() -> None:
    assert network(NUMBER) == network(NUMBER)
    assert len({network(number) for number in range(8)}) == 8
