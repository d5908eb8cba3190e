"""The messages of the process that measures language models, one JSON object a line."""

import json
from dataclasses import asdict, dataclass
from typing import Any, TypeAlias, get_args


@dataclass(frozen=True, slots=True, kw_only=True)
class LanguageWaits:
    """Another process measures on this host, and this one waits for its end."""

    holder: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelBegins:
    """A model with one precision and number of threads begins: the carriers of its phases are loaded."""

    model: str
    # Such as "int4, 2 threads".
    variant: str
    # From 1 on.
    number: int
    of: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LanguageRound:
    """A round has ended: what the model reaches so far, and how long it goes on about."""

    model: str
    number: int
    prefill_ms: float | None
    decode_tokens_per_second: float | None
    seconds_left: float


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeModelBegins:
    """The whole model is written to disk with random weights, and loaded into an engine."""

    model: str
    engine: str
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelMeasured:
    """The results of a model are in the store."""

    model: str
    variant: str
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelNotMeasured:
    """A model, or its whole-model run, could not be measured; the others go on."""

    model: str
    variant: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LanguageStopped:
    """Nothing more is measured: the user has stopped it, or it has failed."""

    reason: str


LanguageMessage: TypeAlias = (
    LanguageWaits | ModelBegins | LanguageRound | WholeModelBegins | ModelMeasured | ModelNotMeasured | LanguageStopped
)


def encode(message: LanguageMessage) -> bytes:
    """Return a message as a line."""
    return json.dumps({"message": type(message).__name__, **asdict(message)}).encode() + b"\n"


def decode(line: bytes) -> LanguageMessage:
    """Return the message of a line that the process wrote."""
    content = json.loads(line)
    kind: Any = _KINDS[content.pop("message")]
    message: LanguageMessage = kind(**content)
    return message


_KINDS = {kind.__name__: kind for kind in get_args(LanguageMessage)}
