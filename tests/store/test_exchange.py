"""Results are exported to files and imported from them; what no measurement gives is named and refused."""

import csv
import dataclasses
import gzip
import json
import lzma
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import tinydb

from benchmarks.archive import ARCHIVE, unpack
from dlbricks_tui.store import documents, exchange, index
from dlbricks_tui.store.columns import COLUMNS
from dlbricks_tui.store.database import ResultsDatabase, Source
from dlbricks_tui.store.documents import (
    BrokenDocumentError,
    Document,
    ExchangeError,
    NoRoomError,
    OtherVersionError,
    to_document,
)
from dlbricks_tui.store.exchange import (
    ExportFormat,
    ImportReport,
    export_all,
    export_format,
    export_selection,
    import_file,
)
from dlbricks_tui.store.files import with_checksum
from dlbricks_tui.store.records import (
    BrickForm,
    LoadTest,
    Measurement,
    Proof,
    Provenance,
    Record,
    RuntimeRecord,
    System,
)
from dlbricks_tui.store.selections import OLDEST_FIRST, equal
from dlbricks_tui.store.statistics import pack_latencies, unpack_latencies
from dlbricks_tui.store.verification import check_plausible, verify
from tests.store.samples import (
    WHEN,
    brick,
    counts,
    end_to_end,
    failure,
    form,
    former_calibration,
    load_test,
    measurement,
    one_of_each,
    proof,
    provenance,
    run,
    runtime,
    system,
    write_file,
)


@pytest.fixture
def exported(tmp_path: Path) -> Path:
    """A file with a record of every kind, from a store of several generations."""
    path = tmp_path / "exported.json"
    with ResultsDatabase(tmp_path / "owner") as store:
        store.add(*one_of_each())
        store.compact()
        store.add(form(1), measurement(brick=brick(1), when="2026-11-20T08:00:00+00:00"), measurement())
        assert export_all(store, path) == 4
    return path


def test_export_import_export_gives_the_same_bytes_packed_or_not_and_a_second_import_changes_nothing(
    exported: Path, tmp_path: Path
) -> None:
    packed, again = tmp_path / "exported.json.gz", tmp_path / "again.json"
    packed.write_bytes(gzip.compress(exported.read_bytes()))
    for file in (exported, packed):
        with ResultsDatabase(tmp_path / f"vendor of {file.name}") as store:
            report = import_file(store, file)
            assert (report.new, report.known, report.conflicts, report.refused) == (14, 0, [], [])
            export_all(store, again)
            assert again.read_bytes() == exported.read_bytes()
            report = import_file(store, file)
            assert (report.new, report.known) == (0, 14)
            assert counts(store)["measurements"] == 3
            packed.write_bytes(packed.read_bytes()[:-30])
            with pytest.raises(ExchangeError, match="is packed and incomplete"):
                import_file(store, packed)
            packed.write_bytes(gzip.compress(exported.read_bytes()))


