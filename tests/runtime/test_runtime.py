import sys
from dataclasses import replace
from itertools import product
from pathlib import Path
from unittest import mock

import pytest
from onnx.helper import make_node

from dlbricks_tui.bricks.contexts import context_key
from dlbricks_tui.bricks.layouts import output_layouts
from dlbricks_tui.recorded_host import Processors
from dlbricks_tui.runtime.errors import RegistryError
from dlbricks_tui.runtime.registry import Registry
from dlbricks_tui.runtime.runtime import PRECISION_VARIABLE, Runtime, Settings, settings_from
from dlbricks_tui.runtime.traits import ONNX_RUNTIME, TRAITS, Format, Traits, runtime_title, traits_of
from dlbricks_tui.runtime.variant import (
    USUAL_KERNELS,
    AskedVariant,
    InstructionSet,
    Kernels,
    Optimisation,
    Precision,
    Variant,
    stated_cache,
    stated_kernels,
    stated_precision,
    stated_threads,
    stated_variant,
    variant_in_words,
    without_variant,
)
from docs.generators.fields import fields_of
from tests.models.onnx_models import loaded, model

TWO_THREADS = Settings(2)


def runtime(
    name: str = "ours", python: str = sys.executable, python_version: str = "3.11.7", settings: Settings = TWO_THREADS
) -> Runtime:
    return Runtime(name, python, "mxnet", "1.9.1", python_version, settings)


@pytest.mark.parametrize(
    ("framework", "processors", "threads"),
    [
        # MXNet takes two logical processors of x86 for one core.
        ("mxnet", Processors(8, "x86_64", hyper_threading=False), 4),
        ("mxnet", Processors(8, "aarch64", hyper_threading=True), 8),
        ("mxnet", Processors(1, "x86_64", hyper_threading=True), 1),
        # The others start one thread for each core.
        ("onnxruntime", Processors(8, "x86_64", hyper_threading=False), 8),
        ("onnxruntime", Processors(8, "x86_64", hyper_threading=True), 4),
        ("openvino", Processors(8, "aarch64", hyper_threading=True), 4),
        ("openvino", Processors(1, "x86_64", hyper_threading=True), 1),
        # A container has the time of so many cores, rounded down.
        ("onnxruntime", Processors(8, "x86_64", hyper_threading=True, quota=2.5), 2),
        ("mxnet", Processors(8, "x86_64", hyper_threading=True, quota=6.0), 4),
        ("openvino", Processors(8, "x86_64", hyper_threading=False, quota=0.5), 1),
        ("llama.cpp", Processors(8, "x86_64", hyper_threading=False, quota="none"), 8),
    ],
)
def test_the_usual_number_of_threads_follows_from_the_processors(
    framework: str, processors: Processors, threads: int
) -> None:
    untuned = replace(runtime(settings=Settings()), framework=framework)
    assert untuned.on(processors) == untuned.with_threads(threads)
    assert runtime().on(processors) == runtime()


@pytest.mark.parametrize("variable", ["OMP_NUM_THREADS", "OMP_THREAD_LIMIT", "MXNET_OMP_MAX_THREADS"])
def test_no_number_is_guessed_beside_another_setting_of_threads(variable: str) -> None:
    tuned = runtime(settings=Settings(None, ((variable, "4,2"),)))
    assert tuned.on(Processors(8, "x86_64", hyper_threading=False)) == tuned


def test_a_worker_gets_the_settings_and_not_the_tuning_of_the_shell() -> None:
    shell = {
        "HOME": "/home/me",
        "OMP_NUM_THREADS": "64",
        "NNVM_EXEC_NUM_TEMP": "4",
        "MXNET_EXEC_BULK_EXEC_INFERENCE": "0",
    }
    settings = Settings(2, (("MXNET_SUBGRAPH_BACKEND", "NONE"),))
    environment = runtime(settings=settings).environment(shell)
    ours = {"OMP_NUM_THREADS": "2", "DLBRICKS_PRECISION": "f32", "MXNET_SUBGRAPH_BACKEND": "NONE"}
    assert environment == {"HOME": "/home/me", **ours}


