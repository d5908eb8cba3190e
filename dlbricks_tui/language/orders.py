"""The orders to the process that measures language models, and its messages: one JSON object a line."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, get_args

from dlbricks_tui.runtime.variant import threads_in_words

if TYPE_CHECKING:
    from dlbricks_tui.language.architecture import WeightPrecision
    from dlbricks_tui.language.opening import NamedModel
    from dlbricks_tui.runtime.runtime import Runtime

# This version of ONNX Runtime has caches of windowed blocks that hold their window only; 1.23 has not.
_SHORT_CACHES = (1, 32)


@dataclass(frozen=True, slots=True)
class LanguageVariant:
    """How a runtime, with its number of threads, runs language models."""

    runtime: Runtime
    precision: WeightPrecision

    @property
    def threads(self) -> int:
        return self.runtime.settings.threads or 0

    @property
    def words(self) -> str:
        return f"{self.precision.value}, {threads_in_words(self.threads)}"

    def fitted(self, model: NamedModel) -> NamedModel:
        """Return a model with caches of windowed blocks as long as the runtime wants them."""
        version = tuple([int(it) for it in self.runtime.version.split(".")[:2] if it.isdecimal()])
        if self.runtime.framework != "onnxruntime" or version >= _SHORT_CACHES or not any(model.architecture.windowed):
            return model
        return replace(model, architecture=replace(model.architecture, has_short_caches=False))


@dataclass(frozen=True, slots=True, kw_only=True)
class LanguageOrder:
    """Models, each in every variant, for one prompt and so many generated tokens."""

    models: tuple[NamedModel, ...]
    variants: tuple[LanguageVariant, ...]
    prompt: int
    generate: int
    end_to_end: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredEngine:
    """The whole model with random weights, timed in an engine that people use."""

    # Its name and version.
    engine: str
    prefill_ms: float
    decode_tokens_per_second: float
    when: str


class LanguageWaits(NamedTuple):
    """Another process measures on this host, and this one waits for its end."""

    holder: str


class ModelBegins(NamedTuple):
    """A model with one precision and number of threads begins: the carriers of its phases are loaded."""

    model: str
    # Such as "int4, 2 threads".
    variant: str
    # From 1 on.
    number: int
    of: int


class LanguageRound(NamedTuple):
    """A round has ended: what the model reaches so far, and how long it goes on about."""

    model: str
    number: int
    prefill_ms: float | None
    decode_tokens_per_second: float | None
    seconds_left: float


class WholeModelBegins(NamedTuple):
    """The whole model is written to disk with random weights, and loaded into an engine."""

    model: str
    engine: str
    size_bytes: int


class ModelMeasured(NamedTuple):
    """The results of a model are in the store."""

    model: str
    variant: str
    seconds: float


class ModelNotMeasured(NamedTuple):
    """A model, or its whole-model run, could not be measured; the others go on."""

    model: str
    variant: str
    reason: str


class LanguageStopped(NamedTuple):
    """Nothing more is measured: the user has stopped it, or it has failed."""

    reason: str


LanguageMessage: TypeAlias = (
    LanguageWaits | ModelBegins | LanguageRound | WholeModelBegins | ModelMeasured | ModelNotMeasured | LanguageStopped
)


def encode(message: LanguageMessage) -> bytes:
    return json.dumps({"message": type(message).__name__, **message._asdict()}).encode() + b"\n"


def decode(line: bytes) -> LanguageMessage:
    content = json.loads(line)
    kind: Any = _KINDS[content.pop("message")]
    message: LanguageMessage = kind(**content)
    return message


_KINDS = {kind.__name__: kind for kind in get_args(LanguageMessage)}
