"""Messages between the driver of a fleet and its hosts: JSON values only.

A host reports itself, receives parcels and tasks, and sends what it has measured while a task runs. The driver checks
everything that it receives before it uses it. docs/how-it-works/fleet.md says what that protects from.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from dlbricks_tui.runs.request import RunRequest

# A record of the store as JSON.
Document: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Parcel:
    """A network that travels to hosts: the layers of a model without repeated modules, names and weights.

    `sha256` is the hash of its content and its name everywhere. `bricks` has the keys of the bricks to find in it.
    """

    sha256: str
    # The ending of its file, such as `.onnx`.
    suffix: str
    content: bytes = field(repr=False)
    bricks: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class RuntimeReport:
    """A runtime of a host: its name in the registry there, and its identity."""

    name: str
    framework: str
    version: str
    identity: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HostReport:
    """What a host says of itself before it gets any work."""

    dlbricks: str
    python: str
    # The ids of the methods, by name.
    methods: Mapping[str, str]
    runtimes: tuple[RuntimeReport, ...]
    # The record of its system.
    system: Document
    # The time there, ISO 8601 in UTC.
    clock: str
    free_bytes: int
    # The process that measures there now, if there is one.
    busy: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """Bricks that one host has to measure in one run; results that its store has are sent without measuring."""

    id: str
    # The run to carry out; the host puts the files of the parcels in the place of the models.
    request: RunRequest
    parcels: tuple[str, ...]
    # The keys of the only bricks to measure; empty: all that the parcels hold.
    bricks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskProgress:
    """The progress of a task; `waits_for` names the process that measures on the host, if the task has to wait."""

    task: str
    done: int
    of: int
    seconds_left: float | None
    disturbed_rounds: int
    disturbed_seconds: float
    paused: bool = False
    waits_for: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultFound:
    """A record of the host's store: a measurement, a failure, or the system or runtime of these."""

    task: str
    record: Document


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskNote:
    """Something that the user should know, such as a parcel that cannot be read."""

    task: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskEnded:
    """The end of a task: `finished`, `cancelled` or `failed`, with the reason."""

    task: str
    state: str
    reason: str = ""


HostMessage: TypeAlias = TaskProgress | ResultFound | TaskNote | TaskEnded
