"""Limits on the kernels that a runtime chooses from."""

import sys
from dataclasses import replace
from itertools import product

import pytest

from dlbricks_tui.runtime.errors import RegistryError
from dlbricks_tui.runtime.runtime import Runtime, Settings
from dlbricks_tui.runtime.traits import TRAITS
from dlbricks_tui.runtime.variant import (
    USUAL_KERNELS,
    AskedVariant,
    InstructionSet,
    Kernels,
    Optimisation,
    Variant,
    stated_kernels,
    stated_variant,
    variant_in_words,
    without_variant,
)

MXNET = Runtime("here", sys.executable, "mxnet", "1.9.1", "3.11.7", Settings(1))
ORT = replace(MXNET, framework="onnxruntime", version="1.32.0")


def test_a_runtime_without_limits_keeps_its_identity() -> None:
    assert MXNET.kernels == USUAL_KERNELS
    assert MXNET.with_variant(AskedVariant()) == MXNET.with_kernels(USUAL_KERNELS) == MXNET
    limited = MXNET.with_kernels(Kernels(InstructionSet.AVX2))
    assert limited.identity == "mxnet-1.9.1 python-3.11 threads-1 DNNL_MAX_CPU_ISA=AVX2"
    assert limited.with_kernels(Kernels(InstructionSet.ALL)) == MXNET
    assert ORT.with_kernels(Kernels(optimisation=Optimisation.EXTENDED)).identity.endswith(
        " threads-1 ORT_OPTIMISATION=extended"
    )


def test_a_runtime_has_the_limits_of_each_of_its_identities() -> None:
    for framework, traits in TRAITS.items():
        usual = replace(MXNET, framework=framework)
        for instructions, optimisation in product(traits.instruction_sets, traits.optimisations):
            limited = usual.with_kernels(Kernels(instructions, optimisation))
            assert limited.kernels == stated_kernels(limited.identity) == Kernels(instructions, optimisation)
            assert usual.with_identity(limited.identity) == limited
            assert without_variant(limited.identity) == without_variant(usual.identity)


def test_a_limit_that_is_not_known_here_belongs_to_the_runtime_that_has_it() -> None:
    own = replace(MXNET, settings=Settings(1, (("DNNL_MAX_CPU_ISA", "AVX512_MIC"),)))
    assert own.kernels == USUAL_KERNELS
    assert own.with_identity(own.identity) == own
    assert MXNET.with_identity(own.identity) is None


def test_one_limit_takes_the_place_of_another_by_either_name() -> None:
    newer = replace(MXNET, framework="openvino", settings=Settings(1, (("ONEDNN_MAX_CPU_ISA", "SSE41"),)))
    assert newer.with_kernels(Kernels(InstructionSet.AVX2)).settings.environment == (("DNNL_MAX_CPU_ISA", "AVX2"),)


def test_limits_that_a_framework_lacks_are_refused_in_one_line() -> None:
    with pytest.raises(RegistryError, match=r"ONNX Runtime \(here\) has no choice of instruction sets: leave avx2 out"):
        ORT.with_kernels(Kernels(InstructionSet.AVX2))
    with pytest.raises(RegistryError, match=r"MXNet \(here\) has no choice of optimisation levels: leave none out"):
        MXNET.with_kernels(Kernels(optimisation=Optimisation.NONE))
    with pytest.raises(RegistryError, match=r"are sse41, avx, avx2, .*, all: leave avx512_core_fp16 out"):
        MXNET.with_kernels(Kernels(InstructionSet.AVX512_CORE_FP16))


def test_limits_reach_the_worker_and_are_told() -> None:
    limited = MXNET.with_kernels(Kernels(InstructionSet.AVX512_CORE))
    assert limited.environment({"DNNL_MAX_CPU_ISA": "SSE41"})["DNNL_MAX_CPU_ISA"] == "AVX512_CORE"
    assert variant_in_words(stated_variant(limited.identity)).endswith("f32, avx512_core kernels")
    optimised = ORT.with_kernels(Kernels(optimisation=Optimisation.BASIC))
    assert variant_in_words(stated_variant(optimised.identity)).endswith("f32, optimisation basic")
    assert variant_in_words(Variant()).endswith("f32")
