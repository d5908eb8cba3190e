"""Fleet runs: their options, the request that follows from them, and their results as plain values."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path

from dlbricks_tui.api.documents import taken
from dlbricks_tui.api.language_answers import LanguageOptions, questions
from dlbricks_tui.api.measuring import MeasureOptions, request_by, run_request
from dlbricks_tui.fleet.doctor import Examination, FindingVerdict, Readiness
from dlbricks_tui.fleet.folder import FleetFolder, FleetFolders, create_fleet, read_fleet_request
from dlbricks_tui.fleet.request import (
    EVENTS,
    FleetError,
    FleetHostState,
    FleetProgress,
    FleetRequest,
    HostChanged,
    HostEntry,
)
from dlbricks_tui.fleet.scheduler import SECURE, Certificates, check_address
from dlbricks_tui.folders import DATA_FOLDER_VARIABLE, DataFolder
from dlbricks_tui.jobs.events import Event, EventReader
from dlbricks_tui.jobs.folder import JobState, State, StoredJobs
from dlbricks_tui.language.opening import open_language_model
from dlbricks_tui.language.orders import LanguageQuestion, is_llama_cpp
from dlbricks_tui.models.library import ModelSource
from dlbricks_tui.runtime.registry import Registry
from dlbricks_tui.runtime.variant import several
from dlbricks_tui.settings.measuring import PROBE, TARGET_INTERVAL, TIME_BUDGET, Question
from dlbricks_tui.settings.setting import fields_of, require_allowed
from dlbricks_tui.settings.variant import RUNTIME, THREADS

_EXTRA = "pip install 'dlbricks-tui[fleet]'"
_NEEDED = ("distributed", "asyncssh", "cryptography")


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetOptions:
    """Options of a fleet run: its hosts, by a hosts file or a dask scheduler, the question, and what to measure."""

    hosts: Path | None = None
    scheduler: str = ""
    question: Question = Question.EVERYTHING
    probe_seconds: float = 20.0
    # True: use a scheduler without TLS that other machines can reach.
    allow_plain: bool = False
    measuring: MeasureOptions = field(default_factory=MeasureOptions)
    # Language models by their names, and what they are asked to do; runtimes and threads are those of all models.
    language_models: tuple[str, ...] = ()
    language: LanguageOptions = field(default_factory=LanguageOptions)

    def __post_init__(self) -> None:
        require_allowed(self, (), FleetError)


def fleet_request(options: FleetOptions, sources: Sequence[ModelSource], data: DataFolder) -> FleetRequest:
    """Return the request of a fleet run.

    Raise FleetError for options that do not fit together, a scheduler that cannot be used, or hosts that SSH refuses.
    """
    require_extra()
    if (options.hosts is None) is not bool(options.scheduler):
        raise FleetError("name either a hosts file (--hosts FILE) or a dask scheduler (--scheduler ADDRESS)")
    PROBE.require(options.probe_seconds, FleetError)
    if options.scheduler:
        place = check_address(options.scheduler, options.allow_plain)
        if place.scheme == SECURE and not Certificates(data.certificates).authority.exists():
            raise FleetError(
                f"{options.scheduler[:80]} asks for certificates, and {data.certificates} has none: copy those that "
                "the scheduler was started with, or make some by `dlbricks fleet init` and start it with them"
            )
    # Only layers travel: no host can time a whole model.
    measuring = replace(options.measuring, end_to_end=False)
    language = _language_questions(options, data)
    # Language models alone need the settings of a run, too.
    alone = language[0].runtime if language and not sources else None
    run = request_by([alone], measuring, ()) if alone else run_request(measuring, sources, data)
    as_registered = Registry(data.path).as_registered
    if not several(measuring.threads):
        language = tuple(replace(it, runtime=as_registered(it.runtime)) for it in language)
    hosts = () if options.hosts is None else _hosts(options.hosts)
    return FleetRequest(
        # Unless they are given, each host starts its usual number of threads.
        run=run if several(measuring.threads) else run.with_runtimes(as_registered),
        hosts=hosts,
        scheduler=options.scheduler,
        question=options.question,
        probe_seconds=options.probe_seconds,
        allow_plain=options.allow_plain,
        language=language,
    )


def _language_questions(options: FleetOptions, data: DataFolder) -> tuple[LanguageQuestion, ...]:
    if not options.language_models:
        return ()
    models = tuple(dict.fromkeys(map(open_language_model, options.language_models)))
    for model in models:
        options.language.require_context(model.name, model.architecture.positions)
    runtimes, threads = several(options.measuring.runtime), several(options.measuring.threads)
    found = questions(models, replace(options.language, runtimes=runtimes, threads=threads), data)
    if refused := next((it.runtime for it in found if is_llama_cpp(it.runtime)), None):
        raise FleetError(
            f"hosts of a fleet measure layers, of which {refused.traits.title} tells no times: choose another runtime, "
            "or run `dlbricks llm` on each host"
        )
    return found


def require_extra() -> None:
    """Raise FleetError if the packages of fleets are not installed."""
    lacking = [name for name in _NEEDED if find_spec(name) is None]
    if lacking:
        raise FleetError(f"fleets need {', '.join(lacking)}: {_EXTRA}")


def _hosts(path: Path) -> tuple[HostEntry, ...]:
    # Loaded here: other users of this module need neither a reader of TOML files nor SSH.
    from dlbricks_tui.fleet.hosts_file import read_hosts
    from dlbricks_tui.fleet.ssh import check_hosts

    hosts = read_hosts(path)
    check_hosts(hosts)
    return hosts


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
    # Of language models, whose other figures are those of a generated token: the delay of the first one.
    first_token_ms: float | None = None
    # Of language models: whether the host has enough memory.
    fits: bool | None = None

    @property
    def is_of_tokens(self) -> bool:
        """True of a language model."""
        return self.fits is not None


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
    def usual_models(self) -> tuple[FleetModel, ...]:
        """All but language models."""
        return tuple(it for it in self.models if not it.estimates[0].is_of_tokens)

    @property
    def language_models(self) -> tuple[FleetModel, ...]:
        return tuple(it for it in self.models if it.estimates[0].is_of_tokens)

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
    """The findings of a fleet's doctor, host by host."""

    hosts: tuple[ExaminedHost, ...]


