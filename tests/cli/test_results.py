import csv
import io
import json
import re
from pathlib import Path
from typing import Any

import pytest
import tinydb

from dlbricks_tui.cli.main import main
from dlbricks_tui.cli.results_output import table_lines
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.documents import fields_of, to_document
from tests.cli.people import Command, one_line
from tests.store.samples import (
    brick,
    end_to_end,
    form,
    line_of_record,
    load_test,
    measurement,
    one_of_each,
    proof,
    provenance,
    run,
    runtime,
    system,
)

FAST = measurement(0.5, when="2026-11-01T08:00:00.000000+00:00", uuid="0a" * 16)
SLOW = measurement(8.0, brick=brick(1), when="2026-11-02T08:00:00.000000+00:00", uuid="0b" * 16, flags=("drift",))
MODEL = end_to_end(30.0, when="2026-11-03T08:00:00.000000+00:00", uuid="ac" * 16)


class Terminal(io.StringIO):
    """A standard input that is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A data folder with three results."""
    with ResultsDatabase(tmp_path / "data" / "store") as store:
        store.add(form(0), form(1), system(), runtime(), FAST, SLOW, MODEL)
    return tmp_path / "data"


@pytest.fixture
def results(data: Path, capsys: pytest.CaptureFixture[str]) -> Command:
    """Run `dlbricks results ...` on it, and return its exit status, standard output and standard error."""

    def run(*arguments: str, folder: Path = data) -> tuple[int, str, str]:
        status = main(["--data-dir", str(folder), "results", *arguments])
        return status, *capsys.readouterr()

    return run


def test_the_json_list_has_all_documented_keys_for_every_result(results: Command) -> None:
    status, out, _ = results("list", "--json")
    assert status == 0
    listed = json.loads(out)
    assert [each["id"] for each in listed] == [MODEL.uuid, SLOW.uuid, FAST.uuid]
    assert {"brick", "context", "system", "runtime", "trimmed_mean_ms", "samples", "when"} <= listed[0].keys()
    assert listed[2]["brick"] == brick(0)
    assert listed[2]["trimmed_mean_ms"] == FAST.statistics.trimmed_mean_ms
    assert (listed[2]["samples"], listed[2]["when"]) == (10, FAST.when)


def test_json_lines_and_csv_have_the_same_content_as_json(results: Command) -> None:
    documents = json.loads(results("list", "--json")[1])
    assert [json.loads(line) for line in results("list", "--jsonl")[1].splitlines()] == documents
    rows = list(csv.DictReader(io.StringIO(results("list", "--csv")[1])))
    assert rows == [{name: str(value) for name, value in each.items()} for each in documents]


