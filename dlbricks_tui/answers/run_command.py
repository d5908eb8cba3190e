"""The command that measures a model in one execution, as messages show it."""

import shlex

from dlbricks_tui.answers.opening import CutOptions
from dlbricks_tui.models.graph import Level
from dlbricks_tui.models.input_shapes import spelled
from dlbricks_tui.models.library import ModelSource
from dlbricks_tui.runtime.runtime import Runtime
from dlbricks_tui.runtime.variant import CHOSEN_PRECISIONS, InstructionSet, Optimisation, Precision


def reference_to(source: ModelSource, *, has_name: bool) -> str:
    """Return a model as commands name it: by its number in Table 1, its name if they know it, or its path."""
    if source.table1_id:
        return f"table1:{source.table1_id}"
    return source.name if has_name else str(source.path)


def run_command(named: str, runtime: Runtime, level: Level, batch: int | None, options: CutOptions, *more: str) -> str:
    """Return the `dlbricks run` for a model of that name, cut and with inputs as the options say, and more words."""
    settings, kernels, usual = runtime.settings, runtime.kernels, options.usual_cutting
    is_chosen = settings.precision in CHOSEN_PRECISIONS and settings.precision is not Precision.F32
    given = {
        "--runtime": runtime.name,
        "--threads": None if settings.threads is None else str(settings.threads),
        "--batch": None if batch is None else str(batch),
        "--precision": settings.precision.value if is_chosen else None,
        "--instructions": None if kernels.instructions is InstructionSet.ALL else kernels.instructions.value,
        "--optimisation": None if kernels.optimisation is Optimisation.ALL else kernels.optimisation.value,
        "--level": None if level is Level.FUSED else level.value,
        "--granularity": None if options.granularity == usual.granularity else str(options.granularity),
        "--cut": None if options.cut is usual.cut else options.cut.value,
        "--order": None if options.order is usual.order else options.order.value,
    }
    words = [word for option, value in given.items() if value is not None for word in (option, value)]
    for option, numbers in (("--input", options.inputs), ("--value", options.values)):
        words += [word for name, value in numbers.items() for word in (option, spelled({name: value}))]
    return shlex.join(["dlbricks", "run", named, *words, *more])
