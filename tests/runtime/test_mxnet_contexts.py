"""In MXNet, bricks execute what their models execute: the same kernels, layouts and conversions."""

from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.contexts import TELLING, Listener, compared
from benchmarks.made_up_networks import network
from dlbricks_tui.bricks.decomposition import decompose
from dlbricks_tui.models.frameworks import WorkerFramework
from dlbricks_tui.models.graph import Level
from dlbricks_tui.models.library import source_of
from dlbricks_tui.models.loading import Loader
from dlbricks_tui.runtime.process import Worker
from dlbricks_tui.runtime.registry import Registry

pytestmark = pytest.mark.mxnet

# Processors with larger instruction sets have other kernels. All processors that suit MXNet have these.
SETTINGS = replace(TELLING, environment=(*TELLING.environment, ("DNNL_MAX_CPU_ISA", "AVX2")))

# It has sums of two and of many tensors, partly plain ones, windows far apart, and channels that fill no block.
MANIFOLD = 20


# Conversions between layouts are most at level fused.
@pytest.mark.parametrize("level", [Level.FUSED, pytest.param(Level.WRITTEN, marks=pytest.mark.soak)])
def test_a_random_network_and_its_bricks_execute_the_same_primitives(tmp_path: Path, level: Level) -> None:
    path = tmp_path / "net-symbol.json"
    path.write_bytes(network(MANIFOLD))
    runtime = Registry(tmp_path).default()
    with WorkerFramework(runtime, tmp_path / "framework.log") as framework:
        decomposition = decompose(Loader(tmp_path / "cache", framework).load(source_of(path), level))
    log = tmp_path / "telling.log"
    with Worker(replace(runtime, settings=SETTINGS), log) as worker:
        comparison = compared(decomposition, Listener(worker, log))
    assert sum(comparison.model.values()) > 100
    assert not list(comparison.differences())


def test_a_seed_always_makes_the_same_network() -> None:
    assert network(MANIFOLD) == network(MANIFOLD)
    assert len({network(number) for number in range(8)}) == 8