def test_an_import_that_a_full_disk_ends_tells_how_much_is_there(
    exported: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store_some = ResultsDatabase.add_imported

    def add(store: ResultsDatabase, records: list[Record], source: Source) -> int:
        if store.generation.index.rows:
            raise NoRoomError("the disk is full")
        return store_some(store, records, source)

    monkeypatch.setattr("dlbricks_tui.store.exchange._BATCH", 5)
    monkeypatch.setattr(ResultsDatabase, "add_imported", add)
    told = "^after 5 new records of .* were imported: the disk is full"
    with ResultsDatabase(tmp_path / "vendor") as store, pytest.raises(NoRoomError, match=told):
        import_file(store, exported)


def test_an_export_of_some_results_has_only_them_and_their_references(tmp_path: Path) -> None:
    path = tmp_path / "some.json"
    with ResultsDatabase(tmp_path / "owner") as store:
        store.add(*one_of_each(), form(1), system("other"), runtime("other"), run("r2"))
        store.add(measurement(brick=brick(1), system="other", runtime="other", run="r2"))
        assert export_selection(store.select(equal(system="other")), path) == 1
    with ResultsDatabase(tmp_path / "vendor") as store:
        import_file(store, path)
        assert store.records(BrickForm) == [form(1)]
        assert store.records(System) == [system("other")]
        assert store.records(RuntimeRecord) == [runtime("other")]
        assert {table: count for table, count in counts(store).items() if count} == {
            "bricks": 1, "systems": 1, "runtimes": 1, "runs": 1, "measurements": 1, "imports": 1
        }  # fmt: skip


def test_a_result_that_differs_from_the_stored_one_is_kept_beside_it(tmp_path: Path) -> None:
    stored = measurement(1.0)
    other = dataclasses.replace(measurement(2.0), uuid=stored.uuid)
    path = write_file(tmp_path / "file.json", to_document(other))
    with ResultsDatabase(tmp_path / "store") as store:
        store.add(form(), system(), runtime(), stored)
        report = import_file(store, path)
        (conflict,) = report.conflicts
        assert (report.new, conflict.table, conflict.stored) == (1, "measurements", stored.uuid)
        assert store.records(Measurement) == [dataclasses.replace(other, uuid=conflict.imported), stored]
        again = import_file(store, path)
        assert (again.new, again.known, again.conflicts) == (0, 1, [])


def test_a_file_rewritten_by_plain_tinydb_can_be_imported(exported: Path, tmp_path: Path) -> None:
    with tinydb.TinyDB(exported) as database:
        database.table("mine").insert({"note": "added by hand"})
        database.table("measurements").update({"context": "changed by hand"}, doc_ids=[1])
    assert exported.read_bytes().count(b"\n") == 0
    with ResultsDatabase(tmp_path / "vendor") as store:
        report = import_file(store, exported)
        assert report.new == 14
        assert len(store.select(equal(context="changed by hand"))) == 1
    assert [str(each).partition(") ")[2] for each in report.refused] == [
        "(document 1 of table mine) is of a table that dlbricks does not have: mine"
    ]


def test_the_file_of_a_compacted_store_can_be_imported_and_its_journal_cannot(tmp_path: Path) -> None:
    with ResultsDatabase(tmp_path / "owner") as store:
        store.add(*one_of_each())
        path = store.compact()
    with ResultsDatabase(tmp_path / "vendor") as store:
        assert import_file(store, path).new == 11
        with pytest.raises(ExchangeError, match="is part of a store"):
            import_file(store, tmp_path / "owner" / "journal-0.jsonl")


def test_damaged_lines_are_named_and_the_others_imported(exported: Path, tmp_path: Path) -> None:
    content = exported.read_bytes()
    for number, damaged in enumerate((content.replace(b'"context":"plain"', b'"context":"plein"', 1), content[:-200])):
        exported.write_bytes(damaged)
        with ResultsDatabase(tmp_path / str(number)) as store:
            report = import_file(store, exported)
        assert (report.new, len(report.refused)) == (13, 1)
        assert number or report.refused[0].reason == "does not agree with its checksum"


@pytest.mark.parametrize("torn", [b"", b'"1": {"check":"0'], ids=["between lines", "in a line"])
def test_a_file_that_is_cut_off_tells_how_much_is_missing(exported: Path, tmp_path: Path, torn: bytes) -> None:
    lines = exported.read_bytes().splitlines(keepends=True)[:20]
    there = sum(b'"check"' in it for it in lines) - 1
    exported.write_bytes(b"".join(lines) + torn)
    with ResultsDatabase(tmp_path / "vendor") as store:
        # Also if all that is left is known.
        for new in (there, 0):
            report = import_file(store, exported)
            assert (report.new, report.known) == (new, there - new)
            assert [it.reason for it in report.refused] == [f"is cut off ({there} of 14 documents come before it)"]
            assert report.refused[0].line == 21


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"key": "ab" * 32}, "has a brick key that is not the hash of its canonical form"),
        ({"uuid": "ab" * 16}, "has a uuid that is not the hash of its content"),
        ({"canonical": 5}, "has a wrong value: 5 is not a text"),
        ({"table": "secrets"}, "is of a table that dlbricks does not have: secrets"),
        ({"schema": 0}, "has the unknown schema 0"),
    ],
)
def test_a_forged_brick_is_refused(tmp_path: Path, change: Document, complaint: str) -> None:
    path = write_file(tmp_path / "file.json", {**to_document(form()), **change}, to_document(form(1)))
    with ResultsDatabase(tmp_path / "store") as store:
        report = import_file(store, path)
        assert store.records(BrickForm) == [form(1)]
    assert [each.reason for each in report.refused] == [complaint] or complaint in report.refused[0].reason


