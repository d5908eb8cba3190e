"""An estimate on a system and a runtime, beside the end-to-end latency, and the choice between several."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import NamedTuple, TypeVar

from dlbricks_tui.estimate.compositions import EstimateError
from dlbricks_tui.estimate.estimate import Estimate
from dlbricks_tui.estimate.knowledge import Latency
from dlbricks_tui.models.graph import Level
from dlbricks_tui.runtime.traits import MXNET, TRAITS, Format, Traits
from dlbricks_tui.runtime.variant import USUAL_VARIANT, Variant
from dlbricks_tui.store.change import Timing
from dlbricks_tui.store.records import RuntimeRecord, System
from dlbricks_tui.store.selections import Combination, Way

_MICROSECONDS = 1e6
# Half of the interval of a predicted latency that may be the best, as a share of it.
WIDEST_OF_THE_BEST = 0.2


class FigureBasis(str, Enum):
    """The origin of the latency that answers for a model.

    MEASURED: the whole model was timed.
    ESTIMATED: composed of measured bricks.
    PREDICTED: composed of bricks that were not all measured.
    """

    MEASURED = "measured"
    ESTIMATED = "estimated"
    PREDICTED = "predicted"


class Figure(NamedTuple):
    """The latency that answers for a model, its origin, and the times of its measurements."""

    latency: Latency
    basis: FigureBasis
    # The oldest and the newest, in seconds since 1970; None if nothing was measured.
    between: tuple[float, float] | None

    @property
    def is_measured(self) -> bool:
        """True if nothing in it is predicted."""
        return self.basis is not FigureBasis.PREDICTED

    @property
    def may_be_best(self) -> bool:
        """True if all layers were measured, or predicted with a narrow interval."""
        width_ms = self.latency.high_ms - self.latency.low_ms
        return self.is_measured or width_ms <= 2 * WIDEST_OF_THE_BEST * self.latency.value_ms


@dataclass(frozen=True)
class SystemEstimate:
    """The estimate of a model on a system, and its end-to-end latency."""

    way: Way
    estimate: Estimate
    end_to_end: Latency | None = None
    # The latency of the reference while the model was timed end to end, and its usual one there; 0 if not known.
    reference_ms: float = 0.0
    usual_reference_ms: float = 0.0
    # The time of the end-to-end measurement, in microseconds since 1970, and its samples; 0 if there is none.
    timed_when: int = 0
    timed_samples: int = 0
    # The name of the runtime; empty if the store does not have it.
    runtime_name: str = ""
    variant: Variant = USUAL_VARIANT
    # The usable cores of the system; None if it is not in the store.
    cores: int | None = None
    # The end-to-end latency over the runs of half a day, by which differences are tested; None elsewhere.
    timing: Timing | None = None

    @cached_property
    def figure(self) -> Figure | None:
        """The end-to-end latency, else the estimate of all layers; None for a sum that lacks layers."""
        if self.end_to_end is not None:
            moment = self.timed_when / _MICROSECONDS
            return Figure(self.end_to_end, FigureBasis.MEASURED, (moment, moment) if self.timed_when else None)
        latency = self.estimate.latency
        if latency is None:
            return None
        basis = FigureBasis.PREDICTED if self.estimate.coverage.predicted else FigureBasis.ESTIMATED
        return Figure(latency, basis, self.measured_between)

    @property
    def tested(self) -> Timing | None:
        """The figure as differences are tested; None for a sum that lacks layers, or takes no time."""
        if self.figure is None or not self.figure.latency.value_ms > 0:
            return None
        is_measured = self.figure.basis is FigureBasis.MEASURED
        return (self.timing if is_measured else None) or self.figure.latency.timing(end_to_end=is_measured)

    @property
    def is_measured(self) -> bool:
        """True if the model or any brick of it was measured."""
        return self.end_to_end is not None or any(part.measured is not None for part in self.estimate.parts)

    @property
    def per_second(self) -> float | None:
        """The images, sentences or rows that the model computes in a second, by the figure; None without one."""
        ms = None if self.figure is None else self.figure.latency.value_ms
        return self.variant.batch / ms * 1000 if ms else None

    @property
    def measured_between(self) -> tuple[float, float] | None:
        """The times of its oldest and its newest measurement, in seconds since 1970; None if nothing was measured."""
        moments = [it.measured.when for it in self.estimate.parts if it.measured is not None and it.measured.when]
        return (min(moments) / _MICROSECONDS, max(moments) / _MICROSECONDS) if moments else None

    @property
    def sequential_ms(self) -> float | None:
        """The estimate that is compared with the end-to-end latency."""
        return self.estimate.composed.sequential_ms if self.estimate.composed else None

    @property
    def ratio(self) -> float | None:
        """Estimate over end to end; 1 is perfect."""
        if self.sequential_ms is None or self.end_to_end is None or not self.end_to_end.value_ms:
            return None
        return self.sequential_ms / self.end_to_end.value_ms

    @property
    def error(self) -> float | None:
        """The estimate minus the end-to-end latency, as a share of the latter; None for a sum that lacks layers."""
        return None if self.ratio is None or self.estimate.is_partial else self.ratio - 1.0


_MOST_OFFERED = 3
Named = TypeVar("Named", System, RuntimeRecord)


class Offer(NamedTuple):
    """The number of a model's sequences that were measured in one way, and the rank and time of the first result."""

    way: Way
    sequences: int
    # The trust in the origin of the most trusted result.
    trust: int
    newest: int


