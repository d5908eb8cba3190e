"""Facts about each framework that the other rooms need: one object per framework.

A new framework is one more `Traits` here and one more backend in `runtime/inside`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from dlbricks_tui.recorded_host import Processors
from dlbricks_tui.runtime.errors import RegistryError
from dlbricks_tui.runtime.variant import AskedVariant, CachePrecision, InstructionSet, Kernels, Optimisation, Precision

_X86 = ("x86_64", "AMD64")

Variables = tuple[tuple[str, str], ...]

_IN_ONEDNN_2 = (
    *(InstructionSet.SSE41, InstructionSet.AVX, InstructionSet.AVX2, InstructionSet.AVX2_VNNI),
    *(InstructionSet.AVX512_CORE, InstructionSet.AVX512_CORE_VNNI, InstructionSet.AVX512_CORE_BF16),
)


class Format(str, Enum):
    """The file format of a model. A framework reads one of them."""

    MXNET = "MXNet"
    ONNX = "ONNX"


@dataclass(frozen=True, slots=True)
class Traits:
    """Facts about one framework. Fields with a default may be left out."""

    # The name in stored results and on the command line.
    framework: str
    # The name in messages.
    title: str
    # The file format that it reads.
    format: Format
    # The names of its packages in package indexes; the first one that is installed tells the version.
    packages: tuple[str, ...]
    # The name of the runtime that consists of this interpreter and the framework.
    own_runtime: str
    # The command that installs it beside this program.
    install_here: str
    # The command that installs it in another interpreter.
    install_there: str

    # Beginnings of the names of environment variables that change its speed: a run sets or removes them.
    variable_prefixes: tuple[str, ...]
    # Beginnings of the names of those that change the fused graph.
    graph_variable_prefixes: tuple[str, ...]
    # The variable with the number of operators that may run at the same time; empty if they run one after another.
    parallel_variable: str = ""
    # The settings that `parallel_variable` requires.
    parallel_settings: Variables = ()
    # The settings with which its profiler reports operators in the order of the graph.
    profiling_settings: Variables = ()
    # The default values of `profiling_settings`; empty if these settings change no end-to-end latency.
    default_engine: Variables = ()
    # The settings with which its oneDNN prints the kernels that it chooses; empty if it computes without oneDNN.
    explaining_settings: Variables = ()
    # The settings with which its oneDNN prints each primitive that it executes, and when; empty without oneDNN.
    printing_settings: Variables = ()
    # The precisions that it computes in, the usual one first. The worker finds `bf16` in `DLBRICKS_PRECISION`.
    precisions: tuple[Precision, ...] = (Precision.F32,)
    # The instruction sets that its kernels can be limited to. The worker finds the limit in `DNNL_MAX_CPU_ISA`.
    instruction_sets: tuple[InstructionSet, ...] = (InstructionSet.ALL,)
    # The levels up to which it can optimise graphs. The worker finds the level in `ORT_OPTIMISATION`.
    optimisations: tuple[Optimisation, ...] = (Optimisation.ALL,)
    # The precisions in which its engine keeps keys and values of language models, the usual one first; empty: it has no
    # such engine. The worker finds a precision that is not the usual one in `DLBRICKS_CACHE`.
    caches: tuple[CachePrecision, ...] = ()
    # Weights of 8 bits share a scale and a zero point per row, also the embedding table and the head of models of 4
    # bits, whose other weights share them per block of at most 128. Without this, blocks of 32 weights share a scale.
    packs_by_row: bool = False
    # Of a prompt, the head of a language model computes scores for the last token only.
    has_short_head: bool = False
    # That engine has flash attention, which users can switch on and off.
    has_flash_attention: bool = False
    # It has fast kernels for quantised matrix products that find the ranges of their inputs in each run.
    quantises_dynamically: bool = False
    # By default it starts one thread per two logical processors on x86, instead of one per core.
    halves_x86_threads: bool = False

    # For end-to-end timing the worker loads the model file, with its weights.
    runs_model_files: bool = False
    # Its optimiser cannot be switched off, so a network of several layers always runs fused. Its answer to `fuse` is a
    # list of executed nodes, of which `models/onnx_layers.py` makes layers.
    always_fuses: bool = False
    # Tensors keep oneDNN's layouts between layers, and contexts name them. Without this, each conversion is a layer.
    keeps_onednn_layouts: bool = False
    # Operators may write their results over their inputs, so contexts name the inputs to keep.
    writes_in_place: bool = False
    # The speed of max pooling on plain arrays depends on the values, so contexts name varied inputs.
    branches_on_values: bool = False
    # Its compute threads sleep between runs, so the first operators of a run are slower.
    sleeps_between_runs: bool = False
    # Elementwise operators that it computes with all cores even on small tensors, the newest first, each with the
    # operator version that introduced it. Without them a relu does.
    parallel_operators: tuple[tuple[str, int], ...] = ()

    # The framework's own name of the number of threads, as analyses show it.
    threads_setting: str = ""
    # The framework's own name of the number of operators at the same time.
    parallel_setting: str = ""
    # The framework's own name of the precision of a model that is not quantised.
    precision_setting: str = ""

    def has_kernels(self, limits: Kernels | AskedVariant) -> bool:
        """Return whether it has these limits on kernels; None stands for any."""
        known = (None, *self.instruction_sets), (None, *self.optimisations)
        return limits.instructions in known[0] and limits.optimisation in known[1]

    def usual_threads(self, processors: Processors) -> int:
        """Return the number of threads that it starts by default, and no more than there are cores to use."""
        halved = processors.machine in _X86 if self.halves_x86_threads else processors.hyper_threading
        return min(max(1, processors.number // 2) if halved else processors.number, processors.to_use)


MXNET = Traits(
    framework="mxnet",
    title="MXNet",
    format=Format.MXNET,
    packages=("mxnet", "mxnet-mkl", "mxnet-native"),
    own_runtime="default",
    install_here="pip install mxnet, on Python 3.12 or older",
    install_there="pip install mxnet, on Python 3.12 or older",
    variable_prefixes=("MKL_", "MKLDNN_", "DNNL_", "ONEDNN_", "MXNET_", "NNVM_"),
    graph_variable_prefixes=("MXNET_",),
    parallel_variable="MXNET_CPU_WORKER_NTHREADS",
    # MXNet runs operators in parallel only if the engine receives them one by one, not in bulk.
    parallel_settings=(("MXNET_EXEC_BULK_EXEC_INFERENCE", "0"),),
    # The calling thread computes the operators in the order of the graph.
    profiling_settings=(("MXNET_ENGINE_TYPE", "NaiveEngine"),),
    default_engine=(("MXNET_ENGINE_TYPE", "ThreadedEnginePerDevice"),),
    # oneDNN 2.4 prints the kernels that run, and not why it refuses others.
    explaining_settings=(("DNNL_VERBOSE", "1"), ("MXNET_ENGINE_TYPE", "NaiveEngine")),
    printing_settings=(("DNNL_VERBOSE", "1"), ("DNNL_VERBOSE_TIMESTAMP", "1")),
    instruction_sets=(*_IN_ONEDNN_2, InstructionSet.ALL),
    halves_x86_threads=True,
    keeps_onednn_layouts=True,
    writes_in_place=True,
    branches_on_values=True,
    sleeps_between_runs=True,
    threads_setting="OMP_NUM_THREADS",
    parallel_setting="MXNET_CPU_WORKER_NTHREADS",
)
ONNX_RUNTIME = Traits(
    framework="onnxruntime",
    title="ONNX Runtime",
    format=Format.ONNX,
    packages=("onnxruntime",),
    own_runtime="default-onnx",
    install_here="pip install onnxruntime",
    install_there="pip install onnxruntime",
    variable_prefixes=("ORT_",),
    graph_variable_prefixes=("ORT_",),
    parallel_variable="ORT_INTER_OP_THREADS",
    runs_model_files=True,
    parallel_operators=(("Erf", 9), ("Elu", 1)),
    precisions=(Precision.F32, Precision.INT8),
    optimisations=tuple(Optimisation),
    caches=(CachePrecision.F32,),
    quantises_dynamically=True,
    threads_setting="intra_op_num_threads",
    parallel_setting="execution_mode=ORT_PARALLEL inter_op_num_threads",
)
OPENVINO = Traits(
    framework="openvino",
    title="OpenVINO",
    format=Format.ONNX,
    packages=("openvino",),
    own_runtime="default-openvino",
    install_here="pip install 'dlbricks-tui[openvino]'",
    install_there="pip install openvino",
    variable_prefixes=("OV_", "OPENVINO_", "TBB_", "DNNL_", "ONEDNN_"),
    graph_variable_prefixes=("OV_", "DNNL_", "ONEDNN_"),
    precisions=(Precision.F32, Precision.BF16, Precision.INT8),
    caches=(CachePrecision.INT8, CachePrecision.F32, CachePrecision.F16, CachePrecision.BF16),
    packs_by_row=True,
    # As openvino-genai changes the models that it loads.
    has_short_head=True,
    explaining_settings=(("ONEDNN_VERBOSE", "dispatch,profile_create"),),
    printing_settings=(
        ("ONEDNN_VERBOSE", "profile_exec"),
        ("ONEDNN_VERBOSE_TIMESTAMP", "1"),
        # While it prints, the oneDNN of OpenVINO 2026.4 leaves out convolutions with a bias, depending on what new
        # memory holds. The C library fills new memory with zeros so.
        ("GLIBC_TUNABLES", "glibc.malloc.perturb=255:glibc.malloc.tcache_count=0"),
    ),
    instruction_sets=(*_IN_ONEDNN_2, InstructionSet.AVX512_CORE_FP16, InstructionSet.ALL),
    runs_model_files=True,
    always_fuses=True,
    threads_setting="INFERENCE_NUM_THREADS",
    precision_setting="INFERENCE_PRECISION_HINT",
)
# By the name of the framework. Of several that read one format, the first is the usual one.
TRAITS: Mapping[str, Traits] = {it.framework: it for it in (MXNET, ONNX_RUNTIME, OPENVINO)}

LLAMA_CPP = Traits(
    framework="llama.cpp",
    title="llama.cpp",
    # It reads GGUF files. Language models are laid out in the other format to predict what they take.
    format=Format.ONNX,
    packages=("llama-cpp-python",),
    own_runtime="default-llama.cpp",
    install_here="put its llama-bench on the PATH",
    install_there="pip install llama-cpp-python",
    variable_prefixes=("GGML_", "LLAMA_"),
    graph_variable_prefixes=(),
    caches=(CachePrecision.F16, CachePrecision.INT8, CachePrecision.F32, CachePrecision.BF16),
    has_flash_attention=True,
    has_short_head=True,
    threads_setting="--threads",
)
# Programs that run language models, and no other models.
ENGINES: Mapping[str, Traits] = {it.framework: it for it in (LLAMA_CPP,)}


def traits_of(framework: str) -> Traits:
    """Return the facts about the framework of that name, or raise RegistryError."""
    known_traits = {**TRAITS, **ENGINES}
    if framework not in known_traits:
        known = ", ".join(known_traits)
        raise RegistryError(f"no framework is called {framework[:80]!r}; this version of dlbricks knows {known}")
    return known_traits[framework]


def usual_traits(form: Format) -> Traits:
    """Return the facts about the framework that runs models of a format unless another one is named."""
    return next(it for it in TRAITS.values() if it.format is form)


def runtime_title(name: str) -> str:
    """Return a runtime, or a framework, for people: `onnxruntime-1.32.0 threads-2` is `ONNX Runtime 1.32.0`.

    `name` is its name or identity. A name that the user has given stays as it is.
    """
    framework, _, version = name.partition(" ")[0].partition("-")
    known = {**TRAITS, **ENGINES}
    if framework in known:
        return f"{known[framework].title} {version}".rstrip()
    return next((it.title for it in known.values() if it.own_runtime == name), name)