@pytest.mark.parametrize(
    ("framework", "variables"),
    [
        ("mxnet", {"MXNET_CPU_WORKER_NTHREADS": "3", "MXNET_EXEC_BULK_EXEC_INFERENCE": "0"}),
        ("onnxruntime", {"ORT_INTER_OP_THREADS": "3"}),
    ],
)
def test_variables_for_parallel_operators_are_part_of_the_runtime(framework: str, variables: dict[str, str]) -> None:
    one = replace(runtime(settings=Settings(1, (("MXNET_A", "1"),))), framework=framework)
    several = one.side_by_side(3)
    assert (one.at_once, several.at_once) == (1, 3)
    assert dict(several.settings.environment) == {"MXNET_A": "1"} | variables
    assert several.identity != one.identity
    backwards = replace(several.settings, environment=several.settings.environment[::-1])
    assert replace(several, settings=backwards).identity == several.identity, "in any order"


@pytest.mark.parametrize(
    "variables",
    [
        {"MXNET_CPU_WORKER_NTHREADS": "4"},
        {"MXNET_CPU_WORKER_NTHREADS": "4", "MXNET_EXEC_BULK_EXEC_INFERENCE": "1"},
        {"MXNET_CPU_WORKER_NTHREADS": "1", "MXNET_EXEC_BULK_EXEC_INFERENCE": "0"},
        {"MXNET_CPU_WORKER_NTHREADS": "many", "MXNET_EXEC_BULK_EXEC_INFERENCE": "0"},
        {"MXNET_EXEC_BULK_EXEC_INFERENCE": "0"},
        {"ORT_INTER_OP_THREADS": "2"},
    ],
)
def test_operators_that_mxnet_groups_run_one_at_a_time(variables: dict[str, str]) -> None:
    assert runtime(settings=Settings(1, tuple(variables.items()))).at_once == 1


def test_another_interpreter_does_not_import_our_modules() -> None:
    shell = {"PYTHONPATH": "/ours", "PYTHONHOME": "/ours"}
    ours = {"OMP_NUM_THREADS": "2", "DLBRICKS_PRECISION": "f32"}
    assert runtime(python="/another/python").environment(shell) == ours
    assert runtime().environment(shell) == {**shell, **ours}


def test_tuning_variables_of_the_shell_become_settings() -> None:
    shell = {"HOME": "/home/me", "OMP_NUM_THREADS": "4", "MXNET_B": "2", "MXNET_A": "1"}
    assert settings_from(shell) == Settings(4, (("MXNET_A", "1"), ("MXNET_B", "2")))
    assert settings_from({}) == Settings()
    # An invalid number of threads is passed on.
    assert settings_from({"OMP_NUM_THREADS": "4,2"}) == Settings(None, (("OMP_NUM_THREADS", "4,2"),))


RUNTIME = Runtime("here", sys.executable, "onnxruntime", "1.32.0", "3.11.9")


@pytest.mark.parametrize(
    ("threads", "precision", "identity"),
    [
        (None, Precision.F32, "onnxruntime-1.32.0 python-3.11 threads-default"),
        (12, Precision.F32, "onnxruntime-1.32.0 python-3.11 threads-12"),
        (2, Precision.INT8, "onnxruntime-1.32.0 python-3.11 threads-2 precision-int8"),
    ],
)
def test_an_identity_tells_threads_and_precision_unless_they_are_the_usual_ones(
    threads: int | None, precision: Precision, identity: str
) -> None:
    wanted = RUNTIME.with_threads(threads).with_precision(precision)
    assert wanted.identity == identity
    assert (stated_threads(identity), stated_precision(identity)) == (threads, precision)
    assert RUNTIME.with_identity(identity) == wanted
    assert RUNTIME.with_identity(identity.replace("1.32.0", "1.31.0")) is None
    assert without_variant(f"{identity} OV_A=1") == "onnxruntime-1.32.0 python-3.11 OV_A=1"
    is_changed = precision is Precision.INT8
    assert ("accuracy was not checked" in precision.remark) is is_changed
    assert ("accuracy not checked" in variant_in_words(Variant(precision=precision))) is is_changed