def imported_beside_a_good_one(tmp_path: Path, *forged: Document) -> ImportReport:
    """Import forged documents before a good one, with all their references."""
    path = write_file(tmp_path / "file.json", *forged, to_document(measurement()))
    with ResultsDatabase(tmp_path / "store") as store:
        store.add(form(), system(), runtime())
        return import_file(store, path)


def with_statistic(**wrong: float) -> Document:
    return {"statistics": {**to_document(measurement())["statistics"], **wrong}}


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"samples_ms": [-1.0] * 10}, "has an impossible sample"),
        ({"samples_ms": []}, "has 0 samples"),
        ({"samples_ms": [1.0] * 10}, "has a trimmed mean that does not follow from its samples"),
        (with_statistic(trimmed_mean_ms=-1.0), "has a trimmed mean that does not follow from its samples"),
        (with_statistic(median_ms=5.0), "has a median that does not follow from its samples"),
        (with_statistic(minimum_ms=0.0), "has a minimum that does not follow from its samples"),
        (with_statistic(spread_ms=-0.1), "has a spread that does not follow from its samples"),
        (with_statistic(count=11), "has a count that does not follow from its samples"),
        (with_statistic(low_ms=0.0), "has an interval that is not among its samples"),
        (with_statistic(low_ms=1.04, high_ms=1.01), "has an interval that is not among its samples"),
        ({"when": "2999-01-01T00:00:00+00:00"}, "is from the future: 2999-01-01T00:00:00+00:00"),
        ({"noise": {"warm_up": 10}}, "has a warm-up of 10 samples"),
        ({"batch_size": 1 << 40}, "has an impossible batch size"),
        ({"batch_size": -1}, "has an impossible batch size"),
        ({"run": "r" * 200_000}, "has a text of 200,000 letters"),
        ({"noise": {"load": 1e300}}, "has an impossibly large number"),
        ({"brick": "ab" * 32}, f"is of brick '{'ab' * 20}', which is described nowhere"),
        ({"system": "another"}, "is of system 'another', which is described nowhere"),
        ({"runtime": "another"}, "is of runtime 'another', which is described nowhere"),
        (to_document(failure(runtime="another")), "is of runtime 'another', which is described nowhere"),
    ],
)
def test_an_impossible_result_is_refused(tmp_path: Path, change: Document, complaint: str) -> None:
    report = imported_beside_a_good_one(tmp_path, {**to_document(measurement()), **change})
    assert [each.reason for each in report.refused] == [complaint]
    assert report.new == 1


def test_an_older_result_that_does_not_state_its_warm_up_is_imported(tmp_path: Path) -> None:
    stated = {**to_document(measurement()), "uuid": "ab" * 16}
    samples = [9.0, 8.0, *stated["samples_ms"]]
    report = imported_beside_a_good_one(tmp_path, {**stated, "samples_ms": samples, "noise": {"shared": 0.01}})
    assert (report.new, report.refused) == (2, [])
    (tmp_path / "other").mkdir()
    report = imported_beside_a_good_one(tmp_path / "other", {**stated, "samples_ms": samples, "noise": {"warm_up": 1}})
    assert len(report.refused) == 1


def sparse(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(1 << 40)


@pytest.mark.parametrize(
    ("write", "complaint"),
    [
        (lambda path: path.write_bytes(gzip.compress(b" " * (32 << 20))), "unpacks to more than 4 MiB"),
        (sparse, "has a line of more than 128 MiB"),
        (lambda path: path.write_bytes(b"x\n" * 1_000_000), "has 10,000 lines that cannot be"),
        (os.mkfifo, "is not a regular file"),
    ],
    ids=["bomb", "endless line", "damaged lines", "pipe"],
)
def test_a_hostile_file_is_refused_in_one_line_before_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, write: Callable[[Path], object], complaint: str
) -> None:
    monkeypatch.setattr(exchange, "_SMALL_BYTES", 4 << 20)
    write(tmp_path / "file.gz")
    with ResultsDatabase(tmp_path / "store") as store, pytest.raises(ExchangeError, match=complaint) as error:
        import_file(store, tmp_path / "file.gz")
    assert "\n" not in str(error.value)


