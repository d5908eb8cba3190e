import dataclasses
import json
import re
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.documents import (
    TABLE_OF,
    TABLES,
    BrokenDocumentError,
    OtherVersionError,
    fields_of,
    record_of,
    to_document,
    to_record,
)
from dlbricks_tui.store.files import EntryKind, JournalEntry, entry_on, line_of
from dlbricks_tui.store.index import kind_of_label, label_of
from dlbricks_tui.store.records import Constants, Facts, Record, Statistics
from tests.store.samples import end_to_end, failure, form, measurement, run, runtime, system

numbers = st.floats(allow_nan=False, allow_infinity=False)
facts = st.dictionaries(st.text(), st.none() | st.booleans() | st.integers() | numbers | st.text()).map(
    lambda known: tuple(known.items())
)
strategies: dict[Any, st.SearchStrategy[Any]] = {
    Facts: facts,
    Constants: st.dictionaries(st.text(), numbers).map(lambda known: tuple(known.items())),
    Statistics: st.builds(
        Statistics,
        **dict.fromkeys(("trimmed_mean_ms", "median_ms", "minimum_ms", "spread_ms", "low_ms", "high_ms"), numbers),
        count=st.integers(),
    ),
    float: numbers,
    float | None: st.none() | numbers,
    tuple[float, ...]: st.lists(numbers).map(tuple),
}


def records(kind: type[Record]) -> st.SearchStrategy[Record]:
    hints = get_type_hints(kind)
    chosen = {name: strategies[hint] for name, hint in hints.items() if hint in strategies}
    if "when" in hints:
        chosen["when"] = st.datetimes(timezones=st.just(timezone.utc)).map(datetime.isoformat)
        chosen["uuid"] = st.uuids().map(lambda uuid: uuid.hex)
    return st.builds(kind, **chosen, **{name: st.from_type(hint) for name, hint in hints.items() if name not in chosen})


@given(st.sampled_from(list(TABLES.values())).flatmap(records))
def test_every_record_survives_a_round_trip(record: Record) -> None:
    table = TABLE_OF[type(record)]
    line = line_of(JournalEntry(EntryKind.PUT, table, 7, fields_of(record)))
    assert b"\n" not in line
    assert entry_on(line) == JournalEntry(EntryKind.PUT, table, 7, fields_of(record))
    assert record_of(table, entry_on(line).document or {}) == record
    assert to_record(to_document(record)) == record


def test_equal_definitions_have_equal_uuids_and_all_else_different_ones() -> None:
    assert to_document(system())["uuid"] == to_document(system())["uuid"]
    different = (system(), system(cores=8), runtime(), form(1), form(2), measurement(), measurement())
    assert len({to_document(each)["uuid"] for each in different}) == len(different)


@pytest.mark.parametrize(
    ("field", "value", "complaint"),
    [
        ("brick", 5, "5 is not a text"),
        ("batch_size", 1.5, "1.5 is not a whole number"),
        ("batch_size", True, "True is not a whole number"),
        ("samples_ms", ["1.0"], "'1.0' is not a number"),
        ("level", "melted", "'melted' is not a valid Level"),
        ("noise", {"load": [1, 2]}, "not a single value"),
        ("statistics", {"count": 3}, "lacks 'trimmed_mean_ms'"),
        ("statistics", [], "wrong value"),
    ],
)
def test_a_document_with_a_wrong_value_is_refused_with_the_reason(field: str, value: Any, complaint: str) -> None:
    document = {**to_document(measurement()), field: value}
    with pytest.raises(BrokenDocumentError, match=complaint):
        to_record(document)


def test_a_document_that_lacks_a_field_and_statistics_without_a_number_are_refused() -> None:
    document = to_document(measurement())
    del document["context"]
    with pytest.raises(BrokenDocumentError, match="lacks 'context'"):
        to_record(document)
    with pytest.raises(ValueError, match="finite"):
        dataclasses.replace(measurement().statistics, median_ms=float("nan"))


@pytest.mark.parametrize(
    ("field", "value"),
    [("when", "yesterday"), ("when", "2026-11-21T08:00:00"), ("uuid", ""), ("uuid", "AB" * 16), ("uuid", "ab" * 15)],
)
def test_an_event_without_a_time_or_a_uuid_cannot_exist(field: str, value: str) -> None:
    for record in (measurement(), end_to_end(), run(), failure()):
        with pytest.raises(ValueError, match=re.escape(repr(value)) if value != "yesterday" else value):
            replaced: Any = {field: value}
            dataclasses.replace(record, **replaced)


