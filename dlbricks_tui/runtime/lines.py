"""The messages of the protocol as lines: one JSON object each, checked strictly when read.

Both sides import this module, so it uses only the syntax and the standard library of Python 3.7.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from dlbricks_tui.runtime.protocol import (
    ArrayType,
    Describe,
    Described,
    Fuse,
    Fused,
    Infer,
    Inferred,
    Load,
    Loaded,
    Network,
    NullCalls,
    Profile,
    Profiled,
    Program,
    Reason,
    Refused,
    Reply,
    Request,
    Sample,
    Sampled,
    Tensor,
    Unload,
    Unloaded,
)


class ProtocolError(ValueError):
    """A line that is not a message of this protocol."""


def encode(message: Request[Any] | Reply) -> bytes:
    """Return the message as a line."""
    fields = {"kind": type(message).__name__, **vars(message)}
    return json.dumps(fields, separators=(",", ":"), default=vars).encode() + b"\n"


def decode_request(line: bytes) -> Request[Any]:
    """Return the request on a line that a worker reads."""
    message = _decode(line)
    if not isinstance(message, Request):
        raise ProtocolError(f"expected a request, found {type(message).__name__}")
    return message


def decode_reply(line: bytes) -> Reply:
    """Return the reply on a line that a worker wrote."""
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
    made: Request[Any] | Reply = _record(message, readers)(fields)
    return made


def _record(made: type[Any], readers: Mapping[str, Callable[[Any], Any]]) -> Callable[[Any], Any]:
    def read_record(fields: Any) -> Any:
        if not isinstance(fields, dict):
            raise ProtocolError("not an object")
        if fields.keys() != readers.keys():
            raise ProtocolError(f"{made.__name__} takes {sorted(readers)}, found {sorted(fields)}")
        values = {}
        for name, read in readers.items():
            try:
                values[name] = read(fields[name])
            except ProtocolError as error:
                raise ProtocolError(f"{made.__name__}.{name}: {error}") from None
        return made(**values)

    return read_record


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ProtocolError("not a text")
    return value


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ProtocolError("neither true nor false")
    return value


def _count(value: Any) -> int:
    # To Python, JSON's true is an int.
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ProtocolError("not a count")
    return value


def _whole_number(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise ProtocolError("not a whole number")
    return value


def _seconds(value: Any) -> float:
    # Python's JSON accepts Infinity and NaN.
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not 0 <= value < float("inf"):
        raise ProtocolError("not a number of seconds")
    return float(value)


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


def _array_type(value: Any) -> ArrayType:
    if not isinstance(value, list) or len(value) != 2:
        raise ProtocolError("not a shape and a dtype")
    return ArrayType(_shape(value[0]), _text(value[1]))


_GRAPH = {"symbol": _text, "shapes": _by_name(_shape), "dtypes": _by_name(_text)}
_OUTPUTS = _list(_list(_tensor))
_ARRAYS = _by_name(_array_type)
_network = _record(
    Network,
    {
        "symbol": _text,
        "inputs": _ARRAYS,
        "weights": _ARRAYS,
        "file": _text,
        "optimised": _flag,
        "values": _by_name(_whole_number),
    },
)
_program = _record(
    Program,
    {
        "network": _network,
        "producer": _optional(_network),
        "prelude": _optional(_network),
        "cold": _flag,
        "side_by_side": _flag,
        "between_bytes": _count,
    },
)
_NAMES = _list(_text)
_ROWS = _list(_list(_count))

_MESSAGES: dict[str, tuple[type[Any], dict[str, Callable[[Any], Any]]]] = {
    "Describe": (Describe, {}),
    "Infer": (Infer, _GRAPH),
    "Fuse": (Fuse, _GRAPH),
    "Load": (
        Load,
        {"program_id": _text, "program": _program, "memory_limit_bytes": _optional(_count), "check_values": _flag},
    ),
    "Sample": (Sample, {"programs": _NAMES, "warm": _count, "repeat": _count}),
    "Profile": (Profile, {"program": _text, "warm": _count, "repeat": _count}),
    "NullCalls": (NullCalls, {"count": _count}),
    "Unload": (Unload, {"programs": _NAMES}),
    "Described": (
        Described,
        {
            "python": _text,
            "framework": _text,
            "version": _text,
            "numpy": _text,
            "features": _NAMES,
            "fuses": _flag,
        },
    ),
    "Inferred": (Inferred, {"outputs": _OUTPUTS, "unknown": _list(_count)}),
    "Fused": (Fused, {"symbol": _text, "outputs": _OUTPUTS, "parts": _list(_list(_count))}),
    "Loaded": (Loaded, {"first_run_seconds": _seconds, "outputs": _list(_shape), "bytes": _count}),
    "Sampled": (Sampled, {"durations_ns": _ROWS}),
    "Profiled": (Profiled, {"nodes": _list(_count), "starts_ns": _ROWS, "durations_ns": _ROWS}),
    "Unloaded": (Unloaded, {}),
    "Refused": (Refused, {"reason": _reason, "message": _text, "node": _optional(_count)}),
}
