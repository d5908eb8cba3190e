"""The events of a fleet run for tests of its viewers: two hosts that measure, and one that is refused."""

from contextlib import closing
from typing import Any

from dlbricks_tui.fleet.folder import FleetFolder
from dlbricks_tui.fleet.request import FleetHostState, FleetStarted, HostChanged, HostEstimate, OrderFound
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.host.queue import this_process
from dlbricks_tui.jobs.events import Event, EventWriter
from dlbricks_tui.jobs.folder import JobState, State

MODELS = ("resnet50_v1", "squeezenet1.1")
RUNTIME = "onnxruntime-1.32.0 threads-1"


def estimate(host: str, model: str, ms: float | None, *, predicted: int = 0, dollars: float | None = None) -> Event:
    return HostEstimate(
        host=host,
        model=model,
        runtime=RUNTIME,
        sequential_ms=ms,
        low_ms=None if ms is None else 0.95 * ms,
        high_ms=None if ms is None else 1.05 * ms,
        measured_layers=40,
        predicted_layers=predicted,
        missing_layers=0,
        per_second=None if ms is None else 1000 / ms,
        dollars_per_million=dollars,
    )


def changed(host: str, state: FleetHostState, message: str = "", **progress: Any) -> Event:
    return HostChanged(host=host, state=state, message=message, system=f"{host}-id", system_name=host, **progress)


def measuring(host: str, bricks: int, *, failed: int = 1, state: FleetHostState = FleetHostState.MEASURING) -> Event:
    counts: dict[str, Any] = {
        "bricks": bricks,
        "of": 60,
        "failed": failed,
        "disturbed_rounds": 3,
        "disturbed_seconds": 1.5,
    }
    return changed(host, state, seconds_left=42.0, **counts)


EVENTS = (
    FleetStarted(
        fleet="f", pid=1, models=MODELS, runtimes=(RUNTIME,), level="fused", question="which-host", hosts=("c7i", "m8g")
    ),
    measuring("c7i", 45),
    measuring("m8g", 12, state=FleetHostState.PROBING),
    changed("old", FleetHostState.REFUSED, "it has dlbricks 0.1.0, and 0.2.0 is needed"),
    estimate("c7i", "resnet50_v1", 40.0, dollars=1.98),
    estimate("m8g", "resnet50_v1", 31.0, predicted=12, dollars=1.21),
    estimate("c7i", "squeezenet1.1", 9.0, dollars=0.45),
    estimate("m8g", "squeezenet1.1", None),
    OrderFound(model="resnet50_v1", runtime=RUNTIME, order=(("m8g",), ("c7i",)), settled=True),
    OrderFound(model="squeezenet1.1", runtime=RUNTIME, order=(("c7i",), ("m8g",)), settled=False),
)


def tell(folder: FleetFolder, *events: Event) -> None:
    with closing(EventWriter(folder.events_file)) as writer:
        for event in events:
            writer.tell(event)


RUN, STARTED = "20261127-120000-0f1e", "2026-11-27T12:00:00.000000+00:00"


def sample_fleet(data: DataFolder, state: State = State.RUNNING) -> FleetFolder:
    """Return a fleet run in a data folder, which this process drives."""
    folder = FleetFolder(data.fleets / RUN)
    folder.path.mkdir(parents=True)
    folder.set_state(JobState(RUN, state, this_process(), MODELS, STARTED, STARTED, kind=folder.kind))
    tell(folder, *EVENTS)
    return folder