def find_system(wanted: str, systems: Mapping[str, System]) -> str:
    """Return the id of the system with this id, name or instance type, or a part of one."""
    return _find("system", wanted, systems, lambda system: (system.id, system.name, system.instance_type))


def find_runtime(wanted: str, runtimes: Mapping[str, RuntimeRecord]) -> str:
    """Return the id of the runtime with this id or name, or a part of one."""
    return _find("runtime", wanted, runtimes, lambda runtime: (runtime.id, runtime.name))


def best_offer(offers: Iterable[Offer], system: str, runtime: str | None) -> Offer | None:
    """Return the way on a system (and runtime) that covers most of the model, of equal ones an own, then the newest."""

    def rank(offer: Offer) -> tuple[int, int, int, Way]:
        return (offer.sequences, offer.trust, offer.newest, offer.way)

    fitting = [offer for offer in offers if offer.way.system == system and runtime in (None, offer.way.runtime)]
    return max(fitting, key=rank, default=None)


def offers_for(offers: Iterable[Offer], traits: Traits, runtimes: Mapping[str, RuntimeRecord]) -> list[Offer]:
    """Return the offers of a framework's runtimes; runtimes unknown to the store are included."""
    found = ((offer, runtimes.get(offer.way.runtime)) for offer in offers)
    return [offer for offer, runtime in found if runtime is None or runtime.framework == traits.framework]


def format_of(runtime: RuntimeRecord | None) -> Format:
    """Return the format of the models that a runtime of the store runs; unknown runtimes count as MXNet's."""
    traits = None if runtime is None else TRAITS.get(runtime.framework)
    return MXNET.format if traits is None else traits.format


def preferred_level(levels: Sequence[Level]) -> Level:
    """Return the level to estimate at: `fused`, unless a system has results at `written` only."""
    return Level.WRITTEN if levels and Level.FUSED not in levels else Level.FUSED


def what_is_there(combinations: Iterable[Combination], system: str, runtime: str | None) -> str:
    """Return a sentence about the results in the store, to show when the requested ones are missing; nearest first."""
    nearest = sorted(combinations, key=lambda it: (it.system != system, it.runtime != runtime, -it.pairs))
    told = [
        f"{it.pairs} brick{'' if it.pairs == 1 else 's'} at level {it.level.value} on {it.system} by {it.runtime}"
        for it in nearest[:_MOST_OFFERED]
    ]
    others = len(nearest) - len(told)
    more = f", and {others} other set{'' if others == 1 else 's'}" if others else ""
    return f"the store has {', '.join(told)}{more}" if told else "the store has no results yet"


def _find(what: str, wanted: str, known: Mapping[str, Named], names_of: Callable[[Named], Sequence[str]]) -> str:
    asked = wanted.casefold()
    named = {identity: [name.casefold() for name in names_of(each) if name] for identity, each in known.items()}
    # Ids first: the published system c5.xlarge must stay selectable beside hosts of that instance type.
    by_id = [identity for identity in known if asked == identity.casefold()]
    exact = [identity for identity, names in named.items() if asked in names]
    partly = [identity for identity, names in named.items() if any(asked in name for name in names)]
    found = by_id or exact or partly
    if len(found) == 1:
        return found[0]
    problem = f"{len(found)} {what}s are called" if found else f"no {what} in the store is called"
    if not known:
        raise EstimateError(f"{problem} {wanted[:80]!r}, as nothing was measured or imported yet")
    raise EstimateError(f"{problem} {wanted[:80]!r}; give one of: {', '.join(found or known)}")
