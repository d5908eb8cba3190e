"""Drive a fleet run, in this process or a separate one, from its start to its end."""

import sys
import time
from collections.abc import Callable, Iterable
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from queue import SimpleQueue

from dlbricks_tui.errors import UserError
from dlbricks_tui.estimate.comparison import read_prices
from dlbricks_tui.estimate.inquiry import Predictors
from dlbricks_tui.fleet.certificates import Certificates
from dlbricks_tui.fleet.driving.driver import PATIENCE_SECONDS, Driver
from dlbricks_tui.fleet.driving.pools import HostWork
from dlbricks_tui.fleet.engine.engine import Engine, News
from dlbricks_tui.fleet.engine.scheduler import PLAIN, check_address, set_up
from dlbricks_tui.fleet.folder import FleetControl, FleetFolder, read_fleet_request
from dlbricks_tui.fleet.language import LanguagePart
from dlbricks_tui.fleet.parcels import FleetWorkload, read_workload
from dlbricks_tui.fleet.request import FleetEnded, FleetHostState, FleetRequest, FleetStarted, HostEntry
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.host.queue import this_process
from dlbricks_tui.jobs.control import JobStopped, StopSignals, only_process
from dlbricks_tui.jobs.events import Event, EventWriter
from dlbricks_tui.jobs.folder import JobState, State
from dlbricks_tui.runs.request import RunRequest
from dlbricks_tui.store.database import ResultsDatabase

# The user's commands are looked for so often.
_WAIT_SECONDS = 0.25
# Hosts have so long to end their tasks when the fleet run is stopped.
_SECONDS_TO_STOP = 10.0

Reach = Callable[[FleetFolder, FleetRequest, tuple[HostEntry, ...], DataFolder], Engine]
Read = Callable[[RunRequest, DataFolder, Path, Callable[[Event], None]], FleetWorkload]


def reach(folder: FleetFolder, request: FleetRequest, hosts: tuple[HostEntry, ...], data: DataFolder) -> Engine:
    """Return the means to call the hosts of a fleet run, through a scheduler that exists already, or over SSH."""
    certificates, log = Certificates(data.certificates), folder.logs / "dask.log"
    if request.scheduler:
        is_plain = check_address(request.scheduler, request.allow_plain).scheme == PLAIN
        return Engine(request.scheduler, None if is_plain else certificates.for_driver(), log)
    certificates.create()
    set_up(log)
    # Loaded here: it loads dask, which is set up now.
    from dlbricks_tui.fleet.engine.cluster import FleetCluster

    events: SimpleQueue[News] = SimpleQueue()
    cluster = FleetCluster(hosts, certificates, folder.logs, events.put)
    return Engine(cluster.scheduler_address, certificates.for_driver(), log, cluster, events)


@dataclass(frozen=True, slots=True)
class FleetPlace:
    """Means of a fleet run: the data folder, the functions that reach its hosts and read its models, and its clock."""

    data: DataFolder
    reach_hosts: Reach = reach
    read_models: Read = read_workload
    clock: Callable[[], float] = time.monotonic
    patience_seconds: float = PATIENCE_SECONDS


def execute_fleet(
    folder: FleetFolder,
    place: FleetPlace,
    listener: Callable[[Event], None] | None = None,
    *,
    detached: bool = False,
) -> JobState:
    """Drive a fleet run to its end, and return its last state. One that is detached outlives its terminal."""
    request = read_fleet_request(folder.request_file)
    with (
        only_process(folder),
        StopSignals(ignore_hangup=detached) as signals,
        closing(EventWriter(folder.events_file, listener)) as events,
    ):
        control = FleetControl(folder, place.clock)
        hosts = folder.entries()
        tasks_before = folder.given_tasks()

        def end(state: State, message: str) -> JobState:
            # Told before the state changes: viewers stop reading events at a final state.
            events.tell(FleetEnded(state=state.value, message=message, seconds=control.seconds))
            return control.change(state, message)

        events.tell(
            FleetStarted(
                fleet=folder.run,
                pid=this_process().pid,
                models=request.model_names,
                runtimes=request.runtimes,
                level=request.run.level.value,
                question=request.question.value,
                hosts=tuple(host.name for host in hosts),
            )
        )
        try:
            with closing(place.reach_hosts(folder, request, hosts, place.data)) as calls:
                # Hosts are reached while the models are read. A wrong address is told before that.
                calls.start()
                with signals.waiting():
                    workload = FleetWorkload(())
                    if request.run.model_names:
                        workload = place.read_models(request.run, place.data, folder.worker_log, events.tell)
                language = [LanguagePart.of(asked, request.run) for asked in request.language]
                workload = replace(workload, parts=(*workload.parts, *language))
                with ResultsDatabase(place.data.store) as store:
                    driver = Driver(
                        *(request, workload, calls, store, Predictors(store, place.data.cache)),
                        *(read_prices(place.data.path), control, events.tell),
                        clock=place.clock,
                        patience_seconds=place.patience_seconds,
                    )
                    driver.begin(hosts, tasks_before)
                    control.change(State.RUNNING)
                    stopped = _drive(driver, calls, place.clock, signals)
                    driver.tell_answers()
                    driver.tell_progress()
                    control.count(driver.pools.bricks, at_once=True)
            if stopped is not None:
                return end(stopped.state, stopped.why)
            return end(*outcome(driver.hosts.values(), place.patience_seconds))
        except JobStopped as early:
            return end(early.state, early.why)
        except UserError as error:
            end(State.FAILED, str(error))
            raise
        except BaseException:
            end(State.FAILED, "a fault of dlbricks; what was measured before it is kept")
            raise


def _drive(driver: Driver, calls: Engine, clock: Callable[[], float], signals: StopSignals) -> JobStopped | None:
    """Drive the hosts until they have nothing to do; return the reason if that is stopped before."""
    try:
        while not driver.is_over:
            signals.check()
            driver.take(calls.wait(_WAIT_SECONDS))
            driver.tick()
    except JobStopped as early:
        # Hosts still send what they have measured.
        driver.stop()
        give_up = clock() + _SECONDS_TO_STOP
        while driver.waits_for_tasks and clock() < give_up:
            driver.take(calls.wait(_WAIT_SECONDS))
        return early
    return None


def outcome(hosts: Iterable[HostWork], patience_seconds: float) -> tuple[State, str]:
    """Return the state of a fleet run whose hosts have nothing to do any more, and the reason in a line."""
    hosts = tuple(hosts)
    if not hosts:
        return State.FAILED, f"no host joined within {patience_seconds / 60:.0f} minutes"
    lacking = [host for host in hosts if host.state is not FleetHostState.DONE]
    if all(host.state is FleetHostState.CANCELLED for host in hosts):
        return State.CANCELLED, "all of its hosts were cancelled"
    named = "; ".join(f"{it.name}: {it.message or it.state.value}" for it in lacking[:3])
    more = f" and {len(lacking) - 3} more" if len(lacking) > 3 else ""
    if len(lacking) == len(hosts):
        return State.FAILED, f"no host could measure everything: {named}{more}"
    if lacking:
        return State.FINISHED, f"{len(lacking)} of {len(hosts)} hosts could not measure everything: {named}{more}"
    return State.FINISHED, ""


def main(folder: str, data: str) -> None:
    """Drive a detached fleet run; the entry point of its process."""
    try:
        execute_fleet(FleetFolder(Path(folder)), FleetPlace(DataFolder(Path(data))), detached=True)
    except UserError as error:
        sys.exit(str(error))
