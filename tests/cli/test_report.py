"""`dlbricks report`, and `dlbricks report compare`."""

import csv
import io
import json
import math
import re
import shutil
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr, redirect_stdout
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple
from xml.dom.minidom import parseString

import pytest
from onnx.helper import make_node

from dlbricks_tui.api.reported import find_contents
from dlbricks_tui.bricks.decomposition import Cutting, decompose
from dlbricks_tui.cli.main import main
from dlbricks_tui.folders import DATA_FOLDER_VARIABLE, SAMPLE_MODELS
from dlbricks_tui.models.graph import Level
from dlbricks_tui.models.library import Library
from dlbricks_tui.models.loading import Loader
from dlbricks_tui.report.report import _lead
from dlbricks_tui.store.documents import SCHEMA
from dlbricks_tui.store.records import EndToEnd, Measurement, Record
from tests.api.exports import ONE, exported, layer, model, origin
from tests.cli.people import Command as Compare
from tests.cli.people import one_line
from tests.cli.test_output import HOSTILE, hostile_model
from tests.estimate.stored import brick_records, model_record, store_of, timed
from tests.estimate.table1 import NoFramework, table1
from tests.models import onnx_models
from tests.models.onnx_models import saved, small
from tests.store.samples import line_of_record, load_test, run, system

pytestmark = pytest.mark.usefixtures("shared_cache")

CAPSNET, SQUEEZENET = (decompose(table1()[number]) for number in ("4", "16"))
PAIRS = decompose(SQUEEZENET.graph, Cutting(2))
C5: dict[str, Any] = {"system": "c5.2xlarge", "runtime": "mxnet-1.5.1"}
MODELS = ("--models", "table1:4", "table1:16")


class Reported(NamedTuple):
    """The folder of a report, and what the command wrote."""

    folder: Path
    out: str
    told: str


Report = Callable[..., Reported]


def reported(folder: Path, output: Path, *arguments: str) -> Reported:
    """Report on the store of a folder, for tests that only read the report."""
    with (
        redirect_stdout(io.StringIO()) as out,
        redirect_stderr(io.StringIO()) as told,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setenv(DATA_FOLDER_VARIABLE, str(folder / "data"))
        status = main(["report", "-o", str(output), *arguments])
    assert status == 0, told.getvalue()
    return Reported(output, out.getvalue(), told.getvalue())


@pytest.fixture
def report(tmp_path: Path) -> Report:
    """Report on a store with these records."""

    def make(records: Sequence[Record], *arguments: str) -> Reported:
        store_of(tmp_path / "data" / "store", *records).close()
        return reported(tmp_path, tmp_path / "report", *arguments)

    return make


def folder_with(cache: Path, folder: Path, *records: Record) -> Path:
    """Store these records in a folder that knows the models of other tests."""
    store_of(folder / "data" / "store", *records).close()
    (folder / "data" / "cache").symlink_to(cache)
    return folder


@cache
def measured() -> Sequence[Record]:
    """Two models by layers and end to end on one of the paper's systems, one of them by pairs of layers too."""
    of_both = [
        it for model in (CAPSNET, SQUEEZENET) for it in (*brick_records(model, **C5), model_record(model, 30.0, **C5))
    ]
    asked = run(granularity=2, level=Level.WRITTEN, **C5)
    return system("c5.2xlarge"), asked, *of_both, *brick_records(PAIRS, **C5)


@pytest.fixture(scope="module")
def full_report(tmp_path_factory: pytest.TempPathFactory, _cache: Path) -> Reported:
    """The report on all that is measured on a system, in JSON."""
    name = SQUEEZENET.graph.name
    tests = (load_test(name=name, **C5), load_test(name=name, system="m5"), load_test(name="other", **C5))
    folder = folder_with(_cache, tmp_path_factory.mktemp("full"), *measured(), *tests)
    return reported(folder, folder / "report", *MODELS, "--json", "--system", "c5.2xlarge")


@pytest.fixture(scope="module")
def full(full_report: Reported) -> Path:
    return full_report.folder


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory, _cache: Path) -> Reported:
    """The report on an empty store."""
    folder = folder_with(_cache, tmp_path_factory.mktemp("empty"))
    return reported(folder, folder / "report", *MODELS)


