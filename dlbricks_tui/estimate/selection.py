"""The choice of measurements for an estimate: system, runtime and method."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, TypeVar

from dlbricks_tui.estimate.errors import EstimateError
from dlbricks_tui.estimate.system_estimate import Way
from dlbricks_tui.models.graph import Level
from dlbricks_tui.runtime.traits import MXNET, TRAITS, Format, Traits
from dlbricks_tui.store.records import Runtime, System
from dlbricks_tui.store.selections import Combination

_MOST_OFFERED = 3
Named = TypeVar("Named", System, Runtime)


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


def find_runtime(wanted: str, runtimes: Mapping[str, Runtime]) -> str:
    """Return the id of the runtime with this id or name, or a part of one."""
    return _find("runtime", wanted, runtimes, lambda runtime: (runtime.id, runtime.name))


def best_offer(offers: Iterable[Offer], system: str, runtime: str | None) -> Offer | None:
    """Return the way on a system (and runtime) that covers most of the model, of equal ones an own, then the newest."""

    def rank(offer: Offer) -> tuple[int, int, int, Way]:
        return (offer.sequences, offer.trust, offer.newest, offer.way)

    fitting = [offer for offer in offers if offer.way.system == system and runtime in (None, offer.way.runtime)]
    return max(fitting, key=rank, default=None)


def offers_for(offers: Iterable[Offer], traits: Traits, runtimes: Mapping[str, Runtime]) -> list[Offer]:
    """Return the offers of a framework's runtimes; runtimes unknown to the store are included."""
    found = ((offer, runtimes.get(offer.way.runtime)) for offer in offers)
    return [offer for offer, runtime in found if runtime is None or runtime.framework == traits.framework]


def format_of(runtime: Runtime | None) -> Format:
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