def test_a_file_of_a_newer_or_an_unreleased_version_is_refused(tmp_path: Path) -> None:
    newer, old = write_file(tmp_path / "newer.json", {**to_document(form()), "schema": 99}), tmp_path / "old.json"
    head = {"table": "dlbricks", "schema": 3, "format": "dlbricks results", "documents": 1}
    old.write_bytes(b'{"dlbricks": {\n"1": %s\n}}\n' % with_checksum(json.dumps(head).encode()))
    with ResultsDatabase(tmp_path / "store") as store:
        for path, complaint in ((newer, r"newer.json was .* by a newer"), (old, r"old.json .* version 0\.2")):
            with pytest.raises(OtherVersionError, match=complaint):
                import_file(store, path)


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        *(
            (it, r"nothing in .*file\.json can be read")
            for it in (b"nonsense\n", b"{", b'{"a": [1, 2]}', b"[" * 100_000, b"\x00\xff" * 100, b'"x"')
        ),
        (b"", r"file\.json is empty"),
        (None, r"cannot read .*file\.json: No such file"),
    ],
)
def test_a_file_of_another_kind_or_none_is_refused_by_name_and_nothing_is_stored(
    tmp_path: Path, content: bytes | None, complaint: str
) -> None:
    path = tmp_path / "file.json"
    if content is not None:
        path.write_bytes(content)
    with ResultsDatabase(tmp_path / "store") as store, pytest.raises(ExchangeError, match=complaint):
        import_file(store, path)
    if content != b"":
        with pytest.raises(ExchangeError, match=complaint):
            exchange.read_export(path, (System,))
    assert not [it for it in tmp_path.iterdir() if it != path]


def test_an_export_to_a_missing_folder_is_refused_and_leaves_no_file(tmp_path: Path) -> None:
    with (
        ResultsDatabase(tmp_path / "store") as store,
        pytest.raises(ExchangeError, match=r"cannot write .*: No such file"),
    ):
        export_all(store, tmp_path / "nowhere" / "file.json")


def test_an_export_is_read_into_memory_as_an_import_would_check_it(exported: Path) -> None:
    records, refused = exchange.read_export(exported, (System, RuntimeRecord))
    assert {type(it) for it in records} == {System, RuntimeRecord} and refused == []
    with exported.open("ab") as file:
        file.write(b'"9": {"check":"00000000","table":"systems"}\n')
    damaged, refused = exchange.read_export(exported, (System, RuntimeRecord))
    assert damaged == records and len(refused) == 1


def test_constants_of_earlier_versions_are_left_out(exported: Path, tmp_path: Path) -> None:
    report = imported_beside_a_good_one(tmp_path, former_calibration())
    assert (report.new, report.refused) == (1, [])
    # Plain TinyDB writes the whole file on one line.
    with tinydb.TinyDB(exported) as database:
        database.table("calibrations").insert({"uuid": 7})
    with ResultsDatabase(tmp_path / "other") as store:
        report = import_file(store, exported)
        assert (report.new, report.refused) == (14, [])
        assert "calibrations" not in store.tables()


HOSTILE = "a\x1b[2J\r\nb"


@pytest.fixture
def store(tmp_path: Path) -> ResultsDatabase:
    """A store with a brick and a model measured, the model under a name with control codes."""
    store = ResultsDatabase(tmp_path / "store")
    store.add(form(), system(), runtime(), measurement(), end_to_end(name=HOSTILE))
    return store


def test_the_suffix_sets_the_format(store: ResultsDatabase, tmp_path: Path) -> None:
    for expected, names in {
        ExportFormat.JSON: ("x.json", "x"),
        ExportFormat.PACKED_JSON: ("x.JSON.gz",),
        ExportFormat.CSV: ("x.csv", "x.2026.CSV"),
        ExportFormat.JSON_LINES: ("x.jsonl",),
    }.items():
        assert {export_format(Path(name)) for name in names} == {expected}
    for name in ("x.txt", "x.csv.gz", "x.xlsx", "x.csv.bak"):
        with pytest.raises(ExchangeError, match=r"is no format of an export: name a \.json or .*\.csv"):
            export_all(store, tmp_path / name)
        assert not (tmp_path / name).exists()