def rows(folder: Path, name: str) -> list[dict[str, str]]:
    with (folder / "figures" / f"{name}.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def page(folder: Path) -> ET.Element:
    """Return the page as XML: tags without an end are closed."""
    text = (folder / "index.html").read_text().removeprefix("<!doctype html>\n")
    return ET.fromstring(re.sub(r"<(meta|br|link|img)([^>]*?)/?>", r"<\1\2/>", text))


def text_of(folder: Path) -> str:
    return "".join(page(folder).itertext())


def test_the_page_of_an_empty_store_names_the_commands_that_fill_it(empty: Reported) -> None:
    assert empty.out == f"{empty.folder / 'index.html'}\n"
    text = text_of(empty.folder)
    for told in (empty.told, text):
        assert told.count("dlbricks run table1:4 table1:16 --end-to-end") == 5
    assert "None of them was measured yet" in text
    drawn = {path.name for path in (empty.folder / "figures").glob("*.svg")}
    assert drawn == {"figure-5.svg", "figure-6.svg", "figure-7.svg", "figures-2-and-4-4.svg", "figures-2-and-4-16.svg"}


def test_a_report_has_the_same_bytes_again_and_replaces_the_previous_one_and_nothing_else(
    tmp_path: Path, empty: Reported, full: Path
) -> None:
    shutil.copytree(full, tmp_path / "report")
    (tmp_path / "report" / "figures" / "mine.svg").write_text("<svg/>")
    reported(tmp_path, tmp_path / "report", *MODELS)
    new, first = (
        {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*.*")}
        for folder in (tmp_path / "report", empty.folder)
    )
    assert new.pop(Path("figures", "mine.svg")) == b"<svg/>"
    assert new == first


def test_a_full_store_gives_every_figure_with_its_numbers(full: Path) -> None:
    names = {path.stem for path in (full / "figures").glob("*.svg")}
    single = {f"figure-{number}" for number in (5, 6, 7, 9, 11, 12)} | {"figures-2-and-4-4", "figures-2-and-4-16"}
    analysed = {f"figure-{it}-c5.2xlarge-mxnet-written" for it in ("bounds", "gap")}
    of_system = {f"figure-{it}" for it in ("3-c5.2xlarge-written", "10-c5.2xlarge-written", "scenarios-c5.2xlarge")}
    assert names == single | analysed | of_system
    tables = {"table-1", "bricks", "table-scenarios"}
    assert {path.stem for path in (full / "figures").glob("*.csv")} == names | tables
    assert "lacks" not in text_of(full)


def test_the_page_loads_nothing_and_all_its_links_have_targets(full: Path) -> None:
    tags = list(page(full).iter())
    assert not [tag for tag in tags for name in ("src", "srcset", "data", "action") if tag.get(name)]
    assert not [tag for tag in tags if re.search(r"url\((?!#)", tag.get("style", ""))]
    ids = Counter(name for tag in tags if (name := tag.get("id")))
    assert max(ids.values()) == 1
    for link in (tag.get(name, "") for tag in tags for name in ("href", "{http://www.w3.org/1999/xlink}href")):
        assert not link or (link[1:] in ids if link.startswith("#") else (full / link).is_file()), link
    text = (full / "index.html").read_text()
    assert "default-src 'none'" in text
    assert "<details><summary>Table</summary>" in text


def test_one_small_model_is_told_of_in_the_singular_and_in_significant_digits(report: Report) -> None:
    bricks = brick_records(SQUEEZENET, **C5, statistics=timed(0.0001))
    records = [system("c5.2xlarge"), *bricks, model_record(SQUEEZENET, 0.008, **C5)]
    text = " ".join(text_of(report(records, "--models", "table1:16").folder).split())
    assert "1 models" not in text and "0.006900 ms one after another" in text
    assert "A row for each model, with a mark for each way in which it was measured." in text


def test_rows_are_named_by_what_tells_ways_of_measuring_apart(report: Report) -> None:
    ways: list[dict[str, Any]] = [{**C5, "runtime": f"mxnet-1.9.1 threads-{number}"} for number in (1, 2)]
    records = [it for way in ways for it in (*brick_records(SQUEEZENET, **way), model_record(SQUEEZENET, 30.0, **way))]
    found = report([system("c5.2xlarge"), *records], "--models", "table1:16")
    drawn = (found.folder / "figures" / "figure-11.svg").read_text()
    assert ">1 thread<" in drawn and ">2 threads<" in drawn


def test_every_latency_is_traced_to_the_results_that_it_is_made_of(full: Path) -> None:
    results = {it.uuid: it for it in measured() if isinstance(it, Measurement | EndToEnd)}
    bricks = {(it["brick"], it["context"]): it for it in rows(full, "bricks")}
    for row in bricks.values():
        values = [results[uuid].statistics.trimmed_mean_ms for uuid in row["results"].split()]
        assert float(row["latency_ms"]) == pytest.approx(math.fsum(values) / len(values))
    by_model = {it.graph.name: it for it in (CAPSNET, SQUEEZENET)}
    found = [it for it in rows(full, "figure-10-c5.2xlarge-written") if it["G"] == "1"]
    assert len(found) == 2
    for row in found:
        model = by_model[row["model"]]
        paid = [
            model.graph.layers[it.sequence.layers[0]].times * float(bricks[it.brick.key, it.context]["latency_ms"])
            for it in model.occurrences
            if (it.brick.key, it.context) in bricks
        ]
        assert float(row["sequential_ms"]) == pytest.approx(sum(paid))
        whole = results[row["end_to_end_result"]]
        assert whole.statistics.trimmed_mean_ms == float(row["end_to_end_ms"])
        assert float(row["ratio"]) == pytest.approx(sum(paid) / whole.statistics.trimmed_mean_ms)
        assert (row["system"], row["level"], row["granularity"]) == ("c5.2xlarge", "written", "1")


def test_published_figures_stand_beside_measured_ones(full: Path) -> None:
    (row,) = [it for it in rows(full, "figure-9") if it["table1_id"] == "16"]
    assert float(row["end_to_end_ms"]) == 30.0 and float(row["published_ms"]) == pytest.approx(15.7892)
    composed = {it["table1_id"]: it for it in rows(full, "figure-3-c5.2xlarge-written")}
    assert float(composed["16"]["published_sequential_ratio"]) == pytest.approx(14.6233 / 15.7892)
    assert [(it["G"], it["published_value"]) for it in rows(full, "figure-12")] == [("1", "4.17"), ("2", "")]
    # No speed-up is below zero, unlike a band around one.
    assert ">-" not in (full / "figures" / "figure-12.svg").read_text()


def test_json_names_the_page_its_files_and_what_is_missing(full_report: Reported) -> None:
    found = json.loads(full_report.out)
    assert found["page"] == str(full_report.folder / "index.html")
    assert all(Path(name).is_file() for name in found["files"])
    (series,) = found["series"]
    assert (series["system"], series["granularities"]) == ("c5.2xlarge", [1, 2])
    headings = [section["heading"].partition(":")[0] for section in found["sections"]]
    figures = [f"Figure {number}" for number in (3, 5, 6, 7, 9, 10, 11, 12)]
    assert headings == ["Table 1", "Figures 2 and 4", *figures, "Bounds", "Gains", "Gap", "Roofline", "Scenarios"]
    missing = [section["missing"] for section in found["sections"]]
    assert missing[:11] == [[]] * 11 and "dlbricks analyze MODEL --measure" in missing[11][0]
    (row,) = rows(full_report.folder, "table-scenarios")
    assert (row["model"], row["system"], row["valid"]) == (SQUEEZENET.graph.name, "c5.2xlarge", "yes")


@pytest.mark.mxnet
def test_without_models_those_with_results_are_reported_on_with_progress(
    tmp_path: Path, dlbricks: Compare, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dlbricks_tui.cli.report._SECONDS_PER_LINE", 0.0)
    asked = ("report", "-o", tmp_path / "report")
    status, _, told = dlbricks(*asked)
    assert status == 2 and "no model of the library has results" in told
    whole = model_record(SQUEEZENET, 30.0, name=SQUEEZENET.graph.name, **C5)
    store_of(tmp_path / "data" / "store", system("c5.2xlarge"), whole).close()
    status, out, err = dlbricks(*asked, "--json")
    assert (status, json.loads(out)["models"]) == (0, [SQUEEZENET.graph.name])
    assert err.startswith("reporting on table1:16\n")
    assert f"reading {SQUEEZENET.graph.name}, written layers (1 of 1)\n" in err
    assert "analysed 1 of 1 model on c5.2xlarge\n" in err and "drawing the figures\n" in err


def test_an_unknown_system_and_an_unusable_output_folder_are_bad_input(tmp_path: Path, dlbricks: Compare) -> None:
    told = one_line(dlbricks("report", "-o", tmp_path / "r", *MODELS, "--system", "m7i"))
    assert told.startswith("dlbricks: error: no system in the store is called 'm7i'") and not (tmp_path / "r").exists()
    (tmp_path / "figures").write_text("")
    for folder, said in ((tmp_path / "figures" / "r", "is no folder that can be written to"), ("", "path is empty")):
        assert said in one_line(dlbricks("report", "-o", folder, *MODELS)), "before the work"
    for folder in (tmp_path, tmp_path / ("r" * 300)):
        assert "name another folder with -o" in dlbricks("report", "-o", folder, *MODELS)[2]


def test_the_lead_of_the_page_tells_measured_models_from_those_that_share_bricks(tmp_path: Path) -> None:
    sources = Library(SAMPLE_MODELS, tmp_path).find_all(("table1:16",))
    loader = Loader(tmp_path / "data" / "cache", NoFramework())
    shared = next(it for it in brick_records(SQUEEZENET, **C5) if isinstance(it, Measurement))
    for name, records, said in (
        ("shared", [shared], "1 model, none of them measured. Some of their bricks were measured in other models"),
        ("whole", brick_records(SQUEEZENET, **C5), "1 model, measured in 1 way: c5.2xlarge, written."),
    ):
        with store_of(tmp_path / name, system("c5.2xlarge"), *records) as store:
            contents = find_contents(store, lambda _: loader, sources, ["table1:16"], "here")
        assert _lead(contents)[1].startswith(said)


def test_a_model_with_given_shapes_can_be_reported_on(tmp_path: Path, dlbricks: Compare) -> None:
    nodes = [make_node("Relu", ["x"], ["y"], name="r"), make_node("Relu", ["y"], ["z"], name="s")]
    file = saved(tmp_path, onnx_models.model(nodes, {"x": (None, None)}, ["z"]))
    asked = ("report", "-o", tmp_path / "r", "--models", file)
    status, _, told = dlbricks(*asked)
    assert status == 2 and "--input x=" in told
    status, _, told = dlbricks(*asked, "--input", "x=1,8")
    assert status == 0 and "--input x=1,8 --end-to-end" in told and "name several with `--models`" in told
    assert (tmp_path / "r" / "index.html").exists()


def test_control_codes_and_dollar_signs_in_names_are_printed_as_text(tmp_path: Path, report: Report) -> None:
    files = [saved(tmp_path, hostile_model(), HOSTILE), saved(tmp_path, small(), r"$\frac{a$")]
    folder = report([], "--models", *map(str, files)).folder
    # Each model has a picture of its own.
    drawn = {path.stem for path in (folder / "figures").glob("figures-2-and-4-*.svg")}
    assert drawn == {"figures-2-and-4-model-1", "figures-2-and-4-model-2"}
    assert text_of(folder).count(r"$\frac{a$") > 1
    for path in (path for path in folder.rglob("*") if path.is_file()):
        text = path.read_text()
        assert all(char.isprintable() or char == "\n" for char in text), path
        if path.suffix == ".svg":
            parseString(text)


@pytest.fixture
def compare(tmp_path: Path, dlbricks: Compare) -> Compare:
    """Compare sides on a page."""
    return lambda *sides, more=(): dlbricks("report", "--compare", *sides, "-o", tmp_path / "report", *more)


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """Two files: one model and one brick are slower in the second one, which has another system too."""
    first = exported(tmp_path / "a.json", model("<m>", 10.0), model("n", 5.0), layer(0, 1.0), layer(1, 2.0), origin())
    models = (model("<m>", 12.0), model("n", 5.0), model("n", 2.5, system="there"))
    second = exported(tmp_path / "b.json.gz", *models, layer(0, 1.5), layer(2, 2.0))
    return first, second


def test_two_files_become_one_page_with_the_rows_beside_it(
    compare: Compare, files: tuple[Path, Path], tmp_path: Path
) -> None:
    status, out, told = compare(*files, more=["--json"])
    found, folder = json.loads(out), tmp_path / "report"
    text = (folder / "index.html").read_text()
    assert (status, found["page"]) == (0, str(folder / "index.html"))
    assert [section in text for section in ("What is being compared?", "Which host is how fast?")] == [True, True]
    # Nothing is loaded, and names cannot be markup.
    assert "&lt;m&gt;" in text and "<m>" not in text and "<script" not in text and "default-src 'none'" in text
    assert "of 2 models 1 slower, 1 same, and of 1 brick 1 slower" in told
    (between,) = found["comparisons"]
    assert [(it["name"], it["verdict"]) for it in between["models"]["changes"]] == [("<m>", "slower"), ("n", "same")]
    assert {(it["of"], it["system"]) for it in between["not_compared"]} == {("brick", "here"), ("model", "there")}
    assert found["hosts"]["others"][0]["ratio"] == pytest.approx(0.5)
    assert all(Path(it).is_file() for it in found["files"])
    (slow, same) = rows(folder, "figure-models-b")
    assert float(slow["low"]) < 0.2 < float(slow["high"]) and same["verdict"] == "same"
    # The same files give the same bytes.
    before = {path: path.read_bytes() for path in folder.rglob("*.*") if path.is_file()}
    compare(*files)
    assert {path: path.read_bytes() for path in before} == before


def test_progress_of_a_comparison_names_the_file_that_is_read(
    compare: Compare, files: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, _, told = compare(*files)
    assert "reading" not in told
    monkeypatch.setattr("dlbricks_tui.cli.report._SECONDS_PER_LINE", 0.0)
    _, _, told = compare(*files)
    doing = [f"reading {path}: 0 records so far" for path in files] + ["comparing the results", "drawing the figures"]
    assert told.splitlines()[:4] == doing


def test_what_cannot_be_compared_is_one_line(compare: Compare, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    exported(Path("a.json"), result := model("m", 1.0))
    exported(Path("cold.json"), model("m", 1.0, protocol="cold"))
    exported(Path("same.json.gz"), result)
    newer = b'{"end_to_end": {\n"1": %s\n}}\n' % line_of_record(model("m", 1.0), schema=SCHEMA + 1)
    for name, content in (("empty.json", b""), ("broken.json", b"\x1f\x8b broken"), ("newer.json", newer)):
        Path(name).write_bytes(content)
    for second, said in {
        "a.json": "a.json is named twice: a comparison needs different files",
        "same.json.gz": "a.json and same.json.gz have the same results: name different ones",
        "cold.json": "a.json was measured by method hot, and cold.json by method cold",
        "gone.json": "cannot read",
        ".": "cannot read",
        "nothing": "'nothing' is no system, runtime, run or day",
        "empty.json": "nothing to compare: it has no results",
        "broken.json": "is packed and incomplete",
        "newer.json": "newer dlbricks",
    }.items():
        assert said in one_line(compare("a.json", second)), second
    assert "two sides or more" in one_line(compare("a.json"))
    for more in (("--system", "here"), ("--runtime", ONE), MODELS):
        assert "leave --models, --system" in one_line(compare("a.json", "cold.json", more=more))
    assert not Path("report").exists()
