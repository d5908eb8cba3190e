"""The request of a fleet run: what every host measures, the hosts, and the question."""

from dataclasses import dataclass
from enum import Enum

from dlbricks_tui.fleet.hosts import HostEntry
from dlbricks_tui.runs.request import RunRequest


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
