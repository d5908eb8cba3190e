"""The what-ifs that a user wants to prove, and the runs that measure what they lack."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from dlbricks_tui.analysis.lacking import Host, Lack, expected_seconds, lacks_of, requests_for
from dlbricks_tui.analysis.what_if import WhatIf, WhatIfKind
from dlbricks_tui.answers.analysing import Analysis
from dlbricks_tui.errors import UserError
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.host import processor
from dlbricks_tui.host.fingerprint import fingerprint
from dlbricks_tui.host.host_files import HostFiles
from dlbricks_tui.models.graph import Numbers, Shape
from dlbricks_tui.runs.request import InputShape, InputValue, RunRequest
from dlbricks_tui.runtime.registry import Registry
from dlbricks_tui.wording.numbers import names_of

ALL = "all"


class ProvingError(UserError):
    """There is no what-if of that id, or its model was analysed on another system."""


@dataclass(frozen=True, slots=True)
class MeasuringPlan:
    """The executions that the what-ifs of a model lack, and about how long it takes to measure them."""

    model: str
    lacks: tuple[Lack, ...]
    requests: tuple[RunRequest, ...]
    seconds: float


def plan_of(
    found: Analysis,
    kinds: Collection[WhatIfKind],
    data: DataFolder,
    inputs: Mapping[str, Shape],
    values: Mapping[str, Numbers],
) -> MeasuringPlan:
    """Return what the what-ifs of a model lack on this host."""
    baseline = found.baseline
    measured = [it.execution for it in found.executions if it.is_measured]
    measured += [it.change for it in found.what_ifs if it.change is not None]
    host = Host(fingerprint().cores, processor.instruction_sets(HostFiles()), Registry(data.path).all())
    lacks = lacks_of(found.source, baseline.execution, measured, host, kinds)
    end_to_end, composed = baseline.found.end_to_end, baseline.estimate.composed
    latency_ms = end_to_end.value_ms if end_to_end is not None else composed.sequential_ms if composed else 0.0
    shapes = tuple(InputShape(name, shape) for name, shape in inputs.items())
    numbers = tuple(InputValue(name, value) for name, value in values.items())
    requests = tuple(replace(it, inputs=shapes, values=numbers) for it in requests_for(found.source, lacks))
    return MeasuringPlan(found.source.name, lacks, requests, sum(expected_seconds(it, latency_ms) for it in lacks))


def refuse_other_system(found: Sequence[Analysis]) -> None:
    """Raise ProvingError if a model was analysed on another system than this host."""
    here = fingerprint().id
    for each in found:
        if each.system != here:
            raise ProvingError(
                f"{each.source.name} was analysed on another system, and models run on this host: leave out --system"
            )


class Asked(NamedTuple):
    """The what-ifs of a model that are to be proved, and the ids that it does not have."""

    found: Analysis
    what_ifs: tuple[WhatIf, ...]
    unknown: tuple[str, ...]


def asked_what_ifs(found: Sequence[Analysis], ids: Collection[str], kinds: Collection[WhatIfKind]) -> tuple[Asked, ...]:
    """Return the what-ifs with these ids, or with `all` those that can be run; refuse an id that no model has."""
    asked = tuple([_asked(each, tuple(dict.fromkeys(ids)), kinds) for each in found])
    missing = set.intersection(*(set(each.unknown) for each in asked)) if asked else set()
    for each in (it for it in ids if it in missing):
        known = dict.fromkeys(it.id for one in found for it in one.what_ifs if it.kind in kinds)
        there = f"there are {', '.join(known)}" if known else "there are none: --measure measures what they lack"
        models = names_of(list(dict.fromkeys(it.source.name for it in found)))
        raise ProvingError(f"no what-if {each[:60]!r} of {models}; {there}")
    if not any(each.what_ifs for each in asked):
        raise ProvingError("there is no what-if to prove: --measure measures what they lack")
    return asked


def _asked(found: Analysis, ids: Sequence[str], kinds: Collection[WhatIfKind]) -> Asked:
    known = {it.id: it for it in found.what_ifs if it.kind in kinds}
    if ALL in ids:
        return Asked(found, tuple(it for it in known.values() if it.change is not None), ())
    return Asked(found, tuple(known[each] for each in ids if each in known), tuple(it for it in ids if it not in known))
