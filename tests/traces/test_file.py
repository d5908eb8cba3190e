"""Traces as files: all of a trace comes back, each broken file is refused in one line, and each is found."""

import gzip
import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

from dlbricks_tui.traces.file import (
    find_trace,
    read_header,
    read_trace,
    rendered,
    stored_traces,
    trace_path,
    write_trace,
)
from dlbricks_tui.traces.trace import Trace, TraceError, TraceSpan, Track, TrackKind
from tests.traces.sample_traces import sample_trace, traces

Document = dict[str, Any]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "traces" / "one.json.gz"


def refusal(file: Path, read: Callable[[Path], object] = read_trace) -> str:
    with pytest.raises(TraceError) as refused:
        read(file)
    told = str(refused.value)
    assert told.count("\n") == 0
    assert len(told) < 600
    assert str(file) in told
    return told


def forge(file: Path, change: Callable[[Document], object]) -> None:
    document = json.loads(rendered(sample_trace()))
    change(document)
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(gzip.compress(json.dumps(document).encode()))


def spans_of(document: Document) -> Document:
    """The columns of the layers."""
    found: Document = document["levels"][1]["tracks"][1]["spans"]
    return found


@given(trace=traces())
@settings(max_examples=25)
def test_any_trace_is_read_as_it_was_written(trace: Trace, tmp_path_factory: pytest.TempPathFactory) -> None:
    file = tmp_path_factory.mktemp("any") / "trace.json.gz"
    write_trace(trace, file)
    found = read_trace(file)
    assert found == trace
    # 1 and true are equal in Python.
    assert repr(found) == repr(trace)
    content = file.read_bytes()
    write_trace(trace, file)
    assert file.read_bytes() == content and [it.name for it in file.parent.iterdir()] == [file.name]


def test_the_header_is_read_without_the_rest(file: Path) -> None:
    write_trace(sample_trace(), file)
    text = gzip.decompress(file.read_bytes()).decode()
    file.write_bytes(gzip.compress((text.partition("\n")[0] + "\n and what is no JSON").encode()))
    header = read_header(file)
    assert (header.id, header.model, header.batch_size) == ("20261127-071500-ab12", "three layers", 1)
    assert refusal(file)


def with_layers(*spans: TraceSpan) -> Trace:
    """The sample trace with the model level alone, which has these spans."""
    track = Track(name="layers", kind=TrackKind.LAYERS, spans=spans)
    return sample_trace(levels=(replace(sample_trace().levels[0], tracks=(track,)),))


def test_many_spans_take_a_few_bytes_each(file: Path) -> None:
    spans = tuple(
        TraceSpan(
            name=f"layer_with_a_long_name_{number % 200}",
            start_ns=number * 17_123 + number % 97,
            duration_ns=16_000 + number % 613,
            inference=number % 2,
            layer=number % 3,
            details=(("kernel", f"kernel_{number % 7}"), ("input", "nChw16c")),
        )
        for number in range(20_000)
    )
    write_trace(with_layers(*spans), file)
    assert file.stat().st_size < 10 * len(spans)
    assert read_trace(file).levels[0].tracks[0].spans == spans


