"""The command that measures a model in one execution, as messages show it."""

import shlex

from dlbricks_tui.answers.opening import CutOptions
from dlbricks_tui.models.graph import Level
from dlbricks_tui.models.input_shapes import spelled
from dlbricks_tui.models.library import ModelSource
from dlbricks_tui.runtime.runtime import Runtime
from dlbricks_tui.wording.doubts import options_of


def reference_to(source: ModelSource, *, has_name: bool) -> str:
    """Return a model as commands name it: by its number in Table 1, its name if they know it, or its path."""
    if source.table1_id:
        return f"table1:{source.table1_id}"
    return source.name if has_name else str(source.path)


def run_command(named: str, runtime: Runtime, level: Level, batch: int | None, options: CutOptions, *more: str) -> str:
    """Return the `dlbricks run` for a model of that name, cut and with inputs as the options say, and more words."""
    settings, kernels = runtime.settings, runtime.kernels
    chosen = (runtime.name, settings.threads, batch, settings.precision, kernels, level)
    words = options_of(*chosen, options.cutting, options.usual_cutting)
    for option, numbers in (("--input", options.inputs), ("--value", options.values)):
        words += [word for name, value in numbers.items() for word in (option, spelled({name: value}))]
    return shlex.join(["dlbricks", "run", named, *words, *more])
