"""The order for a process that traces a model, and the messages that it writes, one JSON object a line."""

import json
import pickle
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, TypeAlias, get_args

from dlbricks_tui.analysis.what_if import Execution
from dlbricks_tui.models.graph import Numbers, Shape
from dlbricks_tui.models.library import ModelSource
from dlbricks_tui.traces.trace import TraceLevel

USUAL_INFERENCES = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceOrder:
    """A model, how it is executed, and the levels to trace, with so many inferences of each in each round."""

    source: ModelSource
    execution: Execution
    levels: tuple[TraceLevel, ...] = tuple(TraceLevel)
    inferences: int = USUAL_INFERENCES
    inputs: Mapping[str, Shape] = field(default_factory=dict)
    values: Mapping[str, Numbers] = field(default_factory=dict)

    def encoded(self) -> bytes:
        """Return the order as the process reads it."""
        return pickle.dumps(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceWaits:
    """Another process measures on this host, and the trace waits for its end."""

    holder: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelStarted:
    """The worker of a level starts, and loads the model."""

    level: TraceLevel


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundStarted:
    """A round begins: the model runs some times at each level whose worker has loaded it."""

    # From 1 on.
    number: int
    rounds: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelDone:
    """The end of a level: the median of its inferences, or the reason why it cannot be traced."""

    level: TraceLevel
    inference_ms: float | None
    # None for the lowest level that was traced, and for a level that cannot be traced.
    overhead_ms: float | None
    missing: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceDone:
    """The trace is in its file."""

    id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceFailed:
    """The model could not be traced at any level, or the trace was stopped."""

    reason: str


TraceMessage: TypeAlias = TraceWaits | LevelStarted | RoundStarted | LevelDone | TraceDone | TraceFailed


def encode(message: TraceMessage) -> bytes:
    """Return a message as a line."""
    return json.dumps({"message": type(message).__name__, **asdict(message)}).encode() + b"\n"


def decode(line: bytes) -> TraceMessage:
    """Return the message of a line that the process wrote."""
    content = json.loads(line)
    kind: Any = _KINDS[content.pop("message")]
    if "level" in content:
        content["level"] = TraceLevel(content["level"])
    message: TraceMessage = kind(**content)
    return message


_KINDS = {kind.__name__: kind for kind in get_args(TraceMessage)}