def test_the_list_is_filtered_sorted_cut_and_shows_the_columns_asked_for(
    results: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, out, err = results(
        "list", "of=brick", "--sort", "trimmed_mean_ms", "--columns", "name,good", "--limit", "1", "--csv"
    )
    assert out == "name,good\nConvolution 3x3/2 1x64x56x0,True\n"
    assert err == ""
    # From the top, as the help says.
    for sort in (["--sort", "-trimmed_mean_ms"], ["--sort=-trimmed_mean_ms"]):
        found = json.loads(results("list", *sort, "--json", "--columns", "id")[1])
        assert found == [{"id": each.uuid} for each in (MODEL, SLOW, FAST)]
    # Chosen columns are all shown.
    monkeypatch.setenv("COLUMNS", "80")
    chosen = "id,name,context,system,runtime,level,trimmed_mean_ms,samples,when"
    _, out, _ = results("list", "--columns", chosen)
    assert out.splitlines()[0].split() == chosen.upper().split(",")


@pytest.mark.parametrize("arguments", [("list",), ("show", brick(0)[:8])], ids=["list", "show"])
def test_tables_fit_80_columns_and_keep_the_columns_that_tell_results_apart(
    results: Command, arguments: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    _, out, _ = results(*arguments)
    table = out.split("\n\n")[-2 if arguments[0] == "show" else 0].splitlines()
    assert max(map(len, table)) <= 80
    if arguments[0] == "list":
        assert table[0].split()[:7] == ["MODEL", "RUNTIME", "THREADS", "BATCH", "MS", "AGE", "ID"]
    else:
        assert {"ID", "SYSTEM", "TRIMMED_MEAN_MS", "WHEN"} <= set(table[0].split())


def test_the_table_is_followed_by_its_share_of_all_results(results: Command) -> None:
    _, out, err = results("list", "--limit", "2")
    head, first, second = out.splitlines()
    assert head.split()[:3] == ["MODEL", "RUNTIME", "THREADS"]
    assert first.split()[0] == "resnet50_v1" and MODEL.uuid[:12] in first.split()
    assert "30.60" in first
    assert "8.160" in second
    assert err == "2 of 3 results shown\n"
    assert results("list", "nothing")[2] == "0 results\n"


def test_an_empty_store_has_an_empty_list(results: Command, tmp_path: Path) -> None:
    assert results("list", "--json", folder=tmp_path / "none") == (0, "[]\n", "")
    assert not (tmp_path / "none").exists()


def test_bad_input_is_one_line_and_status_2(results: Command, tmp_path: Path) -> None:
    refused: dict[tuple[str, ...], str] = {
        ("list", "colour=red"): "there is no column 'colour'",
        ("list", "--sort", "colour"): "there is no column 'colour'",
        ("list", "--columns", "id,colour"): "there is no column 'colour'",
        ("list", "--limit", "0"): "give a whole number from 1 to",
        ("list", "samples=x"): "needs a number",
        ("show", "zz"): "'zz' is no id or brick key",
        ("show", ""): "'' is no id or brick key",
        ("show", "ffff"): "no id of a result or load test and no brick key begins with ffff",
        ("show", "0"): "give more characters",
        ("delete",): "say which results to delete",
        ("delete", "good=no"): "--yes deletes without a question",
        ("import", "none.json"): "cannot read none.json",
        ("export", str(tmp_path), "--force"): f"cannot write {tmp_path}: Is a directory; nothing was exported",
        (): "required",
    }
    for arguments, complaint in refused.items():
        told = one_line(results(*arguments))
        assert told.startswith("dlbricks: error: ") and complaint in told


def test_a_result_is_shown_with_statistics_and_a_histogram(results: Command) -> None:
    status, out, _ = results("show", SLOW.uuid[:4])
    assert status == 0
    assert out.startswith("Convolution 3x3/2 1x64x56x1\n")
    assert json.loads(results("show", FAST.uuid, "--json")[1]) == {
        **to_document(FAST),
        "provenance": None,
        "origin": "own",
    }
    for part in ("trimmed mean  8.160 ms (95 % between", "good          no: drift", f"brick         {brick(1)}"):
        assert part in out
    assert re.search(r"8.000 ms +\d+  █", out)


def test_a_result_is_shown_with_where_it_comes_from(results: Command, data: Path) -> None:
    known = provenance(evaluation="nightly.toml", unmet=("turbo is on", "4 cores"))
    with ResultsDatabase(data / "store") as store:
        store.add(known)
    _, out, _ = results("show", MODEL.uuid)
    assert "evaluation    nightly.toml\nnot met       turbo is on; 4 cores\n" in out
    assert json.loads(results("show", MODEL.uuid, "--json")[1])["provenance"] == fields_of(known)


def test_a_brick_is_shown_with_all_its_results(results: Command, data: Path) -> None:
    _, out, _ = results("show", brick(0)[:10])
    assert brick(0) in out
    assert FAST.uuid[:12] in out
    assert "█" in out
    shown = json.loads(results("show", brick(0)[:10], "--json")[1])
    assert shown["canonical"] == form(0).canonical
    assert [each["id"] for each in shown["results"]] == [FAST.uuid]
    # A brick without a stored form is shown too.
    with ResultsDatabase(data / "store") as store:
        store.add(measurement(brick=brick(9)))
    status, out, _ = results("show", brick(9)[:10])
    assert status == 0 and out.startswith(brick(9))


def test_exported_results_can_be_imported_elsewhere(results: Command, tmp_path: Path) -> None:
    file, again = tmp_path / "file.json", tmp_path / "again.json"
    assert results("export", str(file)) == (0, "", f"3 results written to {file}\n")
    assert results("import", str(file), folder=tmp_path / "other") == (
        0,
        "",
        f"{file}: 7 new records, 0 known before\n",
    )
    status, out, _ = results("import", str(file), "--json", folder=tmp_path / "other")
    (document,) = json.loads(out)
    expected = {"path": str(file), "new": 0, "known": 7, "conflicts": [], "refused": [], "ignored": 0, "claims": []}
    (of_file,) = document.pop("files")
    assert document == expected
    assert (of_file["name"], of_file["signer"], of_file["refusal"]) == ("file.json", None, None)
    results("export", str(again), folder=tmp_path / "other")
    assert (status, again.read_bytes()) == (0, file.read_bytes())


def test_an_export_replaces_a_file_only_on_request(results: Command, tmp_path: Path) -> None:
    file = tmp_path / "file.json"
    file.write_text("precious")
    status, _, err = results("export", str(file))
    assert (status, file.read_text()) == (2, "precious")
    assert "--force" in err
    assert (
        results("export", str(file), "of=model", "--force", "--json")[1]
        == json.dumps({"path": str(file), "results": 1, "signature": None}) + "\n"
    )


def test_an_import_with_damaged_lines_names_them_and_ends_with_status_1(results: Command, tmp_path: Path) -> None:
    file = tmp_path / "file.json"
    results("export", str(file))
    file.write_bytes(file.read_bytes().replace(b"drift", b"drift!"))
    status, _, err = results("import", str(file), folder=tmp_path / "other")
    assert status == 1
    assert "6 new records" in err
    assert "file.json line 19 (byte" in err


def test_deleting_asks_and_takes_no_for_an_answer(results: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", Terminal("\n"))
    assert results("delete", "good=no") == (0, "", "Delete 1 of 3 results? [y/N]\n0 results deleted\n")
    monkeypatch.setattr("sys.stdin", Terminal("y\n"))
    assert results("delete", "good=no")[2].endswith("1 result deleted\n")
    assert results("list", "--columns", "id", "--csv")[1] == f"id\n{MODEL.uuid}\n{FAST.uuid}\n"
    assert results("delete", "of=brick", "--yes") == (0, "", "1 result deleted\n")
    assert results("delete", "--all", "--yes", "--json")[1] == '{"deleted": 1}\n'
    assert json.loads(results("list", "--json")[1]) == []


def test_a_load_test_is_shown_with_its_verdict_and_the_bound_in_a_histogram(results: Command, data: Path) -> None:
    test = load_test(uuid="1d" * 16)
    with ResultsDatabase(data / "store") as store:
        store.add(test)
    status, out, _ = results("show", "1d1d")
    assert status == 0
    assert "server: the highest rate with p99 within 20 ms" in out
    assert "p99.9         12.001 ms" in out
    assert "LoadGen: valid" in out
    assert "--- bound: 0 of 700 above it" in out
    assert json.loads(results("show", "1d1d", "--json")[1]) == {**to_document(test), "provenance": None}
    with ResultsDatabase(data / "store") as store:
        store.add(provenance(run=test.uuid))
    assert "\nversions    dlbricks 0.2.0" in results("show", "1d1d")[1]


def test_load_tests_and_proofs_are_deleted_by_their_ids_or_with_everything(results: Command, data: Path) -> None:
    with ResultsDatabase(data / "store") as store:
        store.add(load_test(uuid="1d" * 16), load_test(uuid="1e" * 16), proof(uuid="1f" * 16))
    assert results("delete", "id=1d,1f", "--yes")[2] == "2 results deleted\n"
    assert results("delete", "good=yes", "--yes")[2] == "2 results deleted\n"
    assert results("delete", "--all", "--yes")[2] == "2 results deleted\n"
    assert json.loads(results("verify", "--json")[1])["records"]["load_tests"] == 0


def test_compacting_prints_a_file_that_plain_tinydb_opens(results: Command) -> None:
    status, out, err = results("compact")
    assert (status, err) == (0, "3 results; the previous generation is kept until the next compaction\n")
    with tinydb.TinyDB(out.strip(), access_mode="r") as database:
        assert len(database.table("measurements")) == 2
    assert json.loads(results("compact", "--json")[1])["results"] == 3


def test_verifying_a_whole_store_counts_its_records(results: Command) -> None:
    status, out, err = results("verify")
    assert (status, err) == (0, "")
    assert "measurements: 2\n" in out
    assert "damaged lines: 0\n" in out
    found: dict[str, Any] = json.loads(results("verify", "--json")[1])
    assert found["records"]["end_to_end"] == 1
    assert (found["damage"], found["implausible"]) == ([], [])


def test_verifying_names_records_that_no_measurement_gives_and_a_command_that_takes_them_out(
    results: Command, data: Path
) -> None:
    with ResultsDatabase(data / "store") as store:
        store.add(run(measured=-1, uuid="0d" * 16))
    status, out, err = results("verify")
    assert status == 1
    assert "implausible records: 1\n" in out
    assert err.splitlines() == [
        f"runs: {'0d' * 16} has a count below zero",
        "no measurement gives such records; `dlbricks results delete id=ID` takes one out",
    ]
    (found,) = json.loads(results("verify", "--json")[1])["implausible"]
    assert found["id"] == "0d" * 16
    assert results("delete", f"id={found['id']}", "--yes")[0] == 0
    assert results("verify")[0] == 0
    # An id that nothing has is a mistake.
    assert results("delete", f"id={found['id']}", "--yes")[::2] == (1, "0 results deleted\n")


def test_an_import_refuses_results_that_no_measurement_gives(results: Command, data: Path, tmp_path: Path) -> None:
    with ResultsDatabase(data / "store") as store:
        store.add(measurement(when="2999-01-01T00:00:00+00:00", uuid="0d" * 16))
    file = tmp_path / "file.json"
    results("export", str(file))
    status, _, err = results("import", str(file), folder=tmp_path / "other")
    assert status == 1
    assert "7 new records" in err and "is from the future" in err and "was not imported" in err


def test_every_command_reports_damage_and_verify_lists_it(results: Command, data: Path) -> None:
    journal = data / "store" / "journal-0.jsonl"
    content = journal.read_bytes()
    journal.write_bytes(content.replace(b"drift", b"draft") + b'{"check":"')
    status, out, err = results("list", "--json")
    assert (status, len(json.loads(out))) == (0, 2)
    assert err.startswith("1 damaged line of the store is set aside: journal-0.jsonl line 7 (byte ")
    status, out, err = results("verify")
    assert status == 1
    assert "damaged lines: 1\n" in out
    assert "line 7" in err
    assert "the last line is unfinished (10 bytes)" in err


def test_a_store_of_a_newer_version_is_refused_with_advice(results: Command, data: Path) -> None:
    journal = data / "store" / "journal-0.jsonl"
    with journal.open("ab") as file:
        file.write(line_of_record(FAST, schema=99) + b"\n")
    for arguments in (["list"], ["verify"], ["compact"], ["delete", "--all", "--yes"]):
        status, out, err = results(*arguments)
        assert (status, out) == (2, "")
        assert "update dlbricks" in err


def test_every_kind_of_record_survives_the_command_line(tmp_path: Path, results: Command) -> None:
    records = one_of_each()
    with ResultsDatabase(tmp_path / "full" / "store") as store:
        store.add(*records)
    file = tmp_path / "file.json"
    assert results("export", str(file), folder=tmp_path / "full")[0] == 0
    assert f"{len(records) - 1} new records" in results("import", str(file), folder=tmp_path / "other")[2]


def test_tables_fit_the_terminal_by_cutting_texts_only() -> None:
    headers = ("id", "name", "runtime", "trimmed_mean_ms")
    cells = [["0123456789ab"], ["a name of some length"], ["a runtime that is longer"], ["1.234"]]
    wide = list(table_lines(headers, cells, 200))
    assert wide[1] == "0123456789ab  a name of some length  a runtime that is longer            1.234"
    narrow = list(table_lines(headers, cells, 60))
    assert narrow[1] == "0123456789ab  a name of some le…  a runtim…            1.234"
    assert max(map(len, narrow)) <= 60


def test_the_suffix_of_an_export_sets_its_format(results: Command, tmp_path: Path) -> None:
    file = tmp_path / "x.csv"
    assert results("export", str(file)) == (0, "", f"3 results written to {file}\n")
    assert len(list(csv.DictReader(file.open()))) == 3
    status, out, err = results("export", str(tmp_path / "x.txt"))
    assert (status, out) == (2, "") and "x.txt ends in .txt, which is no format of an export" in err


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this platform has no full device")
def test_an_export_to_a_full_device_is_reported_in_one_line_and_keeps_the_device(results: Command) -> None:
    status, out, err = results("export", "/dev/full")
    assert (status, out) == (2, "")
    assert err == "dlbricks: error: cannot write /dev/full: No space left on device; nothing was exported\n"
    assert Path("/dev/full").is_char_device()
    # As root the command could put a file in the place of the device.
    assert results("export", "/dev/full", "--force")[0] == 2
    assert Path("/dev/full").is_char_device()
