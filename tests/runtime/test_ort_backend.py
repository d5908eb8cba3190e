"""The settings of ONNX Runtime's sessions, tested in this process, as a worker does not report them."""

from base64 import b64encode
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy
import pytest
from onnx import ModelProto
from onnx.helper import tensor_dtype_to_np_dtype

from dlbricks_tui.bricks.identity import as_optimised
from dlbricks_tui.bricks.programs import file_program, model_program, sequence_program
from dlbricks_tui.runtime import protocol
from dlbricks_tui.runtime.inside.backend import unwatched
from dlbricks_tui.runtime.inside.measuring import LoadedPrograms
from dlbricks_tui.runtime.inside.openvino_backend import OpenVino
from dlbricks_tui.runtime.inside.openvino_models import load_openvino
from dlbricks_tui.runtime.inside.ort_backend import OnnxRuntime
from dlbricks_tui.runtime.inside.ort_session import bind_large_outputs, large_outputs, options, weight_values
from dlbricks_tui.runtime.protocol import ArrayType, Load, Profile, Sample, TraceRuns
from tests.models.onnx_models import (
    loaded,
    of_another_rank,
    of_varying_sizes,
    small,
)
from tests.runtime.onnx_cases import network

ROWS = 5_000


@pytest.fixture
def backend(ort: Any) -> OnnxRuntime:
    return OnnxRuntime(ort)