def fleet_result(state: JobState, progress: FleetProgress) -> FleetResult:
    """Return a fleet run by its state and its events."""
    groups: dict[tuple[str, str], list[FleetEstimate]] = {}
    for (model, runtime, host), it in progress.estimates.items():
        row = progress.hosts.get(host)
        estimate = taken(FleetEstimate, it, system=row.system if row else "")
        groups.setdefault((model, runtime), []).append(estimate)
    orders = progress.orders
    return taken(
        FleetResult,
        state,
        fleet=state.run,
        question=progress.started.question if progress.started else "",
        hosts=tuple(taken(FleetHost, it, state=it.state.value) for it in progress.hosts.values()),
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
        left_out=tuple(taken(LeftOutModel, it) for it in progress.left_out),
    )


def fleet_summary(state: JobState) -> FleetSummary:
    """Return a fleet run of the data folder by its state."""
    bricks = {"bricks": state.bricks.total, "known": state.bricks.reused}
    pid = state.process.pid if state.active else None
    return taken(FleetSummary, state, state.bricks, fleet=state.run, **bricks, pid=pid)


def fleet_examination(found: Iterable[Examination]) -> FleetExamination:
    """Return what the doctor found out."""
    return FleetExamination(
        hosts=tuple(
            taken(ExaminedHost, it, findings=tuple(taken(HostFact, each) for each in it.findings)) for it in found
        )
    )


@dataclass(frozen=True, slots=True)
class FleetView:
    """A fleet run at a moment."""

    state: JobState
    hosts: tuple[HostChanged, ...]
    result: FleetResult

    @property
    def failure(self) -> str:
        """The reason why the fleet run has failed; empty if it has not."""
        return self.state.message if self.state.state is State.FAILED else ""


class FleetJob:
    """A fleet run of a data folder, to drive in this process or in one of its own, and to look at again and again."""

    def __init__(self, folder: FleetFolder, data: DataFolder) -> None:
        self.folder = folder
        self.data = data
        self._reader = EventReader(folder.events_file, EVENTS)
        # As far as a viewer has taken events.
        self.progress = FleetProgress()
        # At the last look; None before the first.
        self._state: JobState | None = None

    @classmethod
    def create(cls, request: FleetRequest, data: DataFolder) -> FleetJob:
        """Return a new fleet run; refuse it where the store cannot be used."""
        return cls(create_fleet(request, data), data)

    @classmethod
    def find(cls, wanted: str, data: DataFolder) -> FleetJob:
        """Return a fleet run by its id, or the beginning of it; `last` is the newest."""
        return cls(FleetFolders(data.fleets).find(wanted), data)

    def result(self) -> FleetResult:
        """Return the fleet run as it is now."""
        return fleet_result(self.folder.state(), self.folder.progress())

    def look(self) -> FleetView | None:
        """Return the fleet run if anything has changed since the last look."""
        # Before reading the events, so that the last ones are read.
        before, state = self._state, self.folder.state()
        self._state, events = state, self._reader.new()
        if not events and state == before:
            return None
        for event in events:
            self.progress.take(event)
        return FleetView(state, tuple(self.progress.hosts.values()), fleet_result(state, self.progress))

    def drive(self, take: Callable[[Event], None] | None) -> JobState:
        """Drive it in this process until its end."""
        # Loaded here, as below: other questions reach no hosts.
        from dlbricks_tui.fleet.driver import FleetPlace, execute_fleet

        return execute_fleet(self.folder, FleetPlace(self.data), take)

    def drive_apart(self) -> None:
        """Drive it in a process of its own."""
        from dlbricks_tui.api.jobs import start_apart

        start_apart(self.folder, self.data)

    def resume(self) -> bool:
        """Let a paused fleet run go on; return True if it has ended early, and is to be driven again."""
        if self.folder.state().active:
            self.folder.go_on(" --follow")
            return False
        require_extra()
        if self.folder.is_complete:
            raise FleetError(f"fleet run {self.folder.run} is complete: there is nothing to resume")
        # Loaded here, as above.
        from dlbricks_tui.fleet.ssh import check_hosts

        # Without any host a finished fleet run would become a failed one.
        check_hosts(self.folder.entries(), needs_one=self.folder.state().is_finished)
        return True

    def control_host(self, host: HostChanged, what: str) -> None:
        """Cancel the work of a host, pause it, or let it go on: `what` is `cancel` or `pause`."""
        is_paused = host.state is FleetHostState.PAUSED
        self.folder.command_host(host.host, "resume" if is_paused and what == "pause" else what)

    def add_hosts(self, file: Path) -> Sequence[str]:
        """Let the hosts of another hosts file take part, and return their names."""
        from dlbricks_tui.fleet.hosts_file import read_hosts

        if scheduler := read_fleet_request(self.folder.request_file).scheduler:
            raise FleetError(
                f"the hosts of fleet run {self.folder.run} join by themselves: start `dlbricks fleet worker "
                f"{scheduler} --name NAME` on the new one"
            )
        hosts = read_hosts(file)
        self.folder.add_hosts(hosts)
        return [host.name for host in hosts]


