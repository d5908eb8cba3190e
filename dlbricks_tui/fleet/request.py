"""The request of a fleet run, and its events: what every host measures, the hosts, the question, and what happened.

Errors of fleets are here, too.
"""

import shlex
from dataclasses import dataclass, field
from enum import Enum

from dlbricks_tui.errors import UserError
from dlbricks_tui.jobs.events import Event, EventKinds, JobEnded, JobStarted, event_kinds
from dlbricks_tui.language.orders import LanguageQuestion
from dlbricks_tui.printable import printable
from dlbricks_tui.runs.events import ModelLeftOut, ModelLoading
from dlbricks_tui.runs.request import RunRequest
from dlbricks_tui.settings.measuring import Question

# The folder of dlbricks for the user's data on Linux, so that what dlbricks has measured there before counts.
USUAL_FOLDER = "~/.local/share/dlbricks"
USUAL_PYTHON = "python3"
_LONGEST_REASON = 300


class FleetError(UserError):
    """A fleet cannot do what was asked."""


class MessageError(FleetError):
    """A text that is no message of a fleet; the message of the error completes "it ..."."""


class ParcelError(FleetError):
    """A model that cannot travel; the message says why, and what to do."""


class HostError(FleetError):
    """A host cannot do what the driver asks of it."""


def first_line(error: BaseException) -> str:
    """Return the reason in an error of a library, in one short line."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return printable(lines[0] if lines else type(error).__name__)[:_LONGEST_REASON]


def last_line(output: bytes) -> str:
    """Return the last line that a program has printed, without control codes."""
    lines = output.decode(errors="replace").strip().splitlines()
    return printable(lines[-1].strip())[:_LONGEST_REASON] if lines else ""


@dataclass(frozen=True, kw_only=True)
class HostEntry:
    """A host that is reached over SSH. What is empty or None comes from the user's SSH configuration."""

    # The name in tables and messages, unique in the fleet.
    name: str
    # A host name, an address, or a name of the SSH configuration; empty: the name above.
    address: str = ""
    port: int | None = None
    user: str = ""
    # The file of the private key.
    key: str = ""
    # The host through which it is reached, as `ssh -J` takes it.
    jump: str = ""
    # The folder on the host for the virtual environment and the data; empty: the usual one.
    folder: str = ""
    # The interpreter on the host that the virtual environment is made with; empty: python3.
    python: str = ""
    # Dollars; None: the price of the instance type, if it has one.
    price_per_hour: float | None = None

    @property
    def folder_there(self) -> str:
        """The folder on the host: its data folder, beside which the environment is the folder `venv` in it."""
        return self.folder or USUAL_FOLDER

    @property
    def python_there(self) -> str:
        """The interpreter that the doctor runs there, and that makes the environment."""
        return self.python or USUAL_PYTHON


def shell_path(path: str) -> str:
    """Return a path as shells take it; a leading `~/` stays the user's home folder there."""
    home = "~/" if path.startswith("~/") else ""
    return home + shlex.quote(path.removeprefix(home))


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetRequest:
    """A run that every host carries out, and the hosts."""

    # What to measure: models of this host, runtimes, level and method. Its time budget is that of each host.
    run: RunRequest
    # The hosts to reach over SSH; empty with a scheduler.
    hosts: tuple[HostEntry, ...] = ()
    # The address of a dask scheduler that exists already, such as tls://10.0.0.1:8786; empty: one is started.
    scheduler: str = ""
    question: Question = Question.EVERYTHING
    # The time of the probe on each host, before any other brick is measured.
    probe_seconds: float = 20.0
    # True: a scheduler without TLS may be used although other machines can reach it.
    allow_plain: bool = False
    # Language models, each in its variants.
    language: tuple[LanguageQuestion, ...] = ()

    @property
    def model_names(self) -> tuple[str, ...]:
        """The names of all models."""
        return (*self.run.model_names, *dict.fromkeys(it.model.name for it in self.language))

    @property
    def runtimes(self) -> tuple[str, ...]:
        """The identities of all runtimes."""
        runtimes = [*(it.runtime for it in self.run.parts), *(it.runtime for it in self.language)]
        return tuple(dict.fromkeys(it.identity for it in runtimes))


