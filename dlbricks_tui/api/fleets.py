"""Fleet runs: measurements on many hosts, driven from the calling process."""

import os
from collections.abc import Callable, Sequence

from dlbricks_tui.answers.fleets.requesting import FleetOptions, fleet_request
from dlbricks_tui.answers.fleets.results import FleetResult, fleet_result
from dlbricks_tui.api.measuring import Progress, require_main_thread
from dlbricks_tui.api.opening import Model, folder_at, sources_of
from dlbricks_tui.fleet.events import FleetProgress
from dlbricks_tui.measure.events import Event
from dlbricks_tui.runs.run_folder import State
from dlbricks_tui.wording.fleets import fleet_line, note_line


def fleet(
    models: Model | Sequence[Model],
    options: FleetOptions,
    *,
    progress: Callable[[Progress], None] | None = None,
    data: os.PathLike[str] | str | None = None,
) -> FleetResult:
    """Measure the bricks of models on many hosts, and return an estimate of each model on each host.

    `progress` is called after each event; it counts the bricks of all hosts together. As `measure`, this handles
    signals: call it in the main thread only.
    """
    # Loaded here, as below: other functions need no fleet runs.
    from dlbricks_tui.fleet.driving.running import FleetPlace, execute_fleet
    from dlbricks_tui.fleet.folder import create_fleet

    require_main_thread()
    folder = folder_at(data)
    found = create_fleet(fleet_request(options, sources_of(models, folder), folder), folder)
    report = None if progress is None else _reporter(found.run, progress)
    state = execute_fleet(found, FleetPlace(folder), report)
    return fleet_result(state, found.progress())


def fleet_status(run: str = "last", *, data: os.PathLike[str] | str | None = None) -> FleetResult:
    """Return a fleet run as it is now, by its id or the beginning of its id; nothing is measured."""
    from dlbricks_tui.fleet.folder import FleetFolders

    found = FleetFolders(folder_at(data).fleets).find(run)
    return fleet_result(found.state(), found.progress())


def _reporter(run: str, progress: Callable[[Progress], None]) -> Callable[[Event], None]:
    folded = FleetProgress()

    def report(event: Event) -> None:
        note = note_line(event, folded)
        folded.take(event)
        hosts = folded.hosts.values()
        left = [host.seconds_left for host in hosts if host.seconds_left is not None]
        progress(
            Progress(
                run=run,
                state=State.RUNNING if folded.ended is None else State(folded.ended.state),
                done=sum(host.bricks for host in hosts),
                total=sum(host.of for host in hosts),
                failed=sum(host.failed for host in hosts),
                # Hosts measure side by side.
                seconds_left=max(left, default=None),
                doing="" if folded.ended is not None else fleet_line(folded),
                note=note or None,
            )
        )

    return report
