"""Programs loaded and timed by a worker with the real MXNet."""

import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks import made_up_networks
from benchmarks.contexts import Listener, compared
from benchmarks.made_up_networks import network
from dlbricks_tui.bricks.decomposition import decompose
from dlbricks_tui.models.graph import Level
from dlbricks_tui.models.library import source_of
from dlbricks_tui.models.loading import Loader
from dlbricks_tui.runtime.errors import WorkerError, WorkerRefusedError
from dlbricks_tui.runtime.process import Worker
from dlbricks_tui.runtime.protocol import (
    ArrayType,
    Fuse,
    Load,
    Loaded,
    Network,
    Program,
    Reason,
    Sample,
    Unload,
)
from dlbricks_tui.runtime.runtime import Runtime
from tests.runtime import symbols
from tests.runtime.engines import Telling, framework_of

pytestmark = pytest.mark.mxnet

PATIENCE_SECONDS = 120.0
IMAGE = (1, 3, 32, 32)
BATCH_NORM = ("gamma", "beta", "mean", "var")


def arrays(shapes: Mapping[str, tuple[int, ...]], dtype: str = "float32") -> dict[str, ArrayType]:
    return {name: ArrayType(shape, dtype) for name, shape in shapes.items()}


def convolution(name: str) -> dict[str, tuple[int, ...]]:
    """Return the weights of a convolution that keeps the shape of an image with three channels."""
    return {f"{name}_weight": (3, 3, 3, 3), f"{name}_bias": (3,)}


def batch_norm(name: str) -> dict[str, tuple[int, ...]]:
    return {f"{name}_{role}": (3,) for role in BATCH_NORM}


def one_operator(op: str, dtype: str = "float32", /, **attributes: str) -> Program:
    """Return a program of one operator on an image."""
    net = symbols.Network()
    return Program(Network(net.symbol(net.add(op, "it", "data", **attributes)), arrays({"data": IMAGE}, dtype), {}))


def small() -> Program:
    net = symbols.Network()
    symbol = net.symbol(net.relu("relu", net.convolution("conv", "data")))
    return Program(Network(symbol, arrays({"data": IMAGE}), arrays(convolution("conv"))))


def load(worker: Worker, program: Program, name: str = "it", limit: int | None = None) -> Loaded:
    return worker.ask(Load(name, program, limit), PATIENCE_SECONDS)


def load_with_output(worker: Worker, network: Network, shape: tuple[int, ...]) -> None:
    """Load a network whose output feeds a copy of this shape: another output would be refused."""
    copy = Network(one_operator("_copy").network.symbol, arrays({"data": shape}), {})
    load(worker, Program(copy, producer=network))


def refusal(worker: Worker, program: Program, limit: int | None = None) -> tuple[Reason, str]:
    with pytest.raises(WorkerRefusedError) as caught:
        load(worker, program, limit=limit)
    return caught.value.reason, str(caught.value)


# Loading.


def test_loading_a_program_runs_it_once(mxnet_worker: Worker) -> None:
    loaded = load(mxnet_worker, small())
    assert loaded.first_run_seconds > 0
    load_with_output(mxnet_worker, SMALL, IMAGE)


def reading(op: str, shape: tuple[int, ...], /, **attributes: str) -> Program:
    net = symbols.Network()
    return Program(Network(net.symbol(net.add(op, "it", "data", **attributes)), arrays({"data": shape}), {}))


SMALL = small().network
ROOTS = symbols.Network()
ROOTS.add("log", "log", ROOTS.add("negative", "minus", "data"))
NOT_FINITE = Program(Network(ROOTS.symbol("log"), arrays({"data": (2, 3)}), {}))
TABLE = symbols.Network()
TABLE.add("gather_nd", "found", "table", "places")
# A table with one row has no second one.
PLACES = {"table": ArrayType((1, 3), "float32"), "places": ArrayType((2, 40), "int32")}


