"""The settings of a trace, as the rows of the box that asks for them."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

from dlbricks_tui.answers.traces.tracing import MOST_INFERENCES
from dlbricks_tui.runtime.runtime import MOST_THREADS
from dlbricks_tui.runtime.variant import MOST_IN_A_BATCH
from dlbricks_tui.traces.messages import USUAL_INFERENCES
from dlbricks_tui.traces.trace import TraceLevel
from dlbricks_tui.tui.choices import BATCH_SIZES, next_of, with_own

_CORES = os.cpu_count() or 1
_INFERENCES = (1, 3, 10, 30, 100)
# Each level with all below it.
_LEVELS = tuple(tuple(TraceLevel)[:count] for count in range(len(TraceLevel), 0, -1))


@dataclass(frozen=True, slots=True)
class TraceSettings:
    """The settings of a trace; None is the usual value."""

    # The names of the runtimes to choose from.
    runtimes: tuple[str, ...]
    runtime: str
    threads: int | None = None
    batch: int | None = None
    levels: tuple[TraceLevel, ...] = tuple(TraceLevel)
    inferences: int = USUAL_INFERENCES

    def with_value(self, name: str, value: Any) -> TraceSettings:
        """Return the settings with another value of one of them."""
        return replace(self, **{name: value})


class TraceSetting(Enum):
    """A setting by the name of its row: its field, its meaning, its value as text, its values, and its largest number.

    Only a setting with a largest number can be written.
    """

    RUNTIME = (
        "runtime",
        "runtime",
        "that runs the model",
        lambda it: it.runtime,
        lambda it: it.runtimes,
        None,
    )
    THREADS = (
        "threads",
        "threads",
        "of the framework",
        lambda it: "default" if it.threads is None else f"{it.threads}",
        lambda it: (None, *with_own(range(1, _CORES + 1), it.threads)),
        MOST_THREADS,
    )
    BATCH = (
        "batch size",
        "batch",
        "images or sentences in an inference",
        lambda it: "of the file" if it.batch is None else f"{it.batch}",
        lambda it: (None, *with_own(BATCH_SIZES, it.batch)),
        MOST_IN_A_BATCH,
    )
    LEVELS = (
        "levels",
        "levels",
        "the last one, with all below it",
        lambda it: it.levels[-1].value,
        lambda _: _LEVELS,
        None,
    )
    INFERENCES = (
        "inferences",
        "inferences",
        "of each level",
        lambda it: f"{it.inferences}",
        lambda it: with_own(_INFERENCES, it.inferences),
        MOST_INFERENCES,
    )

    def __init__(
        self,
        label: str,
        field: str,
        meaning: str,
        shown: Callable[[TraceSettings], str],
        values: Callable[[TraceSettings], Sequence[Any]],
        most: int | None,
    ) -> None:
        self.label = label
        self.field = field
        self.meaning = meaning
        self.shown = shown
        self._values = values
        self.most = most

    def stepped(self, settings: TraceSettings, step: int) -> TraceSettings:
        """Return the settings with the next value of this one, or the previous one for `step` -1."""
        value = next_of(tuple(self._values(settings)), getattr(settings, self.field), step)
        return settings.with_value(self.field, value)

    def with_number(self, settings: TraceSettings, number: int | None) -> TraceSettings:
        """Return the settings with a written number; without one, with the usual value."""
        usual = USUAL_INFERENCES if self is TraceSetting.INFERENCES else None
        return settings.with_value(self.field, usual if number is None else number)
