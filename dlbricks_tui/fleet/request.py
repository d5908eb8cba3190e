"""The request of a fleet run: what every host measures, the hosts, and the question."""

from dataclasses import dataclass
from enum import Enum

from dlbricks_tui.runs.request import RunRequest

# The folder of dlbricks for the user's data on Linux, so that what dlbricks has measured there before counts.
USUAL_FOLDER = "~/.local/share/dlbricks"
USUAL_PYTHON = "python3"


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


class Question(str, Enum):
    """What a fleet run has to find out; it ends as soon as it has."""

    # The latencies of all models on all hosts: every brick is measured everywhere.
    EVERYTHING = "everything"
    # The order of the hosts for each model.
    WHICH_HOST = "which-host"


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
