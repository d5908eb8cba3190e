"""The kernel of each layer, by captured lines of oneDNN and by the real frameworks."""

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from onnx.helper import make_node

from dlbricks_tui.analysis.kernels import (
    LayerKernel,
    RanPrimitive,
    explain,
    instructions_in,
    kernels_in,
    ran_primitive,
    widest_of,
)
from dlbricks_tui.folders import SAMPLE_MODELS
from dlbricks_tui.models.frameworks import WorkerFramework
from dlbricks_tui.models.graph import LayerGraph, Level
from dlbricks_tui.models.library import source_of
from dlbricks_tui.models.loading import Loader
from dlbricks_tui.runtime.inside.measuring import lines_in
from dlbricks_tui.runtime.protocol import Said
from dlbricks_tui.runtime.runtime import Runtime, Settings
from dlbricks_tui.runtime.variant import InstructionSet, Kernels, Optimisation
from tests.documents.snapshots import check
from tests.models.onnx_models import floats, loaded, model, saved
from tests.models.table_framework import TableFramework

MXNET = Runtime("mxnet", sys.executable, "mxnet", "1.9.1", "3.11.7", Settings(1))
OPENVINO = replace(MXNET, framework="openvino")
ORT = replace(MXNET, framework="onnxruntime")
SQUEEZENET = "gluon/squeezenet1.1-symbol.json"

# - Of convolutions with 96 input and 24 output channels, and with 24 and 144, in MobileNetV2.
# - Of the first two convolutions of SqueezeNet, while OpenVINO compiled it.
LINES = (Path(__file__).parent / "onednn.txt").read_text(encoding="utf-8").splitlines()
_, _, WIDE, FIRST, SECOND, NO_DTYPE, BAD_FLAGS, ACCEPTED = LINES
NARROW = tuple(LINES[:2])
DISPATCHED = (FIRST, NO_DTYPE, NO_DTYPE, BAD_FLAGS, FIRST, NO_DTYPE, BAD_FLAGS, ACCEPTED, SECOND, NO_DTYPE)


def convolutions(folder: Path, *sizes: Sequence[int]) -> LayerGraph:
    """Convolutions side by side, each by its channels, image, window and stride."""
    nodes = [
        make_node("Conv", [f"x{number}", f"w{number}"], [f"y{number}"], strides=[stride] * 2)
        for number, (*_, stride) in enumerate(sizes)
    ]
    weights = [
        floats(f"w{number}", (made, read, window, window)) for number, (read, made, _, window, _) in enumerate(sizes)
    ]
    inputs = {f"x{number}": (1, read, image, image) for number, (read, _, image, *_) in enumerate(sizes)}
    return loaded(folder, model(nodes, inputs, [f"y{number}" for number in range(len(sizes))], weights))


def said(*lines: str, node: int | None = None) -> list[Said]:
    return [Said(line, node) for line in lines]


def told(kernels: Sequence[LayerKernel]) -> list[str]:
    """The kernel of each layer with its conversions, and the reasons against others."""
    lines = []
    for it in kernels:
        lines.append(f"{it.layer}: {it.implementation or 'not told'}, {it.instructions}, {', '.join(it.conversions)}")
        lines += [f"  {reason}{' (derived)' * it.derived}" for reason in it.refusals]
    return lines


def test_kernels_are_those_that_onednn_printed_with_the_reasons_against_others(tmp_path: Path) -> None:
    one = convolutions(tmp_path, (96, 24, 56, 1, 1))
    two = convolutions(tmp_path, (96, 24, 56, 1, 1), (24, 144, 56, 1, 1))
    three = convolutions(tmp_path, (3, 64, 224, 3, 2), (64, 16, 55, 1, 1), (64, 16, 54, 1, 1))
    lines, avx2 = [*said(*NARROW, node=4), *said(WIDE, node=9), *said(WIDE, node=7)], Kernels(InstructionSet.AVX2)
    extended = ORT.with_kernels(Kernels(optimisation=Optimisation.EXTENDED))
    check(
        "kernels-in",
        {
            "MXNet": told(kernels_in(two, lines, {4: 0, 9: 1}, MXNET, "avx512")),
            "as wide as its limit": told(
                kernels_in(one, said(*NARROW, node=4), {4: 0}, MXNET.with_kernels(avx2), "avx2")
            ),
            "that did not run": told(kernels_in(one, (), {}, MXNET, "avx512")),
            # Refusals belong to the convolution of their sizes, and are told once.
            "OpenVINO": told(kernels_in(three, said(*DISPATCHED), {}, OPENVINO, "amx")),
            "ONNX Runtime": told(kernels_in(two, (), {}, ORT, "avx512")),
            "ONNX Runtime with a limit": told(kernels_in(two, (), {}, extended, "avx512")),
        },
        width=160,
    )


