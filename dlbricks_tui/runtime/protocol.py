"""What a worker is asked and what it answers: one JSON object a line.

Both sides import this module, so that it keeps to the syntax and the library of Python 3.7.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Generic, NamedTuple, TypeVar


class ProtocolError(ValueError):
    """A line that is no message of this protocol."""


class Tensor(NamedTuple):
    """What inference knows of one output: None for what it does not reach."""

    shape: tuple[int, ...] | None
    dtype: str | None


class Reason(str, Enum):
    """Why a worker cannot do what it is asked."""

    MALFORMED = "malformed"
    INCONSISTENT = "inconsistent"
    TOO_LARGE = "too large"
    UNKNOWN_OPERATOR = "unknown operator"
    UNFUSABLE = "unfusable"
    NO_FRAMEWORK = "no framework"


class Reply:
    """What a worker answers."""


@dataclass(frozen=True)
class Described(Reply):
    """The versions in the interpreter, what the framework was built with, and whether it fuses by default."""

    python: str
    framework: str
    version: str
    numpy: str
    features: tuple[str, ...]
    fuses: bool


@dataclass(frozen=True)
class Inferred(Reply):
    """For each node of the file the outputs that others may read; `unknown` nodes have operators it lacks."""

    outputs: tuple[tuple[Tensor, ...], ...]
    unknown: tuple[int, ...]


@dataclass(frozen=True)
class Fused(Reply):
    """The optimised graph, the outputs of its nodes, and for each the nodes asked about that it stands for."""

    symbol: str
    outputs: tuple[tuple[Tensor, ...], ...]
    parts: tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Refused(Reply):
    """The request makes no sense to the framework; `node` is the index of the node at fault where one is."""

    reason: Reason
    message: str
    node: int | None = None


Answer = TypeVar("Answer", bound=Reply)


class Request(Generic[Answer]):
    """What a worker is asked; the parameter is the reply that is no refusal."""


@dataclass(frozen=True)
class Describe(Request[Described]):
    """What is installed?"""


@dataclass(frozen=True)
class Infer(Request[Inferred]):
    """Which shapes and dtypes have the outputs of every node, given those of some variables by name?"""

    symbol: str
    shapes: Mapping[str, tuple[int, ...]]
    dtypes: Mapping[str, str]


@dataclass(frozen=True)
class Fuse(Request[Fused]):
    """What does the framework make of this graph before it runs it?"""

    symbol: str
    shapes: Mapping[str, tuple[int, ...]]
    dtypes: Mapping[str, str]


def answers(request: Request[Any], reply: Reply) -> bool:
    """Whether that reply is of the kind which that request is for."""
    return isinstance(reply, _ANSWERS[type(request)])


def encode(message: Request[Any] | Reply) -> bytes:
    """The message as a line."""
    fields = {"kind": type(message).__name__, **vars(message)}
    return json.dumps(fields, separators=(",", ":")).encode() + b"\n"


def decode_request(line: bytes) -> Request[Any]:
    """The request on a line that a worker reads."""
    message = _decode(line)
    if not isinstance(message, Request):
        raise ProtocolError(f"expected a request, found {type(message).__name__}")
    return message


def decode_reply(line: bytes) -> Reply:
    """The reply on a line that a worker wrote."""
    message = _decode(line)
    if not isinstance(message, Reply):
        raise ProtocolError(f"expected a reply, found {type(message).__name__}")
    return message


def _decode(line: bytes) -> Request[Any] | Reply:
    try:
        fields = json.loads(line.decode())
    except (ValueError, RecursionError) as error:
        raise ProtocolError(f"not JSON: {error}") from None
    if not isinstance(fields, dict):
        raise ProtocolError("not a JSON object")
    kind = fields.pop("kind", None)
    if not isinstance(kind, str) or kind not in _MESSAGES:
        raise ProtocolError(f"no message of the kind {kind!r}")
    message, readers = _MESSAGES[kind]
    if fields.keys() != readers.keys():
        raise ProtocolError(f"{kind} takes {sorted(readers)}, found {sorted(fields)}")
    values = {}
    for name, read in readers.items():
        try:
            values[name] = read(fields[name])
        except ProtocolError as error:
            raise ProtocolError(f"{kind}.{name}: {error}") from None
    made: Request[Any] | Reply = message(**values)
    return made


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ProtocolError("not a text")
    return value


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ProtocolError("neither true nor false")
    return value


def _count(value: Any) -> int:
    # JSON's true is an int to Python.
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ProtocolError("not a count")
    return value


def _reason(value: Any) -> Reason:
    try:
        return Reason(value)
    except ValueError:
        raise ProtocolError(f"no reason of the name {value!r}") from None


def _list(read: Callable[[Any], Any]) -> Callable[[Any], tuple[Any, ...]]:
    def read_list(value: Any) -> tuple[Any, ...]:
        if not isinstance(value, list):
            raise ProtocolError("not a list")
        return tuple([read(item) for item in value])

    return read_list


def _by_name(read: Callable[[Any], Any]) -> Callable[[Any], dict[str, Any]]:
    def read_by_name(value: Any) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise ProtocolError("not an object")
        return {name: read(item) for name, item in value.items()}

    return read_by_name


def _optional(read: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: None if value is None else read(value)


_shape = _list(_count)
_optional_shape = _optional(_shape)
_optional_text = _optional(_text)


def _tensor(value: Any) -> Tensor:
    if not isinstance(value, list) or len(value) != 2:
        raise ProtocolError("not a shape and a dtype")
    return Tensor(_optional_shape(value[0]), _optional_text(value[1]))


_ANSWERS: dict[type[Request[Any]], type[Reply]] = {Describe: Described, Infer: Inferred, Fuse: Fused}

_GRAPH = {"symbol": _text, "shapes": _by_name(_shape), "dtypes": _by_name(_text)}
_OUTPUTS = _list(_list(_tensor))

_MESSAGES: dict[str, tuple[type[Any], dict[str, Callable[[Any], Any]]]] = {
    "Describe": (Describe, {}),
    "Infer": (Infer, _GRAPH),
    "Fuse": (Fuse, _GRAPH),
    "Described": (
        Described,
        {
            "python": _text,
            "framework": _text,
            "version": _text,
            "numpy": _text,
            "features": _list(_text),
            "fuses": _flag,
        },
    ),
    "Inferred": (Inferred, {"outputs": _OUTPUTS, "unknown": _list(_count)}),
    "Fused": (Fused, {"symbol": _text, "outputs": _OUTPUTS, "parts": _list(_list(_count))}),
    "Refused": (Refused, {"reason": _reason, "message": _text, "node": _optional(_count)}),
}
