"""The what-ifs that a user wants to prove, and the runs that measure what they lack."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

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


def asked_what_ifs(found: Analysis, ids: Collection[str], kinds: Collection[WhatIfKind]) -> tuple[WhatIf, ...]:
    """Return the what-ifs of a model with these ids, or with `all` those that can be run."""
    known = {it.id: it for it in found.what_ifs if it.kind in kinds}
    if ALL in ids:
        return tuple(it for it in known.values() if it.change is not None)
    for each in ids:
        if each not in known:
            there = f"there are {', '.join(known)}" if known else "there are none: --measure measures what they lack"
            raise ProvingError(f"{found.source.name} has no what-if {each[:60]!r}; {there}")
    return tuple(known[each] for each in dict.fromkeys(ids))