def test_lines_belong_to_the_operator_whose_mark_follows() -> None:
    marks = [f"dlbricks,ran,{node}" for node in (3, 4, 7)]
    text = "\n".join([NARROW[0], "something else", NARROW[1], *marks[:2], WIDE, marks[2], NARROW[0], ""])
    assert lines_in(text) == (*said(*NARROW, node=3), *said(WIDE, node=7), *said(NARROW[0]))


def test_damaged_lines_are_passed_over(tmp_path: Path) -> None:
    graph = convolutions(tmp_path, (96, 24, 56, 1, 1))
    damaged = [line[:cut] for line in (*NARROW, *DISPATCHED) for cut in range(0, len(line), 7)]
    for node in (None, 0):
        assert len(kernels_in(graph, said(*damaged, node=node), {0: 0}, MXNET, "avx512")) == 1


def test_names_of_kernels_tell_their_instructions() -> None:
    named = {"brgconv_avx512_dw_f32": "avx512", "jit:avx512_common": "avx512", "jit_sse42_f32": "sse41"}
    named |= {"jit:sse41": "sse41", "brg:avx512_core_amx": "amx", "ref:any": ""}
    assert {name: instructions_in(name) for name in named} == named
    assert widest_of(MXNET.with_kernels(Kernels(InstructionSet.AVX512_CORE_VNNI))) == "avx512"


@pytest.mark.mxnet
def test_mxnet_tells_the_kernel_of_every_convolution_within_the_limit(tmp_path: Path) -> None:
    # Its types come with it, so that MXNet is started to tell the kernels only.
    loader = Loader(tmp_path / "cache", TableFramework())
    kernels = explained(
        tmp_path,
        MXNET.with_kernels(Kernels(InstructionSet.SSE41)),
        loader.load(source_of(SAMPLE_MODELS / SQUEEZENET), Level.WRITTEN),
    )
    assert len(kernels) == 26 and set(kernels) == {"jit:sse41", "jit_1x1:sse41"}


@pytest.mark.openvino
def test_openvino_tells_the_kernel_of_every_convolution_within_the_limit(tmp_path: Path) -> None:
    kernels = explained(tmp_path, OPENVINO.with_kernels(Kernels(InstructionSet.SSE41)))
    assert len(kernels) == 2 and all("sse42" in name for name in kernels)


def test_onnx_runtime_runs_the_nodes_of_its_optimisation_level(tmp_path: Path) -> None:
    # The same cache: the level is part of what it is asked for.
    for level, name in ((Optimisation.EXTENDED, "com.microsoft.FusedConv"), (Optimisation.BASIC, "Conv")):
        assert set(explained(tmp_path, ORT.with_kernels(Kernels(optimisation=level)))) == {name}


def explained(folder: Path, runtime: Runtime, graph: LayerGraph | None = None) -> list[str]:
    """The kernels of the convolutions of a model, by the real framework; without one, of two with activations."""
    if graph is None:
        layers = (("Conv", "xw", "c"), ("Relu", "c", "r"), ("Conv", "rv", "d"), ("Relu", "d", "y"))
        nodes = [make_node(op, [*read], [made]) for op, read, made in layers]
        weights = [floats("w", (16, 16, 3, 3)), floats("v", (16, 16, 1, 1))]
        source = source_of(saved(folder, model(nodes, {"x": (1, 16, 12, 12)}, ["y"], weights)))
        with WorkerFramework(runtime, folder / "log") as framework:
            graph = Loader(folder / "cache", TableFramework(), framework).load(source, Level.FUSED)
    kernels = explain(graph, runtime, folder / "kernels.log")
    return [it.implementation for it in kernels if "conv" in graph.layers[it.layer].op.lower()]


REST = NARROW[0].partition("exec,")[2]
RAN = RanPrimitive("reorder", "jit:uni", ("acdb", "aBcd8b"), "1x96x56x56", 0.380127)


@pytest.mark.parametrize(
    ("version", "host_ns"),
    [
        *((version, None) for version in ("dnnl_verbose", "mkldnn_verbose", "onednn_verbose,v1,primitive")),
        ("dnnl_verbose,1700000000123.456055", 1_700_000_000_123_456_000),
        ("onednn_verbose,v1,1700000000123.456055,primitive", 1_700_000_000_123_456_000),
    ],
)
def test_a_line_of_any_version_tells_the_primitive_its_kernel_its_time_and_perhaps_its_start(
    version: str, host_ns: int | None
) -> None:
    found = ran_primitive(f"{version},exec,{REST}")
    assert found is not None and found.host_ns == pytest.approx(host_ns, abs=1000)
    assert replace(found, host_ns=None) == RAN


@pytest.mark.parametrize(
    "line",
    [
        "dnnl_verbose,info,oneDNN v2.4.0 (commit N/A)",
        "dnnl_verbose,create:cache_miss,cpu,convolution,jit:avx2,forward,,,mb1,0.5",
        "dnnl_verbose,exec,cpu",
        f"dnnl_verbose,exec,{REST.rpartition(',')[0]},soon",
        "",
    ],
)
def test_other_lines_tell_of_no_primitive(line: str) -> None:
    assert ran_primitive(line) is None
