"""The rows of the settings of a run: their meanings, and the values that they offer."""

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from enum import Enum

from dlbricks_tui.answers.measuring import MOST_MODELS_END_TO_END
from dlbricks_tui.bricks.cutting import Cut
from dlbricks_tui.host import processor
from dlbricks_tui.host.host_files import HostFiles
from dlbricks_tui.measure.method import Method
from dlbricks_tui.models.graph import Level
from dlbricks_tui.runtime.runtime import MOST_THREADS
from dlbricks_tui.runtime.variant import (
    CHOSEN_PRECISIONS,
    MOST_IN_A_BATCH,
    InstructionSet,
    Optimisation,
    Precision,
)
from dlbricks_tui.tui.choices import BATCH_SIZES, Choices, next_of, with_own
from dlbricks_tui.tui.run.settings import RunSettings
from dlbricks_tui.wording.numbers import duration, percent

TARGETS = (0.005, 0.01, 0.02, 0.05)
# Each alone, and the usual one beside each of the others.
PRECISIONS = (
    *((each,) for each in CHOSEN_PRECISIONS),
    *((Precision.F32, each) for each in CHOSEN_PRECISIONS if each is not Precision.F32),
)
# No limit, each level, and all of them together.
OPTIMISATIONS = ((), *((each,) for each in Optimisation if each is not Optimisation.ALL), tuple(Optimisation))
_CORES = os.cpu_count() or 1
# Enough for a curve of the throughput.
SEVERAL_BATCHES = BATCH_SIZES[:4]
PROBES_SECONDS = (20.0, 60.0)
BUDGETS_SECONDS = (60.0, 300.0, 900.0, 1800.0, 3600.0, 7200.0, 14400.0)


class RunSetting(Enum):
    """A setting by the name of its row: its meaning, its value as text, and a step to its next or previous value."""

    RUNTIME = (
        "runtime",
        "the runtime that runs the bricks",
        lambda it: ",".join(it.chosen),
        lambda it, step: it.stepped("chosen", _each_and_all(it.runtimes), step),
    )
    THREADS = (
        "threads",
        "the threads of the framework",
        lambda it: _listed(it.threads) or "default",
        lambda it, step: it.stepped("threads", _threads(it.threads), step),
        ("threads", MOST_THREADS),
    )
    BATCH = (
        "batch size",
        "images or sentences in an inference",
        lambda it: _listed(it.batch_sizes) or "of the file",
        lambda it, step: it.stepped("batch_sizes", _batches(it.batch_sizes), step),
        ("batch_sizes", MOST_IN_A_BATCH),
    )
    BUDGET = (
        "time budget",
        "stop after this time",
        lambda it: "none" if it.budget_seconds is None else duration(it.budget_seconds),
        lambda it, step: it.stepped("budget_seconds", (None, *with_own(BUDGETS_SECONDS, it.budget_seconds)), step),
    )
    LEVEL = (
        "level",
        "fused layers, or those of the file",
        lambda it: it.choices.level.value,
        lambda it, step: it.with_choices(level=next_of(tuple(Level), it.choices.level, step)),
    )
    GRANULARITY = (
        "granularity",
        "the most layers of a brick",
        lambda it: f"{it.choices.granularity}",
        lambda it, step: replace(it, choices=it.choices.with_granularity(it.choices.granularity + step)),
    )
    CUT = (
        "cut",
        "windows of layers that are bricks",
        lambda it: it.choices.cut.value,
        lambda it, step: it.with_choices(cut=next_of(tuple(Cut), it.choices.cut, step)),
    )
    METHOD = (
        "method",
        "bricks inside of networks, or alone",
        lambda it: "usual" if it.method is None else it.method.value,
        lambda it, step: it.stepped("method", (None, *Method), step),
    )
    END_TO_END = (
        "end to end",
        "whole models too, as a check",
        lambda it: "yes" if it.end_to_end else "no",
        lambda it, _: replace(it, end_to_end=not it.end_to_end),
    )
    TARGET = (
        "target interval",
        "interval at which a brick is done",
        lambda it: f"±{percent(it.target, 1)}",
        lambda it, step: it.stepped("target", with_own(TARGETS, it.target), step),
    )
    PROBE = (
        "probe",
        "few bricks; the others are predicted",
        lambda it: "no" if it.probe_seconds is None else duration(it.probe_seconds),
        lambda it, step: it.stepped("probe_seconds", (None, *PROBES_SECONDS), step),
    )
    PRECISION = (
        "precision",
        "int8 quantises a copy of the model",
        lambda it: ",".join(each.value for each in it.precisions),
        lambda it, step: it.stepped("precisions", PRECISIONS, step),
    )
    INSTRUCTIONS = (
        "instructions",
        "widest vectors of MXNet, OpenVINO",
        lambda it: _listed_values(it.instructions),
        lambda it, step: it.stepped("instructions", _instruction_sets(), step),
    )
    OPTIMISATION = (
        "optimisation",
        "of graphs in ONNX Runtime",
        lambda it: _listed_values(it.optimisations),
        lambda it, step: it.stepped("optimisations", OPTIMISATIONS, step),
    )
    KNOWN = (
        "known before",
        "bricks that were measured before",
        lambda it: "run again" if it.again else "leave out",
        lambda it, _: replace(it, again=not it.again),
    )
    RETRY = (
        "failed before",
        "bricks that failed in an earlier run",
        lambda it: "try again" if it.retry_failed else "leave out",
        lambda it, _: replace(it, retry_failed=not it.retry_failed),
    )

    def __init__(
        self,
        label: str,
        meaning: str,
        shown: Callable[[RunSettings], str],
        changed: Callable[[RunSettings, int], RunSettings],
        numbers: tuple[str, int] | None = None,
    ) -> None:
        self.label = label
        self.meaning = meaning
        self.shown = shown
        self.changed = changed
        # The field of a setting that takes several numbers, and the largest of them.
        self.numbers = numbers