@pytest.mark.parametrize("whole", [True, False], ids=["file", "selection"])
def test_a_csv_file_has_a_line_per_result_with_all_columns(whole: bool, store: ResultsDatabase, tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    count = export_all(store, path) if whole else export_selection(store.select(order=OLDEST_FIRST), path)
    header, *rows = csv.reader(path.read_text().splitlines())
    assert count == len(rows) == 2
    assert header == list(COLUMNS)
    assert {row[header.index("name")] for row in rows} == {"Convolution 3x3/2 1x64x56x0", r"a\x1b[2J\r\nb"}


def test_json_lines_have_an_object_per_result(store: ResultsDatabase, tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    assert export_selection(store.select(equal(of="model")), path) == 1
    (line,) = path.read_text().splitlines()
    assert json.loads(line)["name"] == HOSTILE
    with pytest.raises(ExchangeError, match=r"name a \.json or \.json\.gz file of `dlbricks results export`"):
        import_file(store, path)


LARGEST_BYTES = 3_000_000


@pytest.mark.soak
def test_committed_results_can_be_imported(tmp_path: Path) -> None:
    assert ARCHIVE.stat().st_size <= LARGEST_BYTES
    content = json.loads(lzma.decompress(ARCHIVE.read_bytes()))
    assert len({it["id"] for it in content["systems"]}) == 3
    expected = (({"mxnet", "onnxruntime", "openvino"}, 30_000), ({"onnxruntime", "openvino"}, 3_000))
    for path, (frameworks, bricks) in zip(unpack(ARCHIVE, tmp_path), expected, strict=True):
        with ResultsDatabase(tmp_path / path.stem) as store:
            report = import_file(store, path)
            assert (report.refused, report.conflicts, report.known) == ([], [], 0)
            assert {it.framework for it in store.runtimes()} == frameworks
            assert len(store.select(equal(of="brick", good=True), order=())) > bricks


CHANGED = "mxnet-1.9.1 threads-1"
LATENCIES_NS = unpack_latencies(load_test().latencies)
IMPOSSIBLE: tuple[tuple[Callable[..., Any], dict[str, Any], str], ...] = (
    (proof, {"gain": 0.5, "gain_high": 0.6}, "has a gain that does not follow from its samples"),
    (proof, {"gain_low": 0.9}, "has a gain that is outside of its interval"),
    (proof, {"samples_ms": (-1.0,) * 10}, "has an impossible sample"),
    (proof, {"changed_batch_size": 0}, "has an impossible batch size"),
    (proof, {"after": proof().before}, "has a trimmed mean that does not follow from its samples"),
    (proof, {"changed_samples_ms": proof().changed_samples_ms * 2}, "does not follow from its samples"),
    (provenance, {"run": ""}, "is of no run"),
    (provenance, {"when": "2126-11-21T08:00:00+00:00"}, "is from the future"),
    (provenance, {"when": "0001-01-01T00:00:00+14:00"}, "is from before 1970"),
    (provenance, {"packages": (("mxnet", 1.9),)}, "has a version of 'mxnet' that is no text"),
    (provenance, {"models": (("ab" * 32, "0f"),)}, "has no SHA-256 of model 'abab"),
    (provenance, {"models": (("ab" * 32, None),)}, "has no SHA-256 of model 'abab"),
    (provenance, {"host": tuple((str(number), "") for number in range(65))}, "has more than 64 packages"),
    (provenance, {"unmet": ("x" * 100_001,)}, "has a text of 100,001 letters"),
    (load_test, {"kind": "burst"}, "is of the unknown scenario 'burst'"),
    (load_test, {"percentile": 100.0}, "has the percentile 100"),
    (load_test, {"percentile": float("nan")}, "has an impossibly large number"),
    (load_test, {"bound_ms": -1.0}, "has an impossible bound, rate or time"),
    (load_test, {"rate": 0.0}, "has an impossible bound, rate or time"),
    (load_test, {"seconds": 0.0}, "has an impossible bound, rate or time"),
    (load_test, {"passing_ms": -0.1}, "has an impossible bound, rate or time"),
    (load_test, {"kind": "single"}, "has a rate, which a scenario of kind single does not have"),
    (load_test, {"rate": None}, "is of a server without a rate"),
    (load_test, {"reasons": ("too few queries",)}, "is valid and has reasons against it"),
    (load_test, {"instances": 0}, "has an impossible batch size, or number of instances or queries"),
    (load_test, {"queries": 699}, "has 700 latencies of 699 queries"),
    (load_test, {"queries": 350}, "has 700 latencies of 350 queries"),
    (load_test, {"latencies": pack_latencies([])}, "has 0 latencies of 700 queries"),
    (load_test, {"latencies": pack_latencies([-1, *LATENCIES_NS[1:]])}, "has an impossible latency"),
    (load_test, {"latencies": pack_latencies([1 << 60, *LATENCIES_NS[1:]])}, "has an impossible latency"),
    (load_test, {"latencies": "?"}, "latencies that cannot be read"),
    (load_test, {"latencies": load_test().latencies[:-8]}, "latencies that cannot be read"),
    (load_test, {"per_second": 400.0}, "has requests per second that do not follow from its queries"),
    (load_test, {"per_second": 4.0}, "has requests per second that do not follow from its queries"),
    (end_to_end, {"when": "2999-01-01T00:00:00+00:00"}, "is from the future"),
    (run, {"when": "2999-01-01T00:00:00+00:00"}, "is from the future"),
    (run, {"started": "2999-01-01T00:00:00+00:00"}, "is from the future"),
    (run, {"started": "yesterday"}, "has no time at which it started"),
    (run, {"measured": -1}, "has a count below zero"),
    (system, {"memory_bytes": -1}, "has a count below zero"),
    (runtime, {"threads": -1}, "has a count below zero"),
    (load_test, {"bound_ms": 9.0}, "is valid with too many requests over the bound"),
)


@pytest.mark.parametrize(("made", "changed", "complaint"), IMPOSSIBLE)
def test_a_record_that_cannot_come_from_a_measurement_is_refused(
    made: Callable[..., Any], changed: dict[str, Any], complaint: str
) -> None:
    check_plausible(made())
    with pytest.raises(BrokenDocumentError, match=complaint):
        check_plausible(replace(made(), **changed))


@pytest.mark.parametrize(
    "record",
    [
        # A gain is that of an item where the batch sizes differ.
        proof(30.0, 60.0, changed_batch_size=4, gain=0.5, gain_low=0.49, gain_high=0.51),
        load_test(kind="single", percentile=90.0, rate=None, sought=False, bound_ms=None),
        # Requests of eight samples, with a latency for each request.
        load_test(kind="multi", rate=None, sought=False, per_second=317.0),
        # All samples in one query.
        load_test(kind="offline", rate=None, sought=False, bound_ms=None, queries=1),
        load_test(valid=False, reasons=("the bound is not met",), bound_ms=9.0),
    ],
)
def test_unusual_records_are_plausible(record: Record) -> None:
    check_plausible(record)


def test_impossible_stored_results_are_named_and_no_others(tmp_path: Path) -> None:
    with ResultsDatabase(tmp_path) as store:
        store.add(*one_of_each(), form(1))
    found = verify(tmp_path)
    assert (found.damage, found.implausible) == ((), ())
    negative = replace(measurement(), samples_ms=(-1.0, *measurement().samples_ms[1:]))
    unrelated = replace(measurement(), statistics=measurement(5.0).statistics)
    unknown = measurement(brick=brick(7))
    with ResultsDatabase(tmp_path) as store:
        store.add(negative, unrelated, unknown)
    found = verify(tmp_path)
    assert {each.uuid: each.reason for each in found.implausible} == {
        negative.uuid: "has an impossible sample",
        unrelated.uuid: "has a trimmed mean that does not follow from its samples",
        unknown.uuid: f"is of brick '{brick(7)[:40]}', which is described nowhere",
    }
    assert {each.table for each in found.implausible} == {"measurements"}


def test_a_long_load_test_is_exported_and_imported_whole_to_the_nanosecond(tmp_path: Path) -> None:
    # More characters than any other text may have.
    latencies_ns = [8_000_000 + number * 7919 % 4_000_000 for number in range(40_000)]
    packed = pack_latencies(latencies_ns)
    assert len(packed) > 100_000 and list(unpack_latencies(packed)) == latencies_ns
    test = load_test(latencies=packed, queries=40_000, seconds=1000.0, per_second=40.0)
    with ResultsDatabase(tmp_path / "owner") as store:
        store.add(system(), runtime(), test)
        export_all(store, tmp_path / "all.json.gz")
    with ResultsDatabase(tmp_path / "vendor") as store:
        assert not import_file(store, tmp_path / "all.json.gz").refused
        assert store.records(LoadTest) == [test]


@pytest.mark.parametrize(("kind", "made"), [(Proof, proof), (LoadTest, load_test)])
def test_proofs_and_load_tests_are_found_newest_first_and_exported_with_results_of_their_models_alone(
    tmp_path: Path, kind: type[Proof | LoadTest], made: Callable[..., Record]
) -> None:
    file = tmp_path / "some.json"
    earlier = made(when="2026-11-20T08:00:00+00:00")
    other: Any = {"model": "cd" * 32, "name": "private"}
    with ResultsDatabase(tmp_path / "owner") as store:
        store.add(system(), runtime(), end_to_end(), end_to_end(**other))
        store.add(made(), earlier, made(**other), made(system="m5.large"))
        store.refresh()
        everywhere = store.proofs_on("c5.xlarge") if kind is Proof else store.load_tests_of("ab" * 32, "c5.xlarge")
        found = [it for it in everywhere if it.model == "ab" * 32]
        assert [it.when for it in found] == [WHEN, "2026-11-20T08:00:00+00:00"]
        assert found[1] == earlier
        export_selection(store.select("name=resnet50_v1"), file)
    with ResultsDatabase(tmp_path / "vendor") as store:
        assert not import_file(store, file).refused
        assert {it.name for it in store.records(kind)} == {"resnet50_v1"}


def test_the_newest_provenance_of_a_run_on_a_runtime_is_found(tmp_path: Path) -> None:
    earlier = provenance(when="2026-11-20T08:00:00+00:00", packages=(("mxnet", "1.9.0"),))
    with ResultsDatabase(tmp_path) as store:
        store.add(provenance(), earlier, provenance(run="r2"), provenance(runtime=CHANGED, evaluation="nightly"))
        assert store.provenance_of("r1", "mxnet-1.9.1") == store.records(Provenance)[0]
        changed = store.provenance_of("r1", CHANGED)
        assert changed is not None and changed.evaluation == "nightly"
        assert store.provenance_of("r3", "mxnet-1.9.1") is None


def test_an_export_has_the_provenance_of_its_results_proofs_and_load_tests_that_goes_with_their_runtime(
    tmp_path: Path,
) -> None:
    file, proved, test = tmp_path / "some.json", proof(), load_test()
    other: Any = {"run": "r2", "model": "cd" * 32, "name": "private"}
    kept = [provenance(), provenance(run=proved.uuid, protocol=""), provenance(run=test.uuid, protocol="")]
    # A runtime without results in the export, which does not describe it.
    left_out = [provenance(run="r2"), provenance(runtime=CHANGED), provenance(run=proved.uuid, runtime=CHANGED)]
    with ResultsDatabase(tmp_path / "owner") as store:
        store.add(system(), runtime(), runtime(CHANGED), run(), run("r2"), end_to_end(), end_to_end(**other))
        store.add(proved, test, *kept, *left_out)
        export_selection(store.select("name=resnet50_v1"), file)
    with ResultsDatabase(tmp_path / "vendor") as store:
        assert not import_file(store, file).refused
        assert sorted(it.uuid for it in store.records(Provenance)) == sorted(it.uuid for it in kept)
    text = file.read_text().splitlines(keepends=True)
    file.write_text("".join(line for line in text if '"framework"' not in line))
    with ResultsDatabase(tmp_path / "another vendor") as store:
        assert [
            it.reason for it in import_file(store, file).refused if "provenance" in it.reason or "runtime" in it.reason
        ]
        assert store.records(Provenance) == []


def test_the_provenance_of_a_load_test_is_deleted_with_it_and_that_of_a_run_stays(tmp_path: Path) -> None:
    test, result = load_test(), end_to_end()
    with ResultsDatabase(tmp_path) as store:
        store.add(result, test, provenance(run=test.uuid), provenance())
        assert store.delete([test.uuid, result.uuid]) == 2
        assert [it.run for it in store.records(Provenance)] == ["r1"]


def test_provenance_that_a_version_without_its_table_has_indexed_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ResultsDatabase(tmp_path) as store:
        store.add(provenance())
    with monkeypatch.context() as earlier:
        known = {name: it for name, it in documents.TABLES.items() if name != "provenance"}
        earlier.setattr(documents, "TABLES", known)
        earlier.setattr(index, "TABLES", documents.TABLES)
        with ResultsDatabase(tmp_path) as store:
            store.generation.save_index()
    with ResultsDatabase(tmp_path) as store:
        assert store.provenance_of("r1", "mxnet-1.9.1") is not None