class FleetHostState(str, Enum):
    """The state of a host in a fleet run."""

    CONNECTING = "connecting"
    # Another process measures there.
    WAITING = "waiting"
    PROBING = "probing"
    MEASURING = "measuring"
    PAUSED = "paused"
    # It is there and has nothing to do.
    IDLE = "idle"
    DONE = "done"
    # Its user wanted it to end.
    CANCELLED = "cancelled"
    # It went away; it continues when it returns.
    LOST = "lost"
    # It lacks something, such as the right version; it gets no work.
    REFUSED = "refused"
    # It returned something impossible; it gets no more work, and what it returned is not stored.
    DISTRUSTED = "distrusted"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetStarted(JobStarted):
    """A process drives the fleet run; another one resumes it after an interruption."""

    fleet: str
    models: tuple[str, ...]
    runtimes: tuple[str, ...]
    level: str
    question: str
    # The names of the hosts that are known so far; others may join.
    hosts: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class HostChanged(Event):
    """A host as it is now: `bricks` have a result in the local store, of all that are wanted of it."""

    host: str
    state: FleetHostState = FleetHostState.CONNECTING
    # The reason in one line, if there is one to tell.
    message: str = ""
    # The id and the name of its system, once it has reported.
    system: str = ""
    system_name: str = ""
    bricks: int = 0
    of: int = 0
    failed: int = 0
    seconds_left: float | None = None
    disturbed_rounds: int = 0
    disturbed_seconds: float = 0.0

    @property
    def is_complete(self) -> bool:
        """True if it has done everything, without a failure."""
        return self.state is FleetHostState.DONE and not self.failed


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskGiven(Event):
    """A host was given a task; its run on the host may outlive the driver."""

    host: str
    task: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultStored(Event):
    """A result of a host is in the local store."""

    host: str
    brick: str
    label: str
    trimmed_mean_ms: float
    low_ms: float
    high_ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class HostBrickFailed(Event):
    """A brick that a host cannot measure; the failure is in the local store."""

    host: str
    brick: str
    label: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HostEstimate(Event):
    """The estimate of a model on a host so far. Latencies are None while too little is known.

    Of a language model, they are those of a generated token.
    """

    host: str
    model: str
    runtime: str
    sequential_ms: float | None = None
    low_ms: float | None = None
    high_ms: float | None = None
    measured_layers: int = 0
    predicted_layers: int = 0
    missing_layers: int = 0
    per_second: float | None = None
    # None without a price.
    dollars_per_million: float | None = None
    # Of language models only: the delay of the first token, and whether the host has enough memory.
    first_token_ms: float | None = None
    fits: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderFound(Event):
    """The order of the hosts for a model, the fastest first; each entry has the hosts that are equally fast.

    `settled` is True once it is right with 95 % confidence.
    """

    model: str
    runtime: str
    order: tuple[tuple[str, ...], ...]
    settled: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetEnded(JobEnded):
    """The last event; `state` is that of the fleet run, `message` the reason, if it needs words."""


EVENTS: EventKinds = event_kinds(
    ModelLoading,
    FleetStarted,
    ModelLeftOut,
    HostChanged,
    TaskGiven,
    ResultStored,
    HostBrickFailed,
    HostEstimate,
    OrderFound,
    FleetEnded,
)


@dataclass(slots=True)
class FleetProgress:
    """A fleet run after all events so far; it starts again when the fleet run is resumed."""

    started: FleetStarted | None = None
    ended: FleetEnded | None = None
    # By name, in the order in which they became known.
    hosts: dict[str, HostChanged] = field(default_factory=dict)
    # By model, runtime and host.
    estimates: dict[tuple[str, str, str], HostEstimate] = field(default_factory=dict)
    # By model and runtime.
    orders: dict[tuple[str, str], OrderFound] = field(default_factory=dict)
    left_out: list[ModelLeftOut] = field(default_factory=list)
    failed: list[HostBrickFailed] = field(default_factory=list)
    # The results that were stored since the fleet run was started or resumed.
    stored: int = 0

    def take(self, event: Event) -> None:
        """Add an event."""
        match event:
            case FleetStarted():
                self.started, self.ended = event, None
                self.hosts = {name: HostChanged(host=name) for name in event.hosts}
                self.estimates, self.orders, self.left_out, self.failed, self.stored = {}, {}, [], [], 0
            case HostChanged():
                self.hosts[event.host] = event
            case HostEstimate():
                self.estimates[event.model, event.runtime, event.host] = event
            case OrderFound():
                self.orders[event.model, event.runtime] = event
            case ModelLeftOut():
                self.left_out.append(event)
            case HostBrickFailed():
                self.failed.append(event)
            case ResultStored():
                self.stored += 1
            case FleetEnded():
                self.ended = event