# A newcomer understands these; the others are expert settings.
BASIC_SETTINGS = (RunSetting.RUNTIME, RunSetting.THREADS, RunSetting.BATCH, RunSetting.BUDGET)


def shown_settings(settings: RunSettings, models: int, *, expert: bool) -> tuple[RunSetting, ...]:
    """Return the settings to show: all of them to an expert, else the basic ones and those that are not as usual."""
    usual = RunSettings(Choices(), settings.chosen, settings.runtimes, end_to_end=models <= MOST_MODELS_END_TO_END)
    return tuple(it for it in RunSetting if expert or it in BASIC_SETTINGS or it.shown(settings) != it.shown(usual))


def in_several_variants(settings: RunSettings) -> RunSettings:
    """Return the settings of a run that compares runtimes and batch sizes: the chosen ones, or else many."""
    has_runtimes = len(settings.chosen) > 1 or settings.choices.runtime is not None
    chosen = settings.chosen if has_runtimes else settings.runtimes
    return replace(settings, chosen=chosen, batch_sizes=settings.batch_sizes or SEVERAL_BATCHES)


def _listed_values(limits: Sequence[InstructionSet | Optimisation]) -> str:
    return ",".join(each.value for each in limits) or InstructionSet.ALL.value


def _instruction_sets() -> tuple[tuple[InstructionSet, ...], ...]:
    """Return no limit, each set of this processor, and the widths of its vectors together."""
    found = [it for it in processor.instruction_sets(HostFiles()) if it is not InstructionSet.ALL]
    widths = tuple([it for it in (InstructionSet.AVX2, InstructionSet.AVX512_CORE) if it in found])
    together = ((*widths, InstructionSet.ALL),) if widths else ()
    return ((), *((each,) for each in found), *together)


def _listed(numbers: Sequence[int]) -> str:
    return ",".join(map(str, numbers))


def _each_and_all(names: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    every = tuple((name,) for name in names)
    return (*every, tuple(names)) if len(names) > 1 else every


def _threads(own: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    """Return the default, each number of threads up to the cores, and powers of two together, with the user's own."""
    doubled = tuple(2**power for power in range(_CORES.bit_length()))
    return _offered(range(1, _CORES + 1), (doubled,) if len(doubled) > 1 else (), own)


def _batches(own: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    """Return the batch size of the file, single ones, and several together, with the user's own."""
    return _offered(BATCH_SIZES, (SEVERAL_BATCHES, BATCH_SIZES), own)


def _offered(
    single: Iterable[int], together: tuple[tuple[int, ...], ...], own: tuple[int, ...]
) -> tuple[tuple[int, ...], ...]:
    numbers = with_own(single, own[0] if len(own) == 1 else None)
    lists = (*together, own) if len(own) > 1 and own not in together else together
    return ((), *((number,) for number in numbers), *lists)
