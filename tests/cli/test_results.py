"""`dlbricks results` on stores with few results, and on the results of 2019."""

import csv
import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import tinydb

from dlbricks_tui.folders import SAMPLE_MODELS
from dlbricks_tui.models.library import Library
from dlbricks_tui.models.loading import Loader
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.documents import fields_of, to_document
from tests.cli.people import Command, document, one_line, schema_kept
from tests.models.table_framework import TableFramework
from tests.store.dlbricks_2019.checkouts import time_layers, time_model
from tests.store.samples import (
    brick,
    end_to_end,
    form,
    load_test,
    measurement,
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
def results(data: Path, dlbricks: Command) -> Command:
    """Run `dlbricks results ...` on it, or on another folder."""
    return lambda *arguments, **place: dlbricks("results", *arguments, **place)


def test_json_lines_and_csv_have_the_same_content_as_json(results: Command) -> None:
    documents = document(results("list", "--json"))
    assert [each["id"] for each in documents] == [MODEL.uuid, SLOW.uuid, FAST.uuid]
    assert [json.loads(line) for line in results("list", "--jsonl")[1].splitlines()] == documents
    rows = list(csv.DictReader(io.StringIO(results("list", "--csv")[1])))
    assert rows == [{name: str(value) for name, value in each.items()} for each in documents]


def test_the_list_is_filtered_sorted_cut_and_shows_the_columns_asked_for(
    results: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = ("of=brick", "--sort", "trimmed_mean_ms", "--columns", "name,good", "--limit", "1", "--csv")
    assert results("list", *asked) == (0, "name,good\nConvolution 3x3/2 1x64x56x0,True\n", "")
    # From the top, as the help says.
    for sort in (["--sort", "-trimmed_mean_ms"], ["--sort=-trimmed_mean_ms"]):
        found = document(results("list", *sort, "--json", "--columns", "id"))
        assert found == [{"id": each.uuid} for each in (MODEL, SLOW, FAST)]
    # Chosen columns are all shown.
    monkeypatch.setenv("COLUMNS", "80")
    chosen = "id,name,context,system,runtime,level,trimmed_mean_ms,samples,when"
    assert results("list", "--columns", chosen)[1].splitlines()[0].split() == chosen.upper().split(",")


def test_the_table_is_followed_by_its_share_of_all_results(results: Command) -> None:
    _, out, err = results("list", "--limit", "2")
    head, first, second = out.splitlines()
    assert head.split()[:3] == ["MODEL", "RUNTIME", "THREADS"]
    assert first.startswith("resnet50_v1") and MODEL.uuid[:12] in first and "30.60" in first and "8.160" in second
    assert err == "2 of 3 results shown\n"
    assert results("list", "nothing")[2] == "0 results\n"


def test_an_empty_store_has_an_empty_list(results: Command, tmp_path: Path) -> None:
    assert results("list", "--json", folder=tmp_path / "none") == (0, "[]\n", "")
    assert results("list", folder=tmp_path / "none") == (0, "", "no result yet: `dlbricks run MODEL` makes the first\n")
    assert "there are none: `dlbricks run MODEL`" in one_line(results("compare", "a", "b", folder=tmp_path / "none"))
    assert not (tmp_path / "none").exists()


def test_bad_input_is_one_line_and_status_2(results: Command, tmp_path: Path) -> None:
    refused: dict[tuple[str, ...], str] = {
        ("list", "colour=red"): "there is no column 'colour'",
        ("list", "--sort", "colour"): "there is no column 'colour'",
        ("list", "--columns", "id,colour"): "there is no column 'colour'",
        ("list", "samples=x"): "needs a number",
        ("show", "zz"): "'zz' is no id or brick key",
        ("show", ""): "'' is no id or brick key",
        ("show", "ffff"): "no id of a result or load test and no brick key begins with ffff",
        ("show", "0"): "give more characters",
        ("delete",): "say which results to delete",
        ("delete", "good=no"): "--yes deletes without a question",
        ("delete", "good=no", "--all"): "leave one of them out",
        ("import", "none", "--format", "dlbricks-2019", "--require-signature"): "checkouts have no signatures",
        ("import", "none.json"): "cannot read none.json",
        ("export", str(tmp_path), "--force"): f"cannot write {tmp_path}: Is a directory; nothing was exported",
    }
    for arguments, complaint in refused.items():
        told = one_line(results(*arguments))
        assert told.startswith("dlbricks: error: ") and complaint in told


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
    # The longest name that a file can have.
    file, again, other = tmp_path / f"{'n' * 250}.json", tmp_path / "again.json", tmp_path / "other"
    assert results("export", str(file)) == (0, "", f"3 results written to {file}\n")
    told = f"{file}: 7 new records, 0 known before\n"
    assert results("import", str(file), folder=other) == (0, "", told)
    (found,) = document(results("import", str(file), "--json", folder=other))
    (of_file,) = found.pop("files")
    expected = {"path": str(file), "new": 0, "known": 7, "conflicts": [], "refused": [], "ignored": 0, "claims": []}
    assert found == expected
    assert (of_file["name"], of_file["signer"], of_file["refusal"]) == (file.name, None, None)
    results("export", str(again), folder=other)
    assert again.read_bytes() == file.read_bytes()


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


def test_a_result_is_deleted_with_all_of_its_records(results: Command, data: Path) -> None:
    records = [measurement(ms, run="r7") for ms in (4.0, 5.0, 6.0)]
    for wanted in ("ms>4.9", "n>5", f"id={records[2].uuid}"):
        with ResultsDatabase(data / "store") as store:
            store.add(*records)
        assert results("delete", wanted, f"brick={records[0].brick}", "run=r7", "--yes")[2] == "1 result deleted\n"
        with ResultsDatabase(data / "store") as store:
            assert not store.select("run=r7")


def test_a_load_test_is_shown_with_its_verdict_and_the_bound_in_a_histogram(results: Command, data: Path) -> None:
    test = load_test(uuid="1d" * 16)
    with ResultsDatabase(data / "store") as store:
        store.add(test)
    status, out, _ = results("show", "1d1d")
    assert status == 0 and "server: the highest rate with p99 within 20 ms" in out
    assert "bound: 0 of 700 above it" in out
    assert document(results("show", "1d1d", "--json")) == {**to_document(test), "provenance": None}
    with ResultsDatabase(data / "store") as store:
        store.add(provenance(run=test.uuid))
    assert "\nversions    dlbricks 0.2.0" in results("show", "1d1d")[1]


@pytest.mark.parametrize("text", ["", "id=", "id=0a,", "runtime~"])
def test_a_filter_whose_value_is_missing_deletes_nothing(results: Command, text: str) -> None:
    assert "filter" in one_line(results("delete", text, "--yes"))
    assert len(json.loads(results("list", "--json")[1])) == 3


def test_load_tests_and_proofs_are_deleted_by_their_ids_or_with_everything(results: Command, data: Path) -> None:
    with ResultsDatabase(data / "store") as store:
        store.add(load_test(uuid="1d" * 16), load_test(uuid="1e" * 16), proof(uuid="1f" * 16))
    assert results("delete", "id=1d,1f", "--yes")[2] == "2 results deleted\n"
    assert results("delete", "good=yes", "--yes")[2] == "2 results deleted\n"
    assert results("delete", "--all", "--yes")[2] == "2 results deleted\n"
    assert json.loads(results("verify", "--json")[1])["records"]["load_tests"] == 0


def test_the_beginning_of_an_id_deletes_no_form_of_a_brick(results: Command, data: Path) -> None:
    uuid = fields_of(form())["uuid"]
    assert results("delete", f"id={uuid[:4]}", "--yes")[::2] == (1, "0 results deleted\n")
    assert json.loads(results("verify", "--json")[1])["records"]["bricks"] == 2
    assert results("delete", f"id={uuid}", "--yes")[::2] == (0, "1 result deleted\n")


def test_compacting_prints_a_file_that_plain_tinydb_opens(results: Command) -> None:
    status, out, err = results("compact")
    assert (status, err) == (0, "3 results; the previous generation is kept until the next compaction\n")
    with tinydb.TinyDB(out.strip(), access_mode="r") as database:
        assert len(database.table("measurements")) == 2
    assert json.loads(results("compact", "--json")[1])["results"] == 3


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
    # The whole file has no damage any more.
    told = f"damaged lines were left out: {data / 'store' / 'set-aside-0.txt'} has them, with the reasons"
    assert told in results("compact")[2].splitlines()
    assert "damaged" not in results("compact")[2]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this platform has no full device")
def test_an_export_to_a_full_device_is_reported_in_one_line_and_keeps_the_device(results: Command) -> None:
    status, out, err = results("export", "/dev/full")
    assert (status, out) == (2, "")
    assert err == "dlbricks: error: cannot write /dev/full: No space left on device; nothing was exported\n"
    assert Path("/dev/full").is_char_device()
    # As root the command could put a file in the place of the device.
    assert results("export", "/dev/full", "--force")[0] == 2
    assert Path("/dev/full").is_char_device()


ONE, TWO = "onnxruntime-1.20 python-3.11 threads-1", "onnxruntime-1.20 python-3.11 threads-2"
MXNET = "mxnet-1.9.1"


def on(day: int, run: str, system_id: str = "here", runtime_id: str = MXNET) -> dict[str, Any]:
    return {"when": f"2026-11-{day}T08:00:00+00:00", "run": run, "system": system_id, "runtime": runtime_id}


BEFORE, AFTER = on(21, "20261121-080000-aaaa"), on(22, "20261122-080000-bbbb")
THERE = on(22, "20261122-090000-cccc", "there")
THREADS_1, THREADS_2 = (on(23, f"20261123-080000-{name}", "here", name) for name in (ONE, TWO))


@pytest.fixture
def compare(tmp_path: Path, dlbricks: Command) -> Command:
    """Run `dlbricks results compare ...`."""
    with ResultsDatabase(tmp_path / "data" / "store") as store:
        store.add(form(0), form(1), system("here", instance_type="c5.large"), system("there"), runtime(MXNET))
        store.add(*(replace(runtime(it), name="onnxruntime", framework="onnxruntime") for it in (ONE, TWO)))
        for place, brick_ms, whole_ms in ((BEFORE, 1.0, 30.0), (AFTER, 1.0, 36.0), (THERE, 0.8, 20.0)):
            store.add(measurement(brick_ms, **place))
            store.add(end_to_end(whole_ms, **place))
        store.add(measurement(2.0, brick=brick(1), **AFTER))
        for place, brick_ms in ((THREADS_1, 1.5), (THREADS_2, 0.9)):
            store.add(measurement(brick_ms, **place))
    return lambda *arguments: dlbricks("results", "compare", *arguments)


def test_two_days_are_compared_model_by_model(compare: Command) -> None:
    status, out, told = compare("2026-11-21", "system=here 2026-11-22")
    assert status == 0 and told == ""
    assert "A: day 2026-11-21, 2 results" in out
    assert "B: day 2026-11-22, system=here, 3 results" in out
    # The brick is a part of the model.
    assert "B takes 1.200 times as long" in out and "geometric mean of 1 model); together 30.60 and 36.72 ms" in out
    assert "1 slower, 1 same; not compared: 0 of A, 1 of B" in out
    rows = [line.split() for line in out.splitlines() if line.endswith(("slower", "same"))]
    assert rows[0][0] == "resnet50_v1" and rows[0][-1] == "slower" and "+20.0" in rows[0]
    assert rows[1][-1] == "same"
    _, out, told = compare("2026-11-21", "2026-11-22 system=here", "--limit", "1")
    assert told.startswith("1 more pair: ")
    assert "= same" not in out


def test_the_json_document_has_all_pairs_and_keeps_to_its_schema(compare: Command) -> None:
    found = document(compare("here", "there", "--where", "when<2026-11-23", "--json"))
    schema_kept(found, "results", "compare")
    assert (found["a"]["name"], found["b"]["name"]) == ("system here", "system there")
    assert (found["faster"], len(found["pairs"]), found["failures"]) == (2, 2, [])
    assert found["interval"][0] <= found["ratio"] <= found["interval"][1] < 1
    # The greatest change comes first.
    assert found["pairs"][0]["name"] == "resnet50_v1"


def test_what_cannot_be_compared_is_one_line(compare: Command) -> None:
    for text, said in {
        "nothing": "'nothing' is no system, runtime, run or day with results; there are systems here, there",
        "onnxruntime": f"'onnxruntime' stands for several: runtime {ONE}, runtime {TWO}; name one of them",
        "20261122": "'20261122' stands for several: run 20261122-080000-bbbb, run 20261122-090000-cccc",
        "2026-11-30": "no results are '2026-11-30'",
        "2026-13-45": "needs a date",
        "no=column": "there is no column 'no'",
        "'open": "close the quotation marks",
        "": "an empty text names no results",
        "there mxnet when<2026-11-22": "is no system, runtime, run or day with results",
    }.items():
        assert said in one_line(compare(text, "here"))
    # Results that are named in two ways, too.
    for text in ("here", "c5.large", "system=here"):
        assert "have the same results: name different ones" in one_line(compare(text, "here"))
    status, _, told = compare("here of=model", "here of=brick")
    assert status == 1 and "no model in common in executions that correspond" in told


def test_a_slower_model_beyond_the_limit_fails(compare: Command) -> None:
    days = ("2026-11-21", "2026-11-22 system=here")
    status, _, told = compare(*days, "--fail-above", "5%")
    assert status == 1 and told == "slower by more than 5.0 %: all models, resnet50_v1\n"
    assert compare(*days, "--fail-above", "25%")[0] == 0
    # A faster side never fails.
    assert compare(*reversed(days), "--fail-above", "5%")[0] == 0
    models = ("2026-11-21 of=model", "2026-11-22 system=here of=model")
    _, out, _ = compare(*models, "--fail-above", "5%", "--json")
    assert json.loads(out)["failures"] == ["all models", "resnet50_v1"]


def test_markdown_is_a_table_that_shows_names_as_they_are(compare: Command) -> None:
    status, out, _ = compare("2026-11-21", "2026-11-22 system=here", "--markdown")
    lines = out.splitlines()
    assert status == 0 and lines[0] == "- A: day 2026-11-21, 2 results"
    start = lines.index("| brick or model | A ms | B ms | change | p | B is |")
    assert lines[start + 2].startswith("| resnet50\\_v1 | ") and lines[start + 2].endswith(" | slower |")
    assert all(line.count("|") - line.count("\\|") == 7 for line in lines[start:])


CAPSNET = "CapsNet Trained on MNIST Data"
SQUEEZENET = "SqueezeNet V1.1 Trained on ImageNet Competition Data"
SYSTEM = "c5.xlarge"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """CapsNet, which has a loop, by layers and end to end, another model end to end only."""
    folder = tmp_path / "checkout"
    (source,) = Library(SAMPLE_MODELS, tmp_path).find("table1:4")
    layers = Loader(tmp_path / "cache", TableFramework()).load(source).layers
    # Occurrences of the same brick took different times.
    time_layers(folder, SYSTEM, CAPSNET, {it.name: [10.0 + it.index] * 3 for it in layers})
    time_model(folder, SYSTEM, CAPSNET, [150_000.0, 151_000.0, 152_000.0])
    time_model(folder, SYSTEM, SQUEEZENET, [17_750.0])
    return folder


def test_an_import_counts_the_results_of_every_system(dlbricks: Command, checkout: Path) -> None:
    status, out, err = dlbricks("results", "import", "--format", "dlbricks-2019", str(checkout))
    assert (status, out) == (0, "")
    assert err.splitlines() == [
        f"{SYSTEM}: 55 results new, 0 known; 1 model by layers, 2 end to end",
        f"{SYSTEM}: only end-to-end results of {SQUEEZENET}",
        f"{checkout}: 55 results new, 0 known, on 1 system",
    ]
    assert "0 results new, 55 known" in dlbricks("results", "import", "--format", "dlbricks-2019", str(checkout))[2]


def test_unusable_rows_are_named(dlbricks: Command, checkout: Path) -> None:
    time_layers(checkout, SYSTEM, SQUEEZENET, {f"layer{number}": [1.0] for number in range(30)})
    time_model(checkout, SYSTEM, "LeNet", [1.0])
    status, out, err = dlbricks("results", "import", "--format", "dlbricks-2019", "--json", str(checkout))
    assert status == 0
    for said in (
        f"{SYSTEM}: 30 rows could not be used\n",
        "not a layer of it here\nand 10 more rows, which --json lists\n",
        "left out: 1 row of 1 model that Table 1 does not have: LeNet\n",
    ):
        assert said in err
    (found,) = json.loads(out)
    (system,) = found["systems"]
    assert (found["path"], found["new"], found["known"]) == (str(checkout), 55, 0)
    assert (system["by_layers"], system["outside_table1"], len(system["unmatched"])) == ([CAPSNET], {"LeNet": 1}, 30)


def test_with_broken_files_the_rest_is_imported_and_the_status_is_1(dlbricks: Command, checkout: Path) -> None:
    time_model(checkout, SYSTEM, CAPSNET, [1.0]).write_bytes(b"\x00\xff" * 100)
    status, _, err = dlbricks("results", "import", "--format", "dlbricks-2019", str(checkout))
    assert status == 1
    assert f"{SYSTEM}: 54 results new" in err
    assert "data/mxnet_model/c5.xlarge/CapsNet_Trained_on_MNIST_Data.csv is not text; it was skipped\n" in err