def test_only_model_files_are_optimised_unless_run_at_level_written(
    backend: OnnxRuntime, ort: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = []
    real = ort.InferenceSession

    def session(made: Any, settings: Any, providers: list[str]) -> Any:
        given.append(settings)
        return real(made, settings, providers=providers)

    monkeypatch.setattr(ort, "InferenceSession", session)
    graph = loaded(tmp_path, small())
    files = [file_program(each, tmp_path / "net.onnx") for each in (graph, as_optimised(graph))]
    for program in (model_program(graph), *files):
        backend.bind(program.network)
    levels = ort.GraphOptimizationLevel
    assert [it.graph_optimization_level for it in given] == [*[levels.ORT_DISABLE_ALL] * 2, levels.ORT_ENABLE_ALL]
    assert {it.execution_mode for it in given} == {ort.ExecutionMode.ORT_SEQUENTIAL}
    assert not any(it.use_per_session_threads for it in given), "they share threads"


def test_sessions_optimise_all_to_fuse_and_run_operators_side_by_side_only_on_request(ort: Any) -> None:
    fusing, abreast = options(ort, optimised=True), options(ort, optimised=False, side_by_side=True)
    assert fusing.graph_optimization_level == ort.GraphOptimizationLevel.ORT_ENABLE_ALL
    assert abreast.execution_mode == ort.ExecutionMode.ORT_PARALLEL


def test_results_are_always_written_to_the_same_arrays(backend: OnnxRuntime, tmp_path: Path) -> None:
    bound = backend.bind(model_program(loaded(tmp_path, small())).network)
    bound.run()
    (output,) = bound.outputs
    place, first = output.data_ptr(), output.numpy().copy()
    bound.inputs[0].update_inplace(2 * bound.inputs[0].numpy())
    bound.run()
    assert bound.outputs[0] is output
    assert output.data_ptr() == place
    assert (output.numpy() > first).all(), "the second run has written there"


def test_the_binding_that_returned_the_outputs_is_never_changed(
    backend: OnnxRuntime, ort: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    returned: list[Any] = []
    changed: list[Any] = []
    real_get, real_bind = ort.IOBinding.get_outputs, ort.IOBinding.bind_ortvalue_output

    def get_outputs(binding: Any) -> Any:
        returned.append(binding)
        return real_get(binding)

    def bind_output(binding: Any, *args: Any) -> None:
        changed.append(binding)
        real_bind(binding, *args)

    monkeypatch.setattr(ort.IOBinding, "get_outputs", get_outputs)
    monkeypatch.setattr(ort.IOBinding, "bind_ortvalue_output", bind_output)
    monkeypatch.setattr(ort.IOBinding, "clear_binding_outputs", changed.append)
    backend.bind(model_program(loaded(tmp_path, small())).network).run()
    assert len(returned) == len(changed) == 1
    assert changed[0] is not returned[0], "in versions such as 1.28 the outputs are references into it"


OPEN_OUTPUTS = {"sizes": (of_varying_sizes, {}), "rank": (of_another_rank, {"x": (5, 1, 4)})}


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("name", OPEN_OUTPUTS)
def test_outputs_that_do_not_fit_the_first_arrays_are_new_in_each_run(
    name: str, whole: bool, backend: OnnxRuntime, tmp_path: Path
) -> None:
    make, given = OPEN_OUTPUTS[name]
    graph = loaded(tmp_path, make(), given)
    program = file_program(graph, tmp_path / "net.onnx") if whole else model_program(graph)
    bench = LoadedPrograms(backend)
    # The layers have the sizes of the inputs, so ONNX Runtime knows the rank.
    assert bench.load(Load("p", program)).allocates is (whole or name == "sizes")
    assert [len(taken) for taken in bench.sample(Sample(("p",), 2, 20)).durations_ns] == [20]
    assert len(bench.trace(TraceRuns("p", 2, 5, operators=not whole, lines=False)).runs) == 5
    if not whole:
        assert len(bench.profile(Profile("p", 2, 5)).durations_ns) == 5


def test_outputs_of_fixed_sizes_are_not_new_in_each_run(backend: OnnxRuntime, tmp_path: Path) -> None:
    graph = loaded(tmp_path, small())
    assert not LoadedPrograms(backend).load(Load("p", file_program(graph, tmp_path / "net.onnx"))).allocates


def looked_up(table: str, words: str, axis: int = 0) -> ModelProto:
    return network(f"(int64[{words}] words) => (y) <float[{table}] w> {{ y = Gather <axis = {axis}> (w, words) }}")


@pytest.mark.parametrize("whole", [True, False])
def test_row_indices_spread_over_the_whole_table(whole: bool, backend: OnnxRuntime, tmp_path: Path) -> None:
    graph = loaded(tmp_path, looked_up(f"{ROWS},4", "1,200"))
    program = model_program(graph) if whole else sequence_program(graph, (0,))
    bound = backend.bind(program.network)
    found = bound.inputs[0].numpy()
    assert len(numpy.unique(found)) > 150
    assert 0 <= found.min() < ROWS / 10
    assert ROWS * 9 / 10 < found.max() < ROWS
    bound.run()


def test_the_axis_determines_the_number_of_rows(backend: OnnxRuntime, tmp_path: Path) -> None:
    for axis in (1, -1):
        bound = backend.bind(model_program(loaded(tmp_path, looked_up("2,300", "64", axis))).network)
        assert 200 < bound.inputs[0].numpy().max() < 300


def test_a_model_file_runs_with_its_own_weights_and_valid_inputs(backend: OnnxRuntime, tmp_path: Path) -> None:
    made = network(
        """(int64 rate) => (y)
        <int32 expected = {16000}, float[3] weight = {0.5, 0.5, 0.5}, float[3] zero = {0.0, 0.0, 0.0}> {
            whole = Cast <to = 6> (rate)
            is_expected = Equal (whole, expected)
            y = Where (is_expected, weight, zero)
        }"""
    )
    graph = loaded(tmp_path, made)
    program = file_program(graph, tmp_path / "net.onnx")
    assert program.network.values == {"rate": (16_000,)}
    bound = backend.bind(program.network)
    bound.run()
    (output,) = bound.outputs
    assert output.numpy().tolist() == [0.5] * 3


def test_different_weights_lie_in_one_piece_of_memory(ort: Any) -> None:
    weights = {"a": ArrayType((5, 3), "float32"), "b": ArrayType((7,), "uint8"), "c": ArrayType((5, 3), "float32")}
    found = {name: value.numpy() for name, value in weight_values(ort, weights, distinct=True).items()}
    places = [it.ctypes.data for it in found.values()]
    # What comes between is less than an alignment.
    assert [it % 64 for it in places] == [0, 0, 0]
    assert 0 < places[1] - places[0] < 60 + 64
    assert 0 < places[2] - places[1] < 7 + 64
    assert [it.shape for it in found.values()] == [(5, 3), (7,), (5, 3)]
    assert not numpy.array_equal(found["a"], found["c"])


def test_only_large_outputs_get_memory_that_nothing_has_touched() -> None:
    logits, state, cache = ArrayType((1, 128, 1 << 17), "float32"), ArrayType((1, 8), "float32"), None
    kinds = [logits, state, cache, logits]
    assert large_outputs(["a", "b", "c", "d"], kinds, {3: "an input"}) == {"a": logits}


@pytest.mark.parametrize("distinct", [False, True])
def test_large_outputs_are_new_in_each_run_where_weights_are_different(
    backend: OnnxRuntime, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, distinct: bool
) -> None:
    bound: list[int] = []

    def bind(ort: Any, binding: Any, outputs: dict[str, ArrayType]) -> None:
        bound.append(len(outputs))
        bind_large_outputs(ort, binding, outputs)

    monkeypatch.setattr("dlbricks_tui.runtime.inside.ort_session._MOST_KEPT_BYTES", 4)
    monkeypatch.setattr("dlbricks_tui.runtime.inside.ort_session.bind_large_outputs", bind)
    running = backend.bind(replace(model_program(loaded(tmp_path, small())).network, distinct=distinct))
    for _ in range(3):
        running.run()
    assert bound == ([0, 1, 1] if distinct else [0, 0, 0])


# The tokens that a cache holds after a run; it has room for 20.
TOKENS = 12
IN_PLACE = {"past_key": 1, "past_value": 2}


def as_network(made: ModelProto, **values: tuple[float, ...]) -> protocol.Network:
    """Return a model that is run with these values of inputs."""
    inputs = {}
    for it in made.graph.input:
        kind = it.type.tensor_type
        dtype = str(tensor_dtype_to_np_dtype(kind.elem_type))
        inputs[it.name] = ArrayType(tuple(axis.dim_value for axis in kind.shape.dim), dtype)
    return protocol.Network(b64encode(made.SerializeToString()).decode(), inputs, {}, values=values)


def attention() -> protocol.Network:
    """Return the attention of one token to those before it, with rotated queries and keys."""
    made = network(
        """(float[1,1,64] query, float[1,1,32] key, float[1,1,32] value, float[1,2,20,16] past_key,
        float[1,2,20,16] past_value, int32[1] last, int32 total, float[20,8] cosines, float[20,8] sines)
        => (float[1,1,64] attended, float[1,2,20,16] present_key, float[1,2,20,16] present_value) {
            [node0] attended, present_key, present_value = com.microsoft.GroupQueryAttention
                <num_heads = 4, kv_num_heads = 2, do_rotary = 1>
                (query, key, value, past_key, past_value, last, total, cosines, sines)
        }""",
        com_microsoft=1,
    )
    return as_network(made, last=(TOKENS - 1,), total=(TOKENS,))


def counting() -> protocol.Network:
    """Return a network that adds its first input to its second."""
    made = network("(float[2] step, float[2] sum) => (float[2] more) { [node0] more = Add (step, sum) }")
    return replace(as_network(made, step=(1.0,), sum=(0.0,)), in_place={"sum": 0})


def test_a_cache_in_place_gives_the_results_of_a_copied_one(backend: OnnxRuntime) -> None:
    copied, shared = backend.bind(attention()), backend.bind(replace(attention(), in_place=IN_PLACE))
    for number, array in enumerate(copied.inputs[:5]):
        values = numpy.random.default_rng(number).standard_normal(array.shape(), "float32")
        array.update_inplace(values)
        shared.inputs[number].update_inplace(values)
    for bound in (copied, shared, shared):
        bound.run()
    assert (copied.outputs[0].numpy() == shared.outputs[0].numpy()).all()
    for number in (3, 4):
        past, present = copied.inputs[number].numpy(), shared.inputs[number].numpy()
        assert (present[:, :, :TOKENS] == copied.outputs[number - 2].numpy()[:, :, :TOKENS]).all()
        assert numpy.unique(numpy.nonzero(present != past)[2]).tolist() == [TOKENS - 1], "only the new token is written"


def test_each_run_continues_where_the_last_one_ended(backend: OnnxRuntime) -> None:
    bound = backend.bind(counting())
    total = bound.inputs[1]
    for _ in range(3):
        bound.run()
    assert bound.outputs[0].data_ptr() == total.data_ptr()
    assert total.numpy().tolist() == [3, 3]
    bound.profiled().run(1, 2, lambda: None, unwatched)
    assert total.numpy().tolist() == [6, 6]


@pytest.mark.openvino
def test_openvino_writes_in_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    bound = OpenVino(load_openvino()).bind(counting())
    for _ in range(3):
        bound.run()
    assert bound.inputs[1].data.tolist() == [3, 3]
    # The first run under the profiler is not counted.
    bound.profiled().run(1, 2, lambda: None, unwatched)
    assert bound.inputs[1].data.tolist() == [7, 7]


def test_a_profile_has_a_row_for_each_run(backend: OnnxRuntime) -> None:
    programs = LoadedPrograms(backend)
    programs.load(protocol.Load("it", protocol.Program(counting())))
    assert len(programs.profile(protocol.Profile("it", 1, 2)).durations_ns) == 2