@pytest.mark.parametrize(
    ("program", "reason", "message"),
    [
        (
            Program(replace(SMALL, weights={**SMALL.weights, "conv_weight": ArrayType((3, 4, 3, 3), "float32")})),
            Reason.UNBUILDABLE,
            "Error in operator conv: Shape inconsistent",
        ),
        (reading("NobodyHasThis", (1,)), Reason.UNKNOWN_OPERATOR, "MXNet lacks the operators of it"),
        (
            Program(Network(TABLE.symbol("found"), PLACES, {})),
            Reason.UNBUILDABLE,
            "IndexError: index 1 is out of bounds for axis 0 with size 1",
        ),
        (NOT_FINITE, Reason.NOT_FINITE, "output 0 of log holds values that are not finite"),
        (Program(replace(SMALL, weights={})), Reason.MALFORMED, "conv_weight has no type"),
        (
            Program(replace(SMALL, inputs=arrays({"nobodys": (1,)}))),
            Reason.MALFORMED,
            "there is no input called nobodys",
        ),
        (
            Program(SMALL, producer=one_operator("Flatten").network),
            Reason.MALFORMED,
            "the inputs have the shapes [(1, 3, 32, 32)] and are fed [(1, 3072)]",
        ),
        (
            Program(replace(SMALL, inputs=arrays({"data": (1 << 16, 3, 32, 32)}))),
            Reason.TOO_LARGE,
            "its arrays take 805306704 bytes, more than 1048576",
        ),
    ],
)
def test_programs_that_cannot_run_are_refused_in_one_line_and_the_worker_survives(
    mxnet_worker: Worker, program: Program, reason: Reason, message: str
) -> None:
    found, told = refusal(mxnet_worker, program, limit=1 << 20)
    assert (found, told[: len(message)], "\n" in told) == (reason, message, False)
    load(mxnet_worker, small())


def test_infinite_values_count_where_they_are_not_checked(mxnet_worker: Worker) -> None:
    loaded = mxnet_worker.ask(Load("it", NOT_FINITE, check_values=False), PATIENCE_SECONDS)
    assert loaded.first_run_seconds > 0.0


def test_the_values_stay_finite_however_deep_the_network(mxnet_worker: Worker) -> None:
    net = symbols.Network()
    weights: dict[str, tuple[int, ...]] = {}
    stem = "data"
    for block in range(20):
        inner = net.relu(f"r{block}", net.batch_norm(f"n{block}", net.convolution(f"c{block}", stem)))
        outer = net.batch_norm(f"m{block}", net.convolution(f"d{block}", inner))
        stem = net.add("elemwise_add", f"sum{block}", outer, stem)
        weights |= convolution(f"c{block}") | convolution(f"d{block}")
        weights |= batch_norm(f"n{block}") | batch_norm(f"m{block}")
    symbol = net.symbol(net.add("softmax", "classes", net.linear("fc", net.relu("last", stem))))
    weights |= {"fc_weight": (10, 3 * 32 * 32), "fc_bias": (10,)}
    load_with_output(mxnet_worker, Network(symbol, arrays({"data": IMAGE}), arrays(weights)), (1, 10))


# What can be loaded.


def test_a_fused_graph_runs(mxnet_worker: Worker) -> None:
    program = small()
    fused = mxnet_worker.ask(Fuse(program.network), PATIENCE_SECONDS)
    load_with_output(mxnet_worker, replace(program.network, symbol=fused.symbol), IMAGE)
    # Loading does not change what is fused.
    load(mxnet_worker, program)
    again = mxnet_worker.ask(Fuse(program.network), PATIENCE_SECONDS)
    assert again == fused


def abreast(count: int) -> Program:
    """Return a program of independent convolutions."""
    net = symbols.Network()
    heads = [net.convolution(f"conv{number}", "data") for number in range(count)]
    weights = {name: shape for number in range(count) for name, shape in convolution(f"conv{number}").items()}
    total = net.add("add_n", "sum", *heads, num_args=str(count))
    return Program(Network(net.symbol(total), arrays({"data": (1, 3, 256, 256)}), arrays(weights)), side_by_side=True)


def busy_ns(worker: Worker) -> int:
    """Return for how long threads of the worker have computed or waited for a core, added up."""
    files = Path(f"/proc/{worker.pid}/task").glob("*/schedstat")
    return sum(sum(map(int, it.read_text().split()[:2])) for it in files)


def threads_abreast(worker: Worker, program: Program) -> float:
    """Return how many threads were busy at once, on average."""
    load(worker, program)
    before = busy_ns(worker)
    (durations,) = worker.ask(Sample(("it",), 0, 20), PATIENCE_SECONDS).durations_ns
    return (busy_ns(worker) - before) / sum(durations)


@pytest.mark.skipif(not Path("/proc/self/schedstat").exists(), reason="nobody tells here what threads do")
def test_operators_of_a_program_run_side_by_side_on_request(mxnet_worker_of_settings: Worker) -> None:
    # An executor reaches 1 on a quiet host, and more only where threads wait for a core to hand over their work.
    assert threads_abreast(mxnet_worker_of_settings, abreast(8)) > 1.3


# Timing.


def test_cold_programs_are_timed_like_others_in_any_order(mxnet_worker: Worker) -> None:
    program = small()
    load(mxnet_worker, replace(program, cold=True, prelude=one_operator("Activation", act_type="relu").network), "cold")
    load(mxnet_worker, one_operator("exp"), "warm")
    durations = mxnet_worker.ask(Sample(("cold", "warm", "cold"), 1, 3), PATIENCE_SECONDS).durations_ns
    assert [len(taken) for taken in durations] == [3, 3, 3]
    assert all(duration > 0 for duration in durations[1])


