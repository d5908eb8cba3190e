"""The settings of a variant: the runtime, and how it runs a model."""

from dataclasses import replace

from dlbricks_tui.recorded_host import processors_here
from dlbricks_tui.runtime.runtime import MOST_THREADS
from dlbricks_tui.runtime.traits import runtime_title
from dlbricks_tui.runtime.variant import (
    CHOSEN_PRECISIONS,
    MOST_IN_A_BATCH,
    InstructionSet,
    Optimisation,
    Precision,
)
from dlbricks_tui.settings.setting import Setting, name, one_of, whole

# The batch sizes to choose from, and those of the matrix of variants.
BATCH_SIZES = (1, 2, 4, 8, 16, 32)
_CORES = min(processors_here().to_use, MOST_THREADS)
THREADS_DOUBLED = tuple(2**power for power in range(_CORES.bit_length()))

RUNTIME = Setting(
    name="runtime",
    kind=name("the name of a runtime that `dlbricks runtimes` lists", "R"),
    about="a runtime that `dlbricks runtimes` lists, or a framework",
    meaning="that runs the model",
    config="run.runtime",
)


def runtime_in_words(named: str | tuple[str, ...]) -> str:
    """Return the title of a runtime by its name, or those of several."""
    return ", ".join(map(runtime_title, (named,) if isinstance(named, str) else named))


THREADS = Setting(
    name="threads",
    kind=whole(1, MOST_THREADS, *range(1, _CORES + 1)),
    about="the number of threads of the runtime",
    meaning="of the runtime",
    config="run.threads",
    several_offered=(THREADS_DOUBLED,) if len(THREADS_DOUBLED) > 1 else (),
)
BATCH = Setting(
    name="batch",
    kind=whole(1, MOST_IN_A_BATCH, *BATCH_SIZES),
    about="images, sentences or rows in an inference",
    meaning="images or sentences in an inference",
    usual="that of the file, 1 where it is open",
    several_offered=(BATCH_SIZES[:4], BATCH_SIZES),
)
PRECISION = Setting(
    name="precision",
    kind=one_of(*CHOSEN_PRECISIONS),
    about="the numbers that the runtime computes with: f32, bf16, or int8 for a quantised copy of the model",
    meaning="int8 quantises a copy of the model",
    usual="f32; models that are quantised already run as they are",
    several_offered=tuple((Precision.F32, it) for it in CHOSEN_PRECISIONS if it is not Precision.F32),
)
INSTRUCTIONS = Setting(
    name="instructions",
    kind=one_of(*InstructionSet),
    about="the widest vector instructions for the kernels of MXNet or OpenVINO, such as avx2",
    meaning="widest vectors of MXNet, OpenVINO",
    usual="all",
)
OPTIMISATION = Setting(
    name="optimisation",
    # `all` is the usual one.
    kind=replace(one_of(*Optimisation), offered=(Optimisation.EXTENDED, Optimisation.BASIC, Optimisation.NONE)),
    about="the level up to which ONNX Runtime optimises graphs: all, extended (without NCHWc), basic or none",
    meaning="of graphs in ONNX Runtime",
    usual="all",
    several_offered=(tuple(Optimisation),),
)
KERNELS = (INSTRUCTIONS, OPTIMISATION)
# How a runtime runs a model, beside its threads.
EXECUTION = (BATCH, PRECISION, *KERNELS)
VARIANT = (RUNTIME, THREADS, *EXECUTION)
# What a runtime does unless it is told otherwise.
USUAL_EXECUTION = {PRECISION: Precision.F32, INSTRUCTIONS: InstructionSet.ALL, OPTIMISATION: Optimisation.ALL}
SYSTEM = Setting(
    name="system",
    kind=name("the id, name or instance type of a system", "S"),
    about="a system of the store by its id, name or instance type",
    meaning="whose measurements count",
    usual="this host",
)