@pytest.mark.parametrize("facts", [[[None, None]], [["a", 1]], [], "a", None, {"a": [1]}, {"a": {}}])
def test_facts_are_an_object_with_single_values(facts: object) -> None:
    with pytest.raises(BrokenDocumentError, match="wrong value"):
        to_record({**to_document(system()), "facts": facts})


@pytest.mark.parametrize(
    ("canonical", "label"),
    [
        (form(28).canonical, "Convolution 3x3/2 1x64x56x28"),
        *(
            (json.dumps({"operators": operators, "data": [[[1, 3], "float32"]]}), f"{label} 1x3")
            for operators, label in (
                ([{"op": "relu"}], "relu"),
                ([{"op": "Pooling", "params": {"kernel": [7, 7]}}], "Pooling 7x7"),
                ([{"op": "Pooling", "params": {"kernel": [2, 3], "stride": [1, 1]}}], "Pooling 2x3"),
                ([{"op": "Pooling", "params": {"kernel": [2, 3], "stride": [1, 2]}}], "Pooling 2x3/1x2"),
                ([{"op": name} for name in "abcde"], "a+b+c+d+..."),
            )
        ),
        (json.dumps({"operators": [{"op": "zeros"}], "data": []}), "zeros"),
        ('{"data":[[null,"int64"]],"operators":[{"inputs":[],"op":"onnx."}]}', "onnx."),
        *((unknown, "") for unknown in ("", "nonsense", "[]", '{"operators": []}', '{"operators": [5], "data": []}')),
    ],
)
def test_a_label_names_operator_window_and_input(canonical: str, label: str) -> None:
    assert label_of(canonical) == label


def test_a_fused_operator_is_labelled_by_its_parts() -> None:
    conv = ["conv", [["kernel", [3, 3]], ["stride", [2, 2]]], [[0, 0], [1, 0]], []]
    inner = json.dumps(["variable", "variable", conv, ["relu", [], [[2, 0]], []], [[3, 0]]])
    fused = {"op": "mxnet._sg_mkldnn_conv", "params": {"with_act": True}, "inner": [inner]}
    assert label_of(json.dumps({"operators": [fused], "data": [[[1, 3], "float32"]]})) == "conv+relu 3x3/2 1x3"
    loop = {"op": "mxnet._foreach", "inner": [inner]}
    assert label_of(json.dumps({"operators": [loop], "data": []})) == "foreach"


@pytest.mark.parametrize(
    ("label", "kind"),
    [
        ("conv+relu 3x3/2 1x64x56x56", "convolution"),
        ("batch_norm+relu 1x64x56x56", "batchnorm"),
        ("a+b+c+conv+... 1x3", "convolution"),
        ("contrib_quantize 1x3", "quantize"),
        ("my_own 1x3", "other"),
        ("", "other"),
    ],
)
def test_a_label_tells_the_kind_of_its_brick(label: str, kind: str) -> None:
    assert kind_of_label(label).value == kind


def older(folder: Path) -> ResultsDatabase:
    return ResultsDatabase(folder)


def newer(folder: Path) -> ResultsDatabase:
    def rename_age(line: bytes) -> bytes:
        return line.replace(b'"age"', b'"years"')

    return ResultsDatabase(folder, schema=2, migrations={1: rename_age})


def test_documents_of_an_older_schema_are_migrated_as_they_are_read(tmp_path: Path) -> None:
    with older(tmp_path) as database:
        database.insert({"age": 7})
    with newer(tmp_path) as database:
        assert database.all() == [{"years": 7}]
        database.insert({"years": 8})
        # A compaction writes all lines in the newer schema.
        database.storage.compact()
        assert database.all() == [{"years": 7}, {"years": 8}]
    assert b'"age"' not in (tmp_path / "results-1.json").read_bytes()
    with pytest.raises(OtherVersionError, match="newer dlbricks"):
        older(tmp_path)


def test_a_schema_without_a_migration_is_damage(tmp_path: Path) -> None:
    with older(tmp_path) as database:
        database.insert({"age": 7})
    with ResultsDatabase(tmp_path, schema=2) as database:
        assert database.all() == []
    assert [each.reason for each in database.storage.generation.damage] == ["has the unknown schema 1"] * 2
