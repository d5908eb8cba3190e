"""Networks that write outputs into the arrays of their inputs, as a decoder appends to its cache."""

from base64 import b64encode
from dataclasses import replace
from typing import Any

import numpy
import pytest
from onnx.helper import (
    make_graph,
    make_model,
    make_node,
    make_opsetid,
    make_tensor_value_info,
    np_dtype_to_tensor_dtype,
)

from dlbricks_tui.runtime import protocol
from dlbricks_tui.runtime.inside.backend import RefusalError
from dlbricks_tui.runtime.inside.measuring import LoadedPrograms
from dlbricks_tui.runtime.inside.openvino_backend import OpenVino
from dlbricks_tui.runtime.inside.openvino_models import load_openvino
from dlbricks_tui.runtime.inside.ort_backend import OnnxRuntime

HEADS, CACHED_HEADS, HEAD_SIZE = 4, 2, 16
# The tokens that the cache holds after a run, and those for which it has room.
TOKENS, ROOM = 12, 20
IN_PLACE = {"past_key": 1, "past_value": 2}


@pytest.fixture
def backend(ort: Any) -> OnnxRuntime:
    return OnnxRuntime(ort)


def attention() -> protocol.Network:
    """Return the attention of one token to those before it, with rotated queries and keys."""
    width, cached = HEADS * HEAD_SIZE, CACHED_HEADS * HEAD_SIZE
    cache = protocol.ArrayType((1, CACHED_HEADS, ROOM, HEAD_SIZE), "float32")
    waves = protocol.ArrayType((ROOM, HEAD_SIZE // 2), "float32")
    inputs = {
        "query": protocol.ArrayType((1, 1, width), "float32"),
        "key": protocol.ArrayType((1, 1, cached), "float32"),
        "value": protocol.ArrayType((1, 1, cached), "float32"),
        "past_key": cache,
        "past_value": cache,
        "last": protocol.ArrayType((1,), "int32"),
        "total": protocol.ArrayType((), "int32"),
        "cosines": waves,
        "sines": waves,
    }
    node = make_node(
        "GroupQueryAttention",
        list(inputs),
        ["attended", "present_key", "present_value"],
        name="node0",
        domain="com.microsoft",
        num_heads=HEADS,
        kv_num_heads=CACHED_HEADS,
        do_rotary=1,
    )
    outputs = {"attended": inputs["query"], "present_key": cache, "present_value": cache}
    graph = make_graph([node], "attention", declared(inputs), declared(outputs))
    opsets = [make_opsetid("", 17), make_opsetid("com.microsoft", 1)]
    text = b64encode(make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()).decode()
    return protocol.Network(text, inputs, {}, values={"last": (TOKENS - 1,), "total": (TOKENS,)})


def counting() -> protocol.Network:
    """Return a network that adds its first input to its second."""
    one = {"step": protocol.ArrayType((2,), "float32"), "sum": protocol.ArrayType((2,), "float32")}
    node = make_node("Add", ["step", "sum"], ["more"], name="node0")
    graph = make_graph([node], "counting", declared(one), declared({"more": one["sum"]}))
    text = b64encode(make_model(graph, opset_imports=[make_opsetid("", 17)], ir_version=8).SerializeToString())
    return protocol.Network(text.decode(), one, {}, values={"step": (1.0,), "sum": (0.0,)}, in_place={"sum": 0})


def declared(arrays: dict[str, protocol.ArrayType]) -> list[Any]:
    return [
        make_tensor_value_info(name, np_dtype_to_tensor_dtype(numpy.dtype(it.dtype)), it.shape)
        for name, it in arrays.items()
    ]


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
    bound.profiled().run(1, 2, lambda: None)
    assert total.numpy().tolist() == [6, 6]


@pytest.mark.openvino
def test_openvino_writes_in_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    bound = OpenVino(load_openvino()).bind(counting())
    for _ in range(3):
        bound.run()
    assert bound.inputs[1].data.tolist() == [3, 3]
    # The first run under the profiler is not counted.
    bound.profiled().run(1, 2, lambda: None)
    assert bound.inputs[1].data.tolist() == [7, 7]


def test_shared_arrays_count_once(backend: OnnxRuntime) -> None:
    programs = LoadedPrograms(backend)
    assert programs.load(protocol.Load("it", protocol.Program(counting()))).bytes == 16
    assert programs.load(protocol.Load("it", protocol.Program(replace(counting(), in_place={})))).bytes == 24
    assert len(programs.profile(protocol.Profile("it", 1, 2)).durations_ns) == 2


@pytest.mark.parametrize(
    ("in_place", "message"),
    [
        ({"more": 0}, "output 0 is written to more, which is no input"),
        ({"sum": 1}, "output 1 is written to sum: there are 1 outputs"),
        ({"sum": 0, "step": 0}, "output 0 is written to several inputs"),
    ],
)
def test_unclear_places_are_refused(in_place: dict[str, int], message: str, backend: OnnxRuntime) -> None:
    with pytest.raises(RefusalError, match=message) as refusal:
        backend.bind(replace(counting(), in_place=in_place))
    assert refusal.value.refused.reason is protocol.Reason.MALFORMED
