"""Fleet runs as plain values: the results of the Python API, and the JSON documents of `dlbricks fleet`."""

from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Any, TypeVar

from dlbricks_tui.fleet.request import FleetProgress
from dlbricks_tui.fleet.setting_up.doctor import Examination, FindingVerdict, Readiness
from dlbricks_tui.jobs.folder import JobState, State

Copied = TypeVar("Copied")


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetHost:
    """A host of a fleet run: `bricks` have a result in the local store, of `of` that are wanted from it."""

    host: str
    system: str
    system_name: str
    state: str
    # The reason for the state.
    message: str
    bricks: int
    of: int
    failed: int
    disturbed_rounds: int
    disturbed_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetEstimate:
    """The estimate of a model on a host. Latencies are None while too little is known."""

    host: str
    system: str
    sequential_ms: float | None
    low_ms: float | None
    high_ms: float | None
    measured_layers: int
    predicted_layers: int
    missing_layers: int
    per_second: float | None
    dollars_per_million: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetModel:
    """A model by one runtime on all hosts. `order` has the hosts, the fastest first; equally fast ones are together."""

    model: str
    runtime: str
    order: tuple[tuple[str, ...], ...]
    # True if the order is right with 95 % confidence.
    settled: bool
    estimates: tuple[FleetEstimate, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOutModel:
    """A model that no host can measure."""

    model: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetResult:
    """A fleet run: its hosts, and the estimates of its models on them."""

    fleet: str
    state: State
    # The reason for an early end.
    message: str
    question: str
    started: str
    seconds: float
    hosts: tuple[FleetHost, ...]
    models: tuple[FleetModel, ...]
    left_out: tuple[LeftOutModel, ...]

    @property
    def has_failures(self) -> bool:
        """True if not every host has measured everything that was asked of it."""
        lacking = any(it.failed or it.state not in ("done", "cancelled") for it in self.hosts)
        return bool(lacking or self.left_out or self.state is State.FAILED)


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetSummary:
    """A fleet run of the data folder; `pid` is the process that drives it."""

    fleet: str
    state: State
    message: str
    models: tuple[str, ...]
    bricks: int
    measured: int
    known: int
    failed: int
    started: str
    seconds: float
    pid: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class HostFact:
    """One line of the doctor about a host."""

    subject: str
    state: str
    verdict: FindingVerdict
    cure: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ExaminedHost:
    """A host as the doctor found it."""

    host: str
    system: str
    system_name: str
    state: Readiness
    # None if its store cannot be read yet.
    bricks: int | None
    installed: str
    findings: tuple[HostFact, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetExamination:
    """What the doctor of a fleet found out."""

    hosts: tuple[ExaminedHost, ...]


def fleet_result(state: JobState, progress: FleetProgress) -> FleetResult:
    """Return a fleet run by its state and its events."""
    groups: dict[tuple[str, str], list[FleetEstimate]] = {}
    for (model, runtime, host), it in progress.estimates.items():
        row = progress.hosts.get(host)
        estimate = _copied(FleetEstimate, it, system=row.system if row else "")
        groups.setdefault((model, runtime), []).append(estimate)
    orders = progress.orders
    return FleetResult(
        fleet=state.run,
        state=state.state,
        message=state.message,
        question=progress.started.question if progress.started else "",
        started=state.started,
        seconds=state.seconds,
        hosts=tuple(_copied(FleetHost, it, host=it.name, state=it.state.value) for it in progress.hosts.values()),
        models=tuple(
            FleetModel(
                model=model,
                runtime=runtime,
                order=orders[model, runtime].order if (model, runtime) in orders else (),
                settled=(model, runtime) in orders and orders[model, runtime].settled,
                estimates=tuple(sorted(found, key=lambda it: (it.sequential_ms is None, it.sequential_ms or 0.0))),
            )
            for (model, runtime), found in groups.items()
        ),
        left_out=tuple(_copied(LeftOutModel, it) for it in progress.left_out),
    )


def fleet_summary(state: JobState) -> FleetSummary:
    """Return a fleet run of the data folder by its state."""
    return FleetSummary(
        fleet=state.run,
        state=state.state,
        message=state.message,
        models=state.models,
        bricks=state.bricks.total,
        measured=state.bricks.measured,
        known=state.bricks.reused,
        failed=state.bricks.failed,
        started=state.started,
        seconds=state.seconds,
        pid=state.process.pid if state.active else None,
    )


def fleet_examination(found: Iterable[Examination]) -> FleetExamination:
    """Return what the doctor found out."""
    return FleetExamination(
        hosts=tuple(
            _copied(ExaminedHost, it, findings=tuple(_copied(HostFact, each) for each in it.findings)) for it in found
        )
    )


def _copied(kind: type[Copied], source: object, **others: Any) -> Copied:
    """Return a result whose fields have the values that a source has under their names, except for some others."""
    same = {it.name: getattr(source, it.name) for it in fields(kind) if it.name not in others}  # type: ignore[arg-type]
    return kind(**same, **others)
