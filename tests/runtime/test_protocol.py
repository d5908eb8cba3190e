import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlbricks_tui.runtime.lines import ProtocolError, decode_reply, decode_request, encode
from dlbricks_tui.runtime.protocol import (
    ArrayType,
    Describe,
    Described,
    EngineOpened,
    Explain,
    Explained,
    Fuse,
    Fused,
    Generate,
    Generated,
    Held,
    Infer,
    Inferred,
    Load,
    Loaded,
    Network,
    NullCalls,
    OpenEngine,
    Program,
    Reason,
    Record,
    Recorded,
    Refused,
    Reply,
    Request,
    Said,
    Sample,
    Sampled,
    Tensor,
    TracedOperator,
    TracedRun,
    TracedRuns,
    TraceRuns,
    Unload,
    Unloaded,
    answers,
)

counts = st.integers(0, 2**40)
texts = st.lists(st.text(), max_size=3).map(tuple)
shapes = st.lists(counts, max_size=4).map(tuple)
tensors = st.builds(Tensor, st.none() | shapes, st.none() | st.text())
outputs = st.lists(st.lists(tensors, max_size=3).map(tuple), max_size=4).map(tuple)
shapes_by_name = st.dictionaries(st.text(), shapes, max_size=3)
texts_by_name = st.dictionaries(st.text(), st.text(), max_size=3)
arrays = st.dictionaries(st.text(), st.builds(ArrayType, shapes, st.text()), max_size=3)
numbers = st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False)
numbers_by_name = st.dictionaries(st.text(), st.lists(numbers, max_size=3).map(tuple), max_size=3)
places_by_name = st.dictionaries(st.text(), counts, max_size=3)
networks = st.builds(Network, st.text(), arrays, arrays, st.text(), st.booleans(), numbers_by_name, places_by_name)
held = st.builds(Held, shapes, st.text(), st.lists(numbers, max_size=3).map(tuple))
programs = st.builds(Program, networks, st.none() | networks, st.none() | networks)
lines = st.lists(st.builds(Said, st.text(), st.none() | counts), max_size=3).map(tuple)
operators = st.lists(st.builds(TracedOperator, counts, st.text(), counts, counts), max_size=3).map(tuple)
runs = st.lists(st.builds(TracedRun, counts, counts, counts, operators, lines), max_size=3).map(tuple)
requests = st.one_of(
    st.just(Describe()),
    st.builds(Infer, st.text(), shapes_by_name, texts_by_name),
    st.builds(Fuse, st.text(), shapes_by_name, texts_by_name, st.text()),
    st.builds(Record, networks),
    st.builds(OpenEngine, st.text(), counts),
    st.builds(Generate, counts, counts),
    st.builds(Load, st.text(), programs, st.none() | counts, st.booleans()),
    st.builds(Sample, texts, counts, counts),
    st.builds(TraceRuns, st.text(), counts, counts, st.booleans(), st.booleans()),
    st.builds(NullCalls, counts),
    st.builds(Explain, networks),
    st.builds(Unload, texts),
)
replies = st.one_of(
    st.builds(Described, st.text(), st.text(), st.text()),
    st.builds(Inferred, outputs, st.lists(counts, max_size=3).map(tuple)),
    st.builds(Fused, st.text(), outputs, st.lists(shapes, max_size=3).map(tuple)),
    st.builds(Recorded, st.lists(st.none() | held, max_size=3).map(tuple)),
    st.builds(EngineOpened, st.text(), st.floats(0, 1e9)),
    st.builds(Generated, counts, shapes, counts, counts),
    st.builds(Loaded, st.floats(0, 1e9), st.lists(shapes, max_size=3).map(tuple), counts),
    st.builds(Sampled, st.lists(shapes, max_size=3).map(tuple)),
    st.builds(TracedRuns, runs, st.booleans()),
    st.builds(Explained, lines),
    st.just(Unloaded()),
    st.builds(Refused, st.sampled_from(Reason), st.text(), st.none() | counts),
)
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
