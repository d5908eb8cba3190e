"""The messages of the protocol as lines: one JSON object each, checked strictly when read.

Both sides import this module, so it uses only the syntax and the standard library of Python 3.7.
"""

from __future__ import annotations

import json
from dataclasses import fields
from typing import TYPE_CHECKING, Any, TypeVar

from dlbricks_tui.runtime import protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    Reader = Callable[[Any], Any]


Message = TypeVar("Message")


class ProtocolError(ValueError):
    """A line that is not a message of this protocol."""


def encode(message: protocol.Request[Any] | protocol.Reply) -> bytes:
    content = {"kind": type(message).__name__, **vars(message)}
    return json.dumps(content, separators=(",", ":"), default=vars).encode() + b"\n"


def decode(expected: type[Message], line: bytes) -> Message:
    """Return the message on a line: a request that a worker reads, or a reply that it wrote."""
    try:
        content = json.loads(line.decode())
    except (ValueError, RecursionError) as error:
        raise ProtocolError(f"not JSON: {error}") from None
    if not isinstance(content, dict):
        raise ProtocolError("not a JSON object")
    kind = content.pop("kind", None)
    if not isinstance(kind, str) or kind not in _MESSAGES:
        raise ProtocolError(f"no message of the kind {kind!r}")
    message = _MESSAGES[kind](content)
    if not isinstance(message, expected):
        raise ProtocolError(f"expected a {expected.__name__.lower()}, found {kind}")
    return message


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
    if not isinstance(value, int) or isinstance(value, bool):
        raise ProtocolError("not a whole number")
    if value < 0:
        raise ProtocolError("not a count")
    return value


def _number(value: Any) -> float:
    # Python's JSON accepts Infinity and NaN. A whole number stays one: a float has too few digits for some.
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not abs(value) < float("inf"):
        raise ProtocolError("not a number")
    return value


def _seconds(value: Any) -> float:
    if _number(value) < 0:
        raise ProtocolError("not a number of seconds")
    return float(value)


def _reason(value: Any) -> protocol.Reason:
    try:
        return protocol.Reason(value)
    except ValueError:
        raise ProtocolError(f"no reason of the name {value!r}") from None


def _row(made: Any) -> Reader:
    """Return a reader of a NamedTuple, which is a list of its fields."""
    readers = [_reader_of(getattr(it, "__forward_arg__", it)) for it in made.__annotations__.values()]

    def read_row(value: Any) -> Any:
        if not isinstance(value, list) or len(value) != len(readers):
            raise ProtocolError(f"not a list of {', '.join(made._fields)}")
        return made(*[read(value[place]) for place, read in enumerate(readers)])

    return read_row


def _list_of(read: Reader) -> Reader:
    def read_list(value: Any) -> tuple[Any, ...]:
        if not isinstance(value, list):
            raise ProtocolError("not a list")
        return tuple([read(item) for item in value])

    return read_list


def _by_name(read: Reader) -> Reader:
    def read_by_name(value: Any) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise ProtocolError("not an object")
        return {name: read(item) for name, item in value.items()}

    return read_by_name


def _record(made: type[Any]) -> Reader:
    """Return a reader of a dataclass, which takes exactly its fields."""
    readers = {it.name: _reader_of(it.type) for it in fields(made)}

    def read_record(content: Any) -> Any:
        if not isinstance(content, dict):
            raise ProtocolError("not an object")
        if content.keys() != readers.keys():
            raise ProtocolError(f"{made.__name__} takes {sorted(readers)}, found {sorted(content)}")
        values = {}
        for name, read in readers.items():
            try:
                values[name] = read(content[name])
            except ProtocolError as error:
                raise ProtocolError(f"{made.__name__}.{name}: {error}") from None
        return made(**values)

    return read_record


def _reader_of(annotation: Any) -> Reader:
    """Return a reader for a type as protocol.py spells it: Python 3.7 cannot evaluate the spelling."""
    if annotation.endswith(" | None"):
        read = _reader_of(annotation[: -len(" | None")])
        return lambda value: None if value is None else read(value)
    if annotation.startswith("tuple["):
        return _list_of(_reader_of(annotation[len("tuple[") : -len(", ...]")]))
    if annotation.startswith("Mapping[str, "):
        return _by_name(_reader_of(annotation[len("Mapping[str, ") : -1]))
    return _READERS[annotation]


_READERS: dict[str, Reader] = {
    "str": _text,
    "bool": _flag,
    "int": _count,
    "Number": _number,
    "Value": lambda value: value if isinstance(value, str) else _number(value),
    "float": _seconds,
    "Reason": _reason,
}
# Each reader needs those of its parts.
for _part in (
    protocol.Tensor,
    protocol.ArrayType,
    protocol.Held,
    protocol.Said,
    protocol.TracedOperator,
    protocol.ServedAnswer,
):
    _READERS[_part.__name__] = _row(_part)
for _whole in (protocol.Network, protocol.Program, protocol.TracedRun):
    _READERS[_whole.__name__] = _record(_whole)
_MESSAGES = {
    kind.__name__: _record(kind) for base in (protocol.Request, protocol.Reply) for kind in base.__subclasses__()
}
