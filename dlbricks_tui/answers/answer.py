"""The answer to how fast a model is: one combination of runtime and variant, chosen by one rule for all doors.

The rule: the fastest combination that was measured completely answers. One that the user chose comes first instead.
Without a complete measurement the combination that covers most is predicted, or else the one that a run would measure.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from dlbricks_tui.answers.measured_runtimes import MeasuredRuntimes
from dlbricks_tui.bricks.decomposition import Decomposition
from dlbricks_tui.estimate.inquiry import Inquiry, of_usual_variant
from dlbricks_tui.estimate.selection import preferred_level
from dlbricks_tui.estimate.system_estimate import SystemEstimate
from dlbricks_tui.models.graph import Level
from dlbricks_tui.models.library import ModelSource
from dlbricks_tui.runtime.runtime import Runtime
from dlbricks_tui.runtime.traits import TRAITS, Format
from dlbricks_tui.runtime.variant import Precision


class ModelReading(NamedTuple):
    """A model as a runtime reads it: the format of the file, the runtime that fuses it, and the level.

    The runtime is None for the usual one of the format.
    """

    form: Format
    runtime: Runtime | None
    level: Level


@dataclass(frozen=True, slots=True)
class Choice:
    """The combinations from which the answer is chosen, and the one that a run would measure."""

    # Returns whether the results of a runtime count, by its identity.
    counts: Callable[[str], bool]
    # The format of the file, and the identity of the runtime, that a run would take; empty for any runtime.
    form: Format
    runtime: str = ""
    # True if the user chose the runtime or a part of the variant.
    is_made: bool = False
    # None: the results of each runtime decide.
    level: Level | None = None
    # None: that of the runtime.
    precision: Precision | None = None


@dataclass(frozen=True)
class Answer:
    """How fast a model is on a system: the estimate and the latency of the combination that answers."""

    # With the file that the runtime reads.
    source: ModelSource
    inquiry: Inquiry
    found: SystemEstimate
    reading: ModelReading
    # The identity of the runtime that a run would take; empty for any.
    wanted: str = ""
    # True if the user chose the combination, at least in part.
    is_chosen: bool = False
    # The fastest combination that was measured completely, if the chosen one is another.
    fastest: SystemEstimate | None = None

    @property
    def decomposition(self) -> Decomposition:
        """The bricks of the model as the runtime reads it."""
        return self.inquiry.decomposition


class Readings:
    """The readings of models by the runtimes that have measured them on one system."""

    def __init__(self, runtimes: MeasuredRuntimes, usual: Mapping[Format, Runtime]) -> None:
        """`usual` has the runtime by which models of each format are read if none is named."""
        self.runtimes = runtimes
        # Threads do not matter for reading.
        self.usual = usual
        self._loading = {form: runtimes.loading(runtime) for form, runtime in usual.items()}
        # The library has many models, and few runtimes have measured them.
        self._known: dict[tuple[str, Level | None], ModelReading] = {}

    def of(self, identity: str, level: Level | None) -> ModelReading:
        """Return the reading of a runtime by its identity."""
        if (identity, level) not in self._known:
            runtime = self.runtimes.of(identity)
            form, reads = runtime.traits.format, self.runtimes.loading(runtime)
            at = level or preferred_level(self.runtimes.levels(identity))
            self._known[identity, level] = ModelReading(form, None if reads == self._loading.get(form) else reads, at)
        return self._known[identity, level]

    def of_model(self, source: ModelSource, choice: Choice, *, guess: bool = False) -> dict[ModelReading, list[str]]:
        """Return the readings to look at for a model's answer, each with its runtimes; the first is the usual one.

        A runtime with results that name the model has its reading among them. The usual reading is there in any case,
        as other models may have measured the same bricks. To `guess` is to look into the model's other files, too, if
        no result names it, which may take a framework.
        """
        first = self._first(choice)
        found: dict[ModelReading, list[str]] = {first: []}
        named = self.runtimes.of_model(source.name)
        for identity in self.runtimes.measured:
            reading = self.of(identity, choice.level)
            is_other_file = guess and not named and reading.runtime is None and reading.form is not first.form
            fits = reading.form in source.formats and self.runtimes.is_plain(identity)
            if fits and (identity in named or is_other_file or reading == first):
                found.setdefault(reading, []).append(identity)
        return found

    def _first(self, choice: Choice) -> ModelReading:
        if choice.runtime in self.runtimes.measured:
            return self.of(choice.runtime, choice.level)
        measured = [it for it in self.runtimes.measured if self.of(it, None).form is choice.form and choice.counts(it)]
        levels = sorted({level for it in measured for level in self.runtimes.levels(it)})
        is_known = choice.runtime.partition("-")[0] in TRAITS
        runtime = self.of(choice.runtime, choice.level).runtime if is_known else None
        return ModelReading(choice.form, runtime, choice.level or preferred_level(levels))


def answer_of(
    source: ModelSource,
    system: str,
    choice: Choice,
    readings: Mapping[ModelReading, Sequence[str]],
    inquiries: Mapping[ModelReading, Inquiry],
) -> Answer:
    """Return the answer of a model, by the rule of this module.

    `inquiries` has the readings that worked, at least one. A reading without results is predicted.
    """
    reading_of = {identity: reading for reading in inquiries for identity in readings[reading]}
    measured = [
        one for identity, reading in reading_of.items() for one in inquiries[reading].by_runtime(system, identity)
    ]
    first, inquiry = next(iter(inquiries.items()))
    one = best_of((it for it in measured if choice.counts(it.way.runtime)), choice.runtime)
    if one is None:
        # Results of other models here predict better than those of other systems, and for their own variant.
        alike = [it for it in readings[first] if choice.counts(it)]
        runtime = "" if alike and choice.runtime not in alike else choice.runtime
        one = inquiry.empty(system, runtime, choice.counts, choice.precision)
    reading = reading_of.get(one.way.runtime, first) if one.way.protocol else first
    fastest = _fastest(it for it in measured if choice.is_made and of_usual_variant(it.way.runtime))
    return Answer(
        source.in_format(reading.form),
        inquiries[reading],
        one,
        reading,
        choice.runtime,
        choice.is_made,
        None if fastest is None or fastest.way.runtime == one.way.runtime else fastest,
    )


def best_of(found: Iterable[SystemEstimate], usual: str = "") -> SystemEstimate | None:
    """Return the fastest estimate that was measured completely, else the one with most measured layers.

    Of several with as many layers it is that of the usual runtime. None if nothing was measured.
    """
    known = list(found)
    partly = [it for it in known if it.is_measured]
    return _fastest(known) or max(
        partly, key=lambda it: (it.estimate.coverage.measured, it.way.runtime == usual), default=None
    )


def _fastest(found: Iterable[SystemEstimate]) -> SystemEstimate | None:
    """Return the estimate with the least latency of those that were measured completely."""
    timed = [(it.figure.latency.value_ms, it) for it in found if it.figure is not None and it.figure.is_measured]
    return min(timed, key=lambda pair: pair[0], default=(0.0, None))[1]


def with_threads(found: SystemEstimate, threads: int | None) -> SystemEstimate:
    """Return an estimate without results in a variant of so many threads; None keeps their number."""
    if threads is None or found.way.protocol:
        return found
    return replace(found, variant=replace(found.variant, threads=threads))