def test_spans_that_overlap_are_not_written(file: Path) -> None:
    spans = (TraceSpan(name="a", start_ns=0, duration_ns=10), TraceSpan(name="b", start_ns=9, duration_ns=10))
    with pytest.raises(TraceError, match="overlap in the track 'layers'"):
        write_trace(with_layers(*spans), file)
    assert not file.exists()
    (file.parent.parent / "file").touch()
    with pytest.raises(TraceError, match="cannot write"):
        write_trace(sample_trace(), file.parent.parent / "file" / "trace.json.gz")


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (lambda it: it.update(schema=2), "schema 2, this version reads 1"),
        (lambda it: it.update(format="other"), "is not a dlbricks-trace file"),
        (lambda it: it.pop("model_key"), "model_key"),
        (lambda it: it.update(extra=1), "extra"),
        (lambda it: it.update(when="yesterday"), "time"),
        (lambda it: it.update(batch_size=0), "batch size"),
        (lambda it: it.update(graph_level="molten"), "molten"),
        (lambda it: it["layers"]["index"].__setitem__(0, 1), "same index"),
        (lambda it: it["layers"]["brick"].pop(), "differ in length"),
        (lambda it: it["layers"]["brick_ms"].__setitem__(0, -1.0), "brick_ms"),
        (lambda it: it["layers"]["brick_ms"].__setitem__(0, float("inf")), "not a number"),
        (lambda it: it["levels"].append(it["levels"][0]), "a level twice"),
        (lambda it: it["levels"][0].update(level="atom"), "atom"),
        (lambda it: it["levels"][0].update(overhead_ms=[1.0, 2.0]), "several overheads"),
        (lambda it: it["levels"][0].update(totals={"cycles": 1}), "totals"),
        (lambda it: it["levels"][0].update(notes=[1]), "notes"),
        (lambda it: it["levels"][1]["tracks"][1].update(kind="train"), "train"),
        (lambda it: spans_of(it)["start_ns"].__setitem__(1, 0), "overlap in the track 'layers'"),
        (lambda it: spans_of(it)["duration_ns"].__setitem__(0, -5), "impossible time"),
        (lambda it: spans_of(it)["duration_ns"].pop(), "differ in length"),
        (lambda it: spans_of(it)["layer"].__setitem__(0, 3), "layer"),
        (lambda it: spans_of(it)["inference"].__setitem__(0, 2), "inference"),
        (lambda it: spans_of(it)["name"].__setitem__(0, 3), "name"),
        (lambda it: spans_of(it)["details"].__setitem__(0, 3), "details"),
        (lambda it: it["levels"][2]["counters"][0]["values"].pop(), "page faults"),
        (lambda it: it["levels"][2]["counters"][0].update(times_ns=[5, 1]), "page faults"),
        (lambda it: it.update(missing=[["thread"]]), "missing level"),
        (lambda it: it.update(missing=[["model", "none"]]), "a level twice"),
    ],
)
def test_a_changed_file_is_refused(file: Path, change: Callable[[Document], object], complaint: str) -> None:
    forge(file, change)
    assert complaint in refusal(file)


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"", "file"),
        (b"{}", "is no dlbricks-trace file, or is damaged"),
        (gzip.compress(b"{"), "is not JSON"),
        (gzip.compress(b"[1]"), "does not begin like one"),
        (gzip.compress(b'{"format":"dlbricks-trace","schema":1,"id":' + b"[" * 200_000), "nests too deep"),
        (gzip.compress(b'{"format":' + b"1," * 8_000_001), "values"),
        (gzip.compress(b'{"format":"dlbricks-trace","schema":1e999}'), "schema"),
        (gzip.compress(b" " * (1 << 26)), "holds more than 32 MiB"),
    ],
    ids=["empty", "not gzipped", "torn", "list", "deep", "many values", "infinite", "bomb"],
)
def test_another_file_is_refused(file: Path, content: bytes, complaint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dlbricks_tui.traces.file.MOST_BYTES", 1 << 25)
    file.parent.mkdir()
    file.write_bytes(content)
    assert complaint in refusal(file)
    assert refusal(file, read_header)


def test_a_truncated_damaged_or_missing_file_is_refused(file: Path) -> None:
    write_trace(sample_trace(), file)
    content = file.read_bytes()
    for length in range(0, len(content), 37):
        file.write_bytes(content[:length])
        assert refusal(file)
    # Beyond the header of gzip, some of whose bytes mean nothing, each damaged byte is noticed.
    for place in range(10, len(content), 29):
        file.write_bytes(content[:place] + bytes([content[place] ^ 0xFF]) + content[place + 1 :])
        assert refusal(file)
    file.unlink()
    assert "cannot read" in refusal(file)
    assert "cannot read" in refusal(Path(os.sep))


def stored(folder: Path, name: str, when: str) -> Path:
    path = trace_path(folder, name)
    write_trace(sample_trace(id=name, when=when), path)
    return path


def test_traces_are_listed_with_the_newest_last_and_found_by_the_beginning_of_their_ids(tmp_path: Path) -> None:
    first = stored(tmp_path, "ab1", "2026-11-27T08:00:00+00:00")
    other = stored(tmp_path, "abc2", "2026-11-26T08:00:00+00:00")
    (tmp_path / "broken.json.gz").write_bytes(b"no trace")
    (tmp_path / "notes.txt").touch()
    found = stored_traces(tmp_path)
    assert [it.header.id for it in found.traces] == ["abc2", "ab1"]
    assert [it.size_bytes for it in found.traces] == [it.path.stat().st_size for it in found.traces]
    (line,) = found.unreadable
    assert "broken.json.gz" in line
    assert {wanted: find_trace(tmp_path, wanted) for wanted in ("ab1", "abc", "last")} == {
        "ab1": first,
        "abc": other,
        "last": first,
    }


@pytest.mark.parametrize("wanted", ["", "ab", "zz", "../ab1", "last/"])
def test_other_ids_get_one_line(tmp_path: Path, wanted: str) -> None:
    stored(tmp_path / "traces", "ab1", "2026-11-27T08:00:00+00:00")
    stored(tmp_path / "traces", "ab2", "2026-11-27T08:00:00+00:00")
    with pytest.raises(TraceError, match="dlbricks trace --list"):
        find_trace(tmp_path / "traces", wanted)
    assert stored_traces(tmp_path / "none").traces == ()
    with pytest.raises(TraceError, match="no trace is called 'last'"):
        find_trace(tmp_path / "none", "last")