def test_a_precision_that_the_runtime_lacks_is_refused_in_one_line() -> None:
    with pytest.raises(RegistryError, match="runtime here computes in f32, int8 and not in bf16"):
        RUNTIME.with_precision(Precision.BF16)
    assert RUNTIME.with_identity(f"{RUNTIME.identity} precision-bf16") is None


def test_only_bf16_reaches_the_worker_as_a_setting() -> None:
    inherited = {PRECISION_VARIABLE: "bf16"}
    assert RUNTIME.environment(inherited)[PRECISION_VARIABLE] == "f32"
    assert RUNTIME.with_precision(Precision.INT8).environment({})[PRECISION_VARIABLE] == "f32"
    openvino = replace(RUNTIME, framework="openvino").with_precision(Precision.BF16)
    assert openvino.environment({})[PRECISION_VARIABLE] == "bf16"


# Limits on the kernels that a runtime chooses from.

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
        for number, cache in enumerate(traits.caches):
            found = usual.with_cache(cache)
            assert (found.cache, found == usual) == (cache, number == 0), "the usual one is left out"
            assert usual.with_identity(found.identity) == found
            assert without_variant(found.identity) == without_variant(usual.identity)
            assert found.environment({"DLBRICKS_CACHE": "f64"}).get("DLBRICKS_CACHE") == stated_cache(found.identity)


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


def test_the_page_on_frameworks_explains_each_fact() -> None:
    """A comment above each field becomes its explanation."""
    assert [it.name for it in fields_of(Traits) if not it.about] == []


def test_an_unknown_framework_is_refused_by_name() -> None:
    with pytest.raises(RegistryError, match="'theano'; this version of dlbricks knows mxnet, onnxruntime"):
        traits_of("theano")


def test_a_runtime_of_an_unknown_framework_hides_no_other(tmp_path: Path) -> None:
    """A newer version may have registered it."""
    registry = Registry(tmp_path)
    theirs = Runtime("theirs", "/usr/bin/python3", "theano", "1.0", "3.11.0")
    with mock.patch.object(Registry, "_registered", lambda _: (theirs,)):
        assert registry.preferred_for({Format.ONNX}) in registry.all()
        assert registry.find("theirs") == theirs


def test_another_framework_for_a_format_brings_its_own_rules(tmp_path: Path) -> None:
    """It needs a `Traits` instance, and no change to any other package."""
    other = replace(
        ONNX_RUNTIME, framework="other", title="Other", own_runtime="other", packages=("pytest",), writes_in_place=True
    )
    with mock.patch.dict(TRAITS, {"other": other}):
        registry = Registry(tmp_path)
        named = registry.find("other")
        assert (named.framework, named.traits) == ("other", other)
        assert registry.runtime_for({Format.ONNX}).traits is ONNX_RUNTIME
        assert registry.one_of_each_format(named)[Format.ONNX] == named
        assert Runtime("it", "python", "other", "1.0", "3.11").side_by_side(2).at_once == 2
    nodes = [
        make_node("Relu", ["x"], ["y"]),
        make_node("Tanh", ["y"], ["z"]),
        make_node("Add", ["y", "z"], ["sum"]),
        make_node("Mul", ["sum", "y"], ["product"]),
    ]
    graph = loaded(tmp_path, model(nodes, {"x": (1, 2)}, ["product"]))
    contexts = [context_key(it, [2], output_layouts(it)) for it in (graph, replace(graph, traits=other))]
    assert contexts == ["plain+plain", "plain:kept+plain"]


def test_a_runtime_and_a_framework_have_a_name_for_people() -> None:
    names = ("onnxruntime-1.32.0 python-3.11 threads-2", "openvino", "default", "default-onnx", "mine")
    assert [runtime_title(it) for it in names] == ["ONNX Runtime 1.32.0", "OpenVINO", "MXNet", "ONNX Runtime", "mine"]