def test_the_time_of_the_prelude_is_subtracted(mxnet_worker: Worker) -> None:
    program = small()
    load(mxnet_worker, Program(program.network, prelude=program.network), "nothing")
    durations = mxnet_worker.ask(Sample(("nothing",), 1, 20), PATIENCE_SECONDS).durations_ns[0]
    # Half of the time, the difference of two equal runs is negative.
    assert 0 in durations
    assert min(durations) == 0


def test_an_unloaded_program_is_gone(mxnet_worker: Worker) -> None:
    load(mxnet_worker, small(), "gone")
    mxnet_worker.ask(Unload(("gone", "never there")), PATIENCE_SECONDS)
    with pytest.raises(WorkerRefusedError, match="no program is loaded as gone"):
        mxnet_worker.ask(Sample(("gone",), 1, 1), PATIENCE_SECONDS)


def fused_sum(mxnet: object) -> Network:
    """Return a convolution that adds to a copy of an input in place."""
    from dlbricks_tui.runtime.inside.mxnet_inference import fuse

    net = symbols.Network()
    symbol = net.symbol(net.add("elemwise_add", "sum", net.convolution("conv", "data"), net.relu("copy", "other")))
    shapes = {"data": IMAGE, "other": IMAGE}
    network = Network(symbol, arrays(shapes), arrays(convolution("conv")))
    return replace(network, symbol=fuse(mxnet, Fuse(network)).symbol)


def runs_again(mxnet: object) -> bool:
    """Return whether its results are the same in each run, in the process of MXNet."""
    from dlbricks_tui.runtime.inside.mxnet_backend import BoundSymbol

    network = BoundSymbol(mxnet, fused_sum(mxnet))
    network.run()
    first = network.outputs[0].asnumpy()
    for _ in range(20):
        network.run()
    return bool(abs(network.outputs[0].asnumpy() / first - 1).max() < 1e-6)


def test_runs_do_not_change_the_inputs(said_of_mxnet: list[str]) -> None:
    assert said_of_mxnet[1] == "True"


# What is run.


def computed(telling: Telling, program: Program) -> list[str]:
    """Return the kinds of oneDNN primitives of one run, in order."""
    worker, log = telling
    load(worker, program)
    before = log.stat().st_size
    worker.ask(Sample(("it",), 0, 1), PATIENCE_SECONDS)
    lines = log.read_bytes()[before:].decode().splitlines()
    return [line.split(",")[3] for line in lines if line.startswith("dnnl_verbose,exec")]


def test_a_graph_is_run_unchanged(telling: Telling) -> None:
    program = small()
    apart = [kind for kind in computed(telling, program) if kind != "reorder"]
    assert apart == ["convolution", "eltwise"]
    fused = telling.worker.ask(Fuse(program.network), PATIENCE_SECONDS)
    program = Program(replace(program.network, symbol=fused.symbol))
    joined = [kind for kind in computed(telling, program) if kind != "reorder"]
    assert joined == ["convolution"]


def test_an_input_has_the_layout_of_its_producer(telling: Telling) -> None:
    net = symbols.Network()
    shape = (1, 32, 16, 16)
    made = net.add("Convolution", "conv", "data", "weight", kernel="(3, 3)", pad="(1, 1)", num_filter="32", no_bias="1")
    producer = Network(net.symbol(made), arrays({"data": shape}), arrays({"weight": (32, 32, 3, 3)}))
    exp = Network(one_operator("exp").network.symbol, arrays({"data": shape}), {})
    assert computed(telling, Program(exp)) == []
    # It needs the plain layout, so each run converts its input.
    for _ in range(2):
        assert computed(telling, Program(exp, producer)) == ["reorder"]


# A limit of the memory.


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux keeps to such a limit")
def test_a_program_beyond_the_memory_limit_fails_alone(mxnet_worker_of_settings: Worker) -> None:
    load(mxnet_worker_of_settings, small(), "small")
    net = symbols.Network()
    symbol = net.symbol(net.add("broadcast_to", "wide", "data", shape="(1024, 1024, 1024)"))
    with pytest.raises(WorkerError, match=r"[Aa]llocate"):
        load(mxnet_worker_of_settings, Program(Network(symbol, arrays({"data": (1, 1024, 1024)}), {})))
    assert len(mxnet_worker_of_settings.ask(Sample(("small",), 1, 3), PATIENCE_SECONDS).durations_ns[0]) == 3


# In MXNet, bricks execute what their models execute: the same kernels, layouts and conversions.

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
