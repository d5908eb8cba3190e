import json
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlbricks_tui.runtime import protocol
from dlbricks_tui.runtime.lines import ProtocolError, decode, encode
from dlbricks_tui.runtime.protocol import (
    Describe,
    Fuse,
    Infer,
    Inferred,
    Load,
    Network,
    Program,
    Reason,
    Reply,
    Request,
    answers,
)

numbers = st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False)
PLAIN: dict[str, st.SearchStrategy[Any]] = {
    "str": st.text(),
    "bool": st.booleans(),
    "int": st.integers(0, 2**40),
    "float": st.floats(0, 1e9),
    "Number": numbers,
    "Value": numbers | st.text(),
    "Reason": st.sampled_from(Reason),
}


def values_of(annotation: str) -> st.SearchStrategy[Any]:
    """Return the values of a type as protocol.py spells it."""
    if annotation.endswith(" | None"):
        return st.none() | values_of(annotation.removesuffix(" | None"))
    if annotation.startswith("tuple["):
        return st.lists(values_of(annotation[len("tuple[") : -len(", ...]")]), max_size=3).map(tuple)
    if annotation.startswith("Mapping[str, "):
        return st.dictionaries(st.text(), values_of(annotation[len("Mapping[str, ") : -1]), max_size=3)
    return PLAIN[annotation] if annotation in PLAIN else made(getattr(protocol, annotation))


def made(kind: Any) -> st.SearchStrategy[Any]:
    """Return all messages, or parts of them, of a class."""
    names: Any = [it.type for it in fields(kind)] if is_dataclass(kind) else kind.__annotations__.values()
    build: Callable[..., Any] = kind
    return st.tuples(*[values_of(getattr(it, "__forward_arg__", it)) for it in names]).map(lambda it: build(*it))


requests = st.one_of([made(kind) for kind in Request.__subclasses__()])
replies = st.one_of([made(kind) for kind in Reply.__subclasses__()])
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@given(requests | replies)
def test_a_message_is_one_line_that_reads_the_same(message: Request[Reply] | Reply) -> None:
    line = encode(message)
    assert line.count(b"\n") == 1
    read = decode(Reply, line) if isinstance(message, Reply) else decode(Request, line)
    # Also in the order of a network's inputs.
    assert (read, repr(read)) == (message, repr(message))


@given(st.binary())
def test_any_other_line_is_a_protocol_error(line: bytes) -> None:
    with pytest.raises(ProtocolError):
        decode(Reply, line)


@given(replies, st.data())
def test_a_reply_with_a_wrong_field_is_a_protocol_error_or_another_reply(reply: Reply, data: st.DataObject) -> None:
    fields = json.loads(encode(reply))
    fields[data.draw(st.sampled_from(sorted(fields)))] = data.draw(json_values)
    try:
        changed = decode(Reply, json.dumps(fields).encode())
    except ProtocolError:
        return
    # An accepted message has the declared types throughout: it can be sent and read again.
    assert decode(Reply, encode(changed)) == changed


@pytest.mark.parametrize(
    "line",
    [
        b'{"kind": "Refused", "reason": "malformed", "message": "m"}',
        b'{"kind": "Refused", "reason": "malformed", "message": "m", "node": -1}',
        b'{"kind": "Refused", "reason": "malformed", "message": "m", "node": true}',
        b'{"kind": "Refused", "reason": "malformed", "message": "m", "node": null, "more": 1}',
        b'{"kind": "Refused", "reason": "because", "message": "m", "node": null}',
        b'{"kind": "Inferred", "outputs": [[[[1], "float32", 0]]], "unknown": []}',
        b'{"kind": "Inferred", "outputs": [[[[1.5], "float32"]]], "unknown": []}',
        b'{"kind": "Loaded", "first_run_seconds": NaN, "allocates": false}',
        b'{"kind": "Loaded", "first_run_seconds": -1, "allocates": false}',
        b'{"kind": "Sampled", "durations_ns": [1, 2]}',
        b'{"kind": "reply"}',
        b'["Refused"]',
        b"[" * 100_000,
        b"",
    ],
)
def test_fields_are_never_guessed(line: bytes) -> None:
    with pytest.raises(ProtocolError):
        decode(Reply, line)


NETWORK: dict[str, Any] = json.loads(encode(Load("", Program(Network("", {}, {})))))["program"]["network"]
WRONG: dict[str, list[Any]] = {
    "inputs": [{"x": [[1], None]}, {"x": [[1]]}],
    "values": [{"x": 1}, {"x": [True]}, {"x": [[]]}, {"x": [float("nan")]}, {"x": [float("inf")]}, {"x": [None]}],
    "in_place": [{"x": -1}, {"x": "0"}, {"x": 0.0}, {"x": True}, {"x": None}, ["x"], None],
}


@pytest.mark.parametrize(
    ("field", "network"),
    [
        ("Load.program", None),
        ("Program.network", {"symbol": "", "inputs": {}}),
        *((f"Network.{name}", {**NETWORK, name: it}) for name, values in WRONG.items() for it in values),
    ],
)
def test_programs_with_missing_or_wrong_fields_are_refused(field: str, network: Any) -> None:
    content = json.loads(encode(Load("", Program(Network("", {}, {})))))
    content["program"] = None if network is None else {**content["program"], "network": network}
    with pytest.raises(ProtocolError, match=field):
        decode(Request, json.dumps(content).encode())


def test_requests_and_replies_are_distinguished() -> None:
    with pytest.raises(ProtocolError, match="expected a reply, found Describe"):
        decode(Reply, encode(Describe()))
    with pytest.raises(ProtocolError, match="expected a request, found Inferred"):
        decode(Request, encode(Inferred((), ())))


def test_each_request_has_a_reply_type() -> None:
    assert answers(Infer("", {}), Inferred((), ()))
    assert not answers(Fuse(Network("", {}, {})), Inferred((), ()))
