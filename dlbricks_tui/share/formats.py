"""Which models suites are made of, and who can run them."""

from collections.abc import Iterable

from dlbricks_tui.models.library import ModelSource
from dlbricks_tui.runtime.runtime import Runtime
from dlbricks_tui.runtime.traits import Format
from dlbricks_tui.share.errors import ShareError

# What a suite holds layers of.
CARRIED = Format.MXNET


def refuse_other_formats(sources: Iterable[ModelSource]) -> None:
    """Objects to models that no suite can hold."""
    for source in sources:
        if source.format is not CARRIED:
            raise ShareError(
                f"{source.name} is an {source.format.value} model, and a suite holds layers of {CARRIED.value} only"
            )


def refuse_other_runtimes(runtime: Runtime) -> None:
    """Objects to a runtime that can run no suite."""
    form = runtime.traits.format
    if form is not CARRIED:
        raise ShareError(
            f"runtime {runtime.name} runs {form.value} models, and a suite holds layers of {CARRIED.value}; "
            "name another --runtime, or none"
        )
