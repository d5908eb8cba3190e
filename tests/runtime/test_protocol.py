import json
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlbricks_tui.runtime import protocol
from dlbricks_tui.runtime.lines import ProtocolError, decode_reply, decode_request, encode
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


programs = made(Program)
requests = st.one_of([made(kind) for kind in Request.__subclasses__()])
replies = st.one_of([made(kind) for kind in Reply.__subclasses__()])
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@given(requests)
def test_a_request_survives_a_round_trip(request: Request[Reply]) -> None:
    assert decode_request(encode(request)) == request


@given(replies)
def test_a_reply_survives_a_round_trip(reply: Reply) -> None:
    assert decode_reply(encode(reply)) == reply


@given(programs)
def test_the_inputs_of_a_program_keep_their_order(program: Program) -> None:
    arrived = decode_request(encode(Load("it", program)))
    assert isinstance(arrived, Load)
    assert list(arrived.program.network.inputs) == list(program.network.inputs)


@given(requests | replies)
def test_a_message_is_one_line(message: Request[Reply] | Reply) -> None:
    assert encode(message).count(b"\n") == 1


@given(st.binary())
def test_any_other_line_is_a_protocol_error(line: bytes) -> None:
    with pytest.raises(ProtocolError):
        decode_reply(line)


@given(replies, st.data())
def test_a_reply_with_a_wrong_field_is_a_protocol_error_or_another_reply(reply: Reply, data: st.DataObject) -> None:
    fields = json.loads(encode(reply))
    fields[data.draw(st.sampled_from(sorted(fields)))] = data.draw(json_values)
    try:
        changed = decode_reply(json.dumps(fields).encode())
    except ProtocolError:
        return
    # An accepted message has the declared types throughout: it can be sent and read again.
    assert decode_reply(encode(changed)) == changed


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
        b'{"kind": "Loaded", "first_run_seconds": NaN, "outputs": [], "bytes": 1}',
        b'{"kind": "Loaded", "first_run_seconds": -1, "outputs": [], "bytes": 1}',
        b'{"kind": "Sampled", "durations_ns": [1, 2]}',
        b'{"kind": "reply"}',
        b'["Refused"]',
        b"[" * 100_000,
        b"",
    ],
)
def test_fields_are_never_guessed(line: bytes) -> None:
    with pytest.raises(ProtocolError):
        decode_reply(line)


@pytest.mark.parametrize(
    "program",
    [
        "null",
        '{"network": null, "producer": null, "prelude": null}',
        '{"network": {"symbol": "", "inputs": {}}, "producer": null, "prelude": null}',
        '{"network": {"symbol": "", "inputs": {"x": [[1], null]}, "weights": {}}, "producer": null, "prelude": null}',
        '{"network": {"symbol": "", "inputs": {"x": [[1]]}, "weights": {}}, "producer": null, "prelude": null}',
    ],
)
def test_programs_with_missing_fields_are_refused(program: str) -> None:
    line = f'{{"kind": "Load", "program_id": "", "program": {program}, "memory_limit_bytes": 1, "check_values": true}}'
    with pytest.raises(ProtocolError, match=r"Load\.program"):
        decode_request(line.encode())


def with_network(**fields: object) -> bytes:
    """Return a request to load a program whose network has these fields."""
    content = json.loads(encode(Load("", Program(Network("", {}, {})))))
    content["program"]["network"].update(fields)
    return json.dumps(content).encode()


@pytest.mark.parametrize("value", [1, [True], [[]], [float("nan")], [float("inf")], [None]])
def test_values_that_are_no_finite_numbers_are_refused(value: object) -> None:
    with pytest.raises(ProtocolError, match=r"Network\.values"):
        decode_request(with_network(values={"x": value}))


@pytest.mark.parametrize("places", [{"x": -1}, {"x": "0"}, {"x": 0.0}, {"x": True}, {"x": None}, ["x"], None])
def test_outputs_in_place_are_known_by_place(places: object) -> None:
    with pytest.raises(ProtocolError, match=r"Network\.in_place"):
        decode_request(with_network(in_place=places))


def test_requests_and_replies_are_distinguished() -> None:
    with pytest.raises(ProtocolError, match="expected a reply, found Describe"):
        decode_reply(encode(Describe()))
    with pytest.raises(ProtocolError, match="expected a request, found Inferred"):
        decode_request(encode(Inferred((), ())))


def test_each_request_has_a_reply_type() -> None:
    assert answers(Infer("", {}, {}), Inferred((), ()))
    assert not answers(Fuse("", {}, {}), Inferred((), ()))