@dataclass(frozen=True, slots=True)
class FleetSettings:
    """The settings of a new fleet run; None is the usual value."""

    question: Question = Question.WHICH_HOST
    probe_seconds: float = 20.0
    runtime: str | None = None
    threads: int | None = None
    # Those of the config.
    target_interval: float | None = None
    time_budget_seconds: float | None = None


def start_fleet(
    sources: Sequence[ModelSource], hosts_file: Path, settings: FleetSettings, data: DataFolder
) -> FleetJob:
    """Start a fleet run in a process of its own."""
    options = FleetOptions(
        hosts=hosts_file,
        question=settings.question,
        probe_seconds=settings.probe_seconds,
        measuring=MeasureOptions(**fields_of(settings, (RUNTIME, THREADS, TARGET_INTERVAL, TIME_BUDGET))),
    )
    fleet = FleetJob.create(fleet_request(options, sources, data), data)
    fleet.drive_apart()
    return fleet


def stored_fleets(data: DataFolder) -> StoredJobs:
    """Return the states of all fleet runs, and those whose state cannot be read."""
    return FleetFolders(data.fleets).stored()


def newest_fleet(data: DataFolder) -> FleetJob | None:
    """Return the newest fleet run that can be read; None if there is none."""
    states = stored_fleets(data).states
    return FleetJob.find(states[-1].run, data) if states else None


def examined_hosts(
    file: Path,
    data: DataFolder,
    runtimes: Sequence[str] = (),
    *,
    install: bool = False,
    wheels: Path | None = None,
    step: Callable[[str], None],
) -> tuple[Examination, ...]:
    """Return what the hosts of a hosts file lack for these runtimes, or all; `install` sets them up before.

    `step` takes a line about each step of it.
    """
    require_extra()
    # Loaded here: nothing else in this module reaches hosts.
    from dlbricks_tui.fleet.doctor import examine_hosts
    from dlbricks_tui.fleet.hosts_file import read_hosts
    from dlbricks_tui.fleet.installing import set_up_hosts, wanted
    from dlbricks_tui.fleet.ssh import connected

    if wheels is not None and not install:
        raise FleetError("--wheels is for --install")
    hosts, registry = read_hosts(file), Registry(data.path)
    needed = wanted([registry.find(name) for name in runtimes] or list(registry.all()))
    if install:
        return tuple(set_up_hosts(hosts, needed, connected, wheels=wheels, step=lambda host, it: step(f"{host}: {it}")))
    return tuple(examine_hosts(hosts, needed, connected))


def made_certificates(folder: Path | None, data: DataFolder) -> tuple[Certificates, bool]:
    """Make the certificates and private keys of a fleet; return them, and True unless they were there."""
    require_extra()
    found = Certificates(folder or data.certificates)
    is_new = found.create()
    return found, is_new


def work_for_fleet(
    scheduler: str,
    name: str,
    data: DataFolder,
    tell: Callable[[str], None],
    *,
    certificates: Path | None = None,
    allow_plain: bool = False,
) -> None:
    """Measure on this host for the driver of a dask scheduler until the process is told to end."""
    require_extra()
    from dlbricks_tui.fleet.worker import run_worker

    # The functions that the driver calls here find it by its variable.
    os.environ[DATA_FOLDER_VARIABLE] = str(data.path)
    run_worker(scheduler, name, certificates or data.certificates, tell, allow_plain=allow_plain)
