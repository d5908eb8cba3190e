"""`dlbricks evaluate` and `dlbricks check`, with an interpreter that always starts the fake worker."""

import json
import os
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from dlbricks_tui import api
from dlbricks_tui.api.checks import read_baselines
from dlbricks_tui.api.opening import library
from dlbricks_tui.cli.main import main
from dlbricks_tui.evaluations.evaluation import (
    EvaluatedModel,
    EvaluatedRuntime,
    Evaluation,
    Measuring,
    RecordedResult,
)
from dlbricks_tui.evaluations.file import read_evaluation, write_evaluation
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.host.fingerprint import fingerprint
from dlbricks_tui.host.queue import HOST_LOCK_VARIABLE, host_queue
from dlbricks_tui.jobs.folder import RunFolders
from dlbricks_tui.measure.method import Method
from dlbricks_tui.measure.results import runtime_record
from dlbricks_tui.models.graph import Level
from dlbricks_tui.runs.control import create_run
from dlbricks_tui.runs.request import RunRequest, chosen, read_request
from dlbricks_tui.runs.run import execute
from dlbricks_tui.runs.work import Workplace
from dlbricks_tui.runtime.registry import Registry
from dlbricks_tui.runtime.traits import Format
from dlbricks_tui.runtime.variant import InstructionSet
from dlbricks_tui.store.change import Verdict
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.records import EndToEnd, System
from tests.cli.people import Command, document, hurry, one_line, schema_kept
from tests.models.onnx_models import saved, small
from tests.runs.runs import MODEL
from tests.store.samples import end_to_end

pytestmark = pytest.mark.usefixtures("without_mxnet", "_steady")


@pytest.fixture
def _steady(monkeypatch: pytest.MonkeyPatch) -> None:
    # Every worker invents the same latencies.
    monkeypatch.setenv("FAKE_NOISE", "0.005")


@pytest.fixture
def at(tmp_path: Path, fake_interpreter: Path, dlbricks: Command) -> Callable[..., Command]:
    """Return `dlbricks ...` in a data folder of this name, with a runtime called `fake`."""

    def in_folder(name: str) -> Command:
        here = partial(dlbricks, folder=tmp_path / name)
        if REGISTERED:
            (tmp_path / name).mkdir()
            (tmp_path / name / "runtimes.json").write_bytes(REGISTERED[0])
        else:
            assert here("runtimes", "add", fake_interpreter, "--name", "fake")[0] == 0
            REGISTERED.append((tmp_path / name / "runtimes.json").read_bytes())
        return here

    return in_folder


@pytest.fixture
def full_file(at: Callable[..., Command], tmp_path: Path) -> Path:
    """The evaluation of a run with two threads, written in a data folder of its own; one run serves all tests."""
    file = tmp_path / "alexnet.toml"
    if not WRITTEN:
        there = at("there")
        assert there(*RUN)[0] == 0
        status, out, _ = there("evaluate", "--from", "last", "-o", file)
        assert (status, out) == (0, f"{file}\n")
        WRITTEN.append(file.read_bytes())
    file.write_bytes(WRITTEN[0])
    return file


@pytest.fixture
def file(full_file: Path) -> Path:
    """The same evaluation of the whole model only, which is quick."""
    return change(full_file, lambda it: replace(it, measuring=replace(it.measuring, bricks=False)))


@pytest.fixture
def here(at: Callable[..., Command]) -> Command:
    return at("here")


# What the first test has made, for all others: the list of runtimes, and the evaluation.
REGISTERED: list[bytes] = []
WRITTEN: list[bytes] = []
HOW = ("--runtime", "fake", "--threads", "2", "--level", "written", "--fixed-runs", "12")
RUN = ("run", MODEL, *HOW, "--end-to-end")
# A comparison in one process is quick.
COMPARE = ("--compare", "--processes", "1")


def change(file: Path, how: Callable[[Evaluation], Evaluation]) -> Path:
    """Change an evaluation in its file."""
    write_evaluation(how(read_evaluation(file)), file)
    return file


def runs_in(tmp_path: Path, name: str) -> list[Path]:
    """Return the requests of all runs of a data folder, the newest last."""
    folders = RunFolders(DataFolder(tmp_path / name).runs)
    return [folders.find(state.run).request_file for state in folders.states()]


def test_an_evaluation_from_another_data_folder_is_called_the_same(
    here: Command, full_file: Path, tmp_path: Path
) -> None:
    found = document(here("evaluate", full_file, "--compare", "--processes", "2", "--json"))
    assert found["refused"] is False and all(it["matches"] for it in found["same"])
    label = found["evaluation"]
    assert (label["file"], label["sha256"]) == (str(full_file), read_evaluation(full_file).sha256)
    (result,), (compared,) = found["results"], found["comparison"]
    assert (result["model"], result["framework"], result["threads"], result["samples"]) == (MODEL, "mxnet", 2, 24)
    assert result["measured_ms"] == compared["is_ms"]
    assert result["measured_interval_ms"][0] <= result["measured_ms"] <= result["measured_interval_ms"][1]
    assert (result["coverage"]["missing"], result["unmet"]) == (0, []) and result["estimate_ms"] > 0
    assert (compared["verdict"], compared["of"], compared["differences"]) == ("same", "end to end", [])
    assert found["compared_with"] == "file"
    # The first run measures bricks and the whole model, the other one the whole model again.
    assert [read_request(it).bricks for it in runs_in(tmp_path, "here")] == [True, False]


def test_only_what_the_store_lacks_is_run_and_a_comparison_measures_whole_models_again(
    here: Command, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = document(here("evaluate", file, "--json"))
    (path,) = runs_in(tmp_path, "here")
    label = read_evaluation(file).label
    assert read_request(path).evaluation == label
    with ResultsDatabase(DataFolder(tmp_path / "here").store) as store:
        (timed,) = store.records(EndToEnd)
        origin = store.provenance_of(timed.run, timed.runtime)
    assert origin is not None and (origin.evaluation, origin.unmet) == (label, ())
    status, second, told = here("evaluate", file, "--json")
    assert (status, told, json.loads(second)["results"]) == (0, "", first["results"])
    monkeypatch.setenv("COLUMNS", "80")
    out = here("evaluate", file)[1]
    assert "END TO END" in out and max(len(line) for line in out.splitlines()[1:]) <= 80
    assert len(runs_in(tmp_path, "here")) == 1
    assert here("evaluate", file, "--again", "--quiet")[0] == 0
    assert len(runs_in(tmp_path, "here")) == 2
    status, out, _ = here("evaluate", file, *COMPARE, "--quiet")
    assert status == 0 and "same" in out
    request = read_request(runs_in(tmp_path, "here")[-1])
    assert (request.again, request.bricks, request.end_to_end) == (True, False, True)


def test_the_runtimes_of_an_evaluation_share_a_run_that_gives_an_evaluation_of_all(
    here: Command, file: Path, tmp_path: Path
) -> None:
    def with_another(it: Evaluation) -> Evaluation:
        one = it.runtimes[0]
        limited = replace(one, threads=(1,), instructions=(InstructionSet.SSE41,))
        return replace(it, runtimes=(one, limited, replace(one, variables={"OMP_DYNAMIC": "false"})), results=())

    change(file, with_another)
    again = tmp_path / "again.toml"
    assert here("evaluate", file, "--quiet")[0] == 0
    (path,) = runs_in(tmp_path, "here")
    assert len(read_request(path).parts) == 3
    assert here("evaluate", "--from", "last", "-o", again)[0] == 0
    found = read_evaluation(again)
    # Not each combination of threads and kernels was measured: each variant stands for itself.
    assert found.runtimes == read_evaluation(file).runtimes
    assert [(it.threads, it.instructions.value) for it in found.results] == [(2, "all"), (1, "sse41"), (2, "all")]


def test_the_evaluation_of_a_run_states_what_a_stranger_needs(full_file: Path) -> None:
    found = read_evaluation(full_file)
    (model,), (runtime,), (result,) = found.models, found.runtimes, found.results
    assert (found.name, model.name, model.path, len(model.sha256)) == ("alexnet", MODEL, "", 64)
    assert (runtime.framework, runtime.version, runtime.threads) == ("mxnet", "==1.9.1", (2,))
    assert (found.measuring.fixed_runs, found.measuring.bricks, found.measuring.end_to_end) == (12, True, True)
    assert len(result.samples_ms) == 12
    assert (result.model, result.version, result.threads) == (MODEL, "1.9.1", 2)
    assert result.estimate_ms is not None
    assert dict(result.packages)["dlbricks"]
    assert {"kernel", "cpu", "cores"} <= dict(result.host).keys()


def test_a_changed_version_is_refused_named_and_marked(here: Command, file: Path, tmp_path: Path) -> None:
    def of_an_older_version(it: Evaluation) -> Evaluation:
        runtime, result = replace(it.runtimes[0], version="==1.8.0"), replace(it.results[0], version="1.8.0")
        return replace(it, runtimes=(runtime,), results=(result,))

    change(file, of_an_older_version)
    status, out, told = here("evaluate", file, "--json")
    found = json.loads(out)
    schema_kept(found, "evaluate")
    assert (status, found["refused"], found["results"], found.get("comparison")) == (1, True, [], None)
    (mismatch,) = [it for it in found["same"] if not it["matches"]]
    assert (mismatch["subject"], mismatch["wanted"], mismatch["found"]) == ("MXNet", "==1.8.0", "1.9.1")
    assert "MXNet: wanted ==1.8.0, found 1.9.1; install it" in told
    assert not runs_in(tmp_path, "here")
    found = document(here("evaluate", file, "--anyway", *COMPARE, "--json"))
    schema_kept(found, "evaluate")
    assert {"subject": "MXNet version", "was": "1.8.0", "now": "1.9.1"} in found["comparison"][0]["differences"]
    # A later call without a measurement marks the result, too.
    status, out, told = here("evaluate", file, "--anyway")
    assert "[1] MXNet: wanted ==1.8.0, found 1.9.1" in out and "1 result marked" in told


def test_a_mark_stays_with_the_result_when_the_evaluation_is_met_again(
    here: Command, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    change(file, lambda it: replace(it, system=replace(it.system, quiet=True)))
    where = "dlbricks_tui.api.preparing.disturbances"
    monkeypatch.setattr(where, lambda: ("the processors are 40% busy",))
    assert here("evaluate", file)[0] == 1
    assert not runs_in(tmp_path, "here")
    assert here("evaluate", file, "--anyway", "--quiet")[0] == 0
    monkeypatch.setattr(where, lambda: ())
    _, out, _ = here("evaluate", file, "--json")
    assert json.loads(out)["results"][0]["unmet"] == ["quiet: wanted quiet, found the processors are 40% busy"]
    _, out, _ = here("evaluate", file, "--again", "--json")
    assert json.loads(out)["results"][0]["unmet"] == []


def test_a_slower_model_is_a_negative_verdict(here: Command, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_FACTOR", "2")
    status, out, _ = here("evaluate", file, *COMPARE, "--json")
    (compared,) = json.loads(out)["comparison"]
    assert (status, compared["verdict"], compared["significant"]) == (1, "slower", True)
    assert compared["change"] == pytest.approx(1.0, abs=0.05)


def test_without_results_in_the_file_the_store_is_compared_with(here: Command, file: Path, tmp_path: Path) -> None:
    change(file, lambda it: replace(it, results=()))
    status, _, told = here("evaluate", file, *COMPARE)
    assert status == 2
    assert "records no results" in told
    assert not runs_in(tmp_path, "here")
    assert here("evaluate", file, "--quiet")[0] == 0
    status, out, _ = here("evaluate", file, *COMPARE, "--json")
    found = json.loads(out)
    assert (status, found["compared_with"], found["comparison"][0]["verdict"]) == (0, "store", "same")
    change(file, lambda it: replace(it, runtimes=(replace(it.runtimes[0], threads=(1,)),)))
    _, out, _ = here("evaluate", file, *COMPARE, "--json")
    (compared,) = json.loads(out)["comparison"]
    assert [it["subject"] for it in compared["differences"]] == ["threads"]


def test_nothing_runs_if_no_model_or_runtime_is_there(here: Command, file: Path, tmp_path: Path) -> None:
    def elsewhere(it: Evaluation) -> Evaluation:
        models = (replace(it.models[0], name="nowhere", sha256="0" * 64),)
        return replace(it, models=models, results=())

    change(file, elsewhere)
    for options in ((), ("--anyway",)):
        status, _, told = here("evaluate", file, *options)
        assert status == 1
        assert "model nowhere: wanted sha256 000000000000, found no file" in told
    assert not runs_in(tmp_path, "here")


def test_a_wrong_command_line_is_one_line(here: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("FILE").write_text("format = 1\n")
    for words, said in {
        "": "name an evaluation to carry out",
        "--from last": "name only the file to write, with -o FILE",
        "FILE --from last -o other.toml": "measures nothing",
        "--from last -o other.toml --compare": "measures nothing",
        "FILE -o other.toml": "belong to --from RUN",
        "FILE --force": "belong to --from RUN",
        "FILE --processes 2": "belong to --compare",
        "missing.toml": "missing.toml",
    }.items():
        assert said in one_line(here("evaluate", *words.split())), words


def test_an_evaluation_of_a_run_replaces_a_file_only_by_force_and_some_runs_cannot_be_repeated(
    here: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, other = tmp_path / "mine.toml", tmp_path / "out.toml"
    file.write_text("mine")
    assert "there is no run" in one_line(here("evaluate", "--from", "last", "-o", other))
    here(*RUN)
    assert "exists already" in one_line(here("evaluate", "--from", "last", "-o", file))
    assert file.read_text() == "mine"
    status, out, _ = here("evaluate", "--from", "last", "-o", file, "--force", "--json")
    assert (status, json.loads(out)["sha256"]) == (0, read_evaluation(file).sha256)
    with monkeypatch.context() as patched:
        patched.setattr("dlbricks_tui.measure.method._VERSIONS", dict.fromkeys(("inside", "alone"), "new"))
        status, _, told = here("evaluate", "--from", "last", "-o", other)
    assert status == 0 and "it records no results" in told
    assert read_evaluation(other).results == ()
    folder = RunFolders(DataFolder(tmp_path / "here").runs).find("last")
    request = json.loads(folder.request_file.read_text())
    folder.request_file.write_text(json.dumps({**request, "suite": ["folder", "results"]}))
    told = one_line(here("evaluate", "--from", "last", "-o", other, "--force"))
    assert "suite of private models" in told


def test_the_schema_of_the_file_is_printed(here: Command) -> None:
    found = document(here("evaluate", "--schema"))
    assert found["$schema"]


@pytest.mark.soak
def test_an_evaluation_of_a_real_run_is_the_same_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The real ONNX Runtime in an empty data folder; a busy host may need a second attempt, or cannot tell."""
    net, file = tmp_path / "net.onnx", tmp_path / "net.toml"
    saved(tmp_path, small())
    data = ["--data-dir", str(tmp_path / "there")]
    assert main([*data, "run", str(net), "--runtime", "onnxruntime", "--threads", "1", "--end-to-end"]) == 0
    assert main([*data, "evaluate", "--from", "last", "-o", str(file)]) == 0
    assert read_evaluation(file).models[0].path == net.name
    verdicts = []
    for attempt in range(3):
        capsys.readouterr()
        here = ["--data-dir", str(tmp_path / f"here-{attempt}")]
        main([*here, "evaluate", str(file), *COMPARE, "--by", "20%", "--json"])
        found = json.loads(capsys.readouterr().out)
        assert all(it["matches"] for it in found["same"])
        (compared,) = found["comparison"]
        assert compared["differences"] == []
        verdicts.append(compared["verdict"])
        if verdicts[-1] in ("same", "unknown"):
            break
    assert verdicts[-1] in ("same", "unknown"), verdicts


BY_THE_FAKE = ("--runtime", "fake")
# What latencies of the fake worker were multiplied by when the baseline was measured.
BASELINE_FACTOR = "2"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, fake_interpreter: Path) -> Iterator[Path]:
    """A folder with the data of a host that has a runtime called `fake`, and a file with an earlier latency."""
    folder = tmp_path_factory.mktemp("check")
    data = DataFolder(folder / "data")
    with pytest.MonkeyPatch.context() as patch:
        hurry(patch)
        patch.setenv(HOST_LOCK_VARIABLE, str(folder / "host.lock"))
        patch.setenv("FAKE_FACTOR", BASELINE_FACTOR)
        added = ("runtimes", "add", str(fake_interpreter), "--name", "fake", "--threads", "1")
        assert main(["--data-dir", str(data.path), *added]) == 0
        request = RunRequest(
            models=chosen([it.in_format(Format.MXNET) for it in library(data).find(MODEL)]),
            runtime=Registry(data.path).find("fake"),
            level=Level.WRITTEN,
            end_to_end=True,
            bricks=False,
            method=Method.ALONE,
        )
        execute(create_run(request, data), request, Workplace(data), host_queue())
        assert main(["--data-dir", str(data.path), "results", "export", str(folder / "before.json.gz")]) == 0
    yield folder


@pytest.fixture
def check(place: Path, dlbricks: Command, monkeypatch: pytest.MonkeyPatch) -> Command:
    """Run `dlbricks check ...` against the file, unless another is named, where nothing has changed."""
    monkeypatch.setenv("FAKE_FACTOR", BASELINE_FACTOR)

    def run(*arguments: str, against: Path = place / "before.json.gz") -> tuple[int, str, str]:
        return dlbricks("check", *arguments, "--against", against, *BY_THE_FAKE, folder=place / "data")

    return run


def exported(place: Path, file: Path, result: EndToEnd, *, systems: Sequence[System]) -> Path:
    """Write a file with this result by the fake runtime on these systems."""
    runtime = runtime_record(Registry(place / "data").find("fake"), fingerprint())
    with ResultsDatabase(file.parent / "elsewhere" / "store") as store:
        for system in systems:
            uuid = system.id.encode().hex()[:16] * 2
            store.add(system, runtime, replace(result, system=system.id, runtime=runtime.id, uuid=uuid))
    assert main(["--data-dir", str(file.parent / "elsewhere"), "results", "export", str(file)]) == 0
    return file


def of_model(latency_ms: float) -> EndToEnd:
    """Return a result of the usual model."""
    return end_to_end(latency_ms, name=MODEL, level=Level.WRITTEN, protocol=Method.ALONE.id)


def test_a_model_is_the_same_or_faster_or_changed_by_less_than_the_limit(
    check: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    status, out, told = check()
    assert status == 0
    (line,) = out.splitlines()
    assert line.startswith(f"same     {MODEL} (mxnet, 1 thread, written): ")
    assert "in 3 processes; changes up to 3.0 % count as none" in told
    assert "1 same" in told
    monkeypatch.setenv("FAKE_FACTOR", "1")
    status, out, _ = check("--processes", "1")
    assert status == 0 and out.startswith("faster ") and "-50." in out and "p < 0.001" in out
    monkeypatch.setenv("FAKE_FACTOR", "3")
    status, out, _ = check("--processes", "1", "--by", "60%")
    assert status == 0 and out.startswith("same ")


def test_a_slower_model_gives_status_1_every_documented_key_and_a_failure_for_junit(
    check: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("FAKE_FACTOR", "3")
    file = tmp_path / "verdicts.xml"
    (found,) = document(check(MODEL, "--json", "--processes", "2", "--junit", str(file)), 1)
    schema_kept([found], "check")
    assert (found["model"], found["verdict"], found["significant"]) == (MODEL, "slower", True)
    assert found["is_ms"] == pytest.approx(1.5 * found["was_ms"], rel=0.02)
    low, high = found["interval"]
    assert low < found["change"] < high and found["change"] == pytest.approx(0.5, abs=0.03)
    assert len(set(found["runs"])) == 2 and found["is_samples"] >= found["was_samples"] > 4
    suite = ET.parse(file).getroot()[0]
    assert suite.get("failures") == "1"
    (case,) = suite.findall("testcase")
    failure = case.find("failure")
    assert case.get("name") == f"{MODEL} (mxnet, 1 thread, written)"
    assert failure is not None and failure.text is not None and f"slower   {MODEL} (" in failure.text


def test_another_system_is_told_and_is_a_difference(check: Command, place: Path, tmp_path: Path) -> None:
    other = replace(fingerprint(), id="c5.xlarge", name="c5.xlarge")
    file = exported(place, tmp_path / "other.json", of_model(1.0), systems=[other])
    status, out, told = check("--processes", "1", "--json", against=file)
    (found,) = json.loads(out)
    assert status == 1 and found["verdict"] == "slower"
    assert {"subject": "system", "was": "c5.xlarge", "now": fingerprint().id} in found["differences"]
    assert "other.json was measured on another system, c5.xlarge" in told


def test_a_model_that_the_file_lacks_gives_status_1(check: Command, tmp_path: Path) -> None:
    status, out, _ = check("resnet18_v1", "--junit", str(tmp_path / "out.xml"))
    assert status == 1
    assert out == "unknown  resnet18_v1: before.json.gz has no latency of it\n"
    suite = ET.parse(tmp_path / "out.xml").getroot()[0]
    assert (suite.get("tests"), suite.get("errors"), suite.get("failures")) == ("1", "1", "0")


def test_a_model_that_fails_gives_its_reason_and_status_1(check: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_MANNERS", json.dumps({"Convolution": "unbuildable"}))
    status, out, _ = check("--quiet", "--json")
    (found,) = json.loads(out)
    assert status == 1 and not found["compared"]
    assert (found["verdict"], found["is_ms"], found["reason"]) == ("unknown", None, "the operator is unbuildable")


def evaluation_of(*results: RecordedResult) -> Evaluation:
    return Evaluation(
        name="night",
        models=(EvaluatedModel(name=MODEL),),
        runtimes=(EvaluatedRuntime(framework="mxnet"),),
        measuring=Measuring(level=Level.WRITTEN, method=Method.ALONE),
        results=results,
    )


def test_an_evaluation_with_results_is_a_baseline_too_and_a_changed_kernel_is_named(
    check: Command, place: Path, tmp_path: Path
) -> None:
    (found,) = read_baselines(place / "before.json.gz").found
    assert dict(found.result.host)["kernel"], "the run has recorded where its results come from"
    older = replace(found.result, host=tuple({**dict(found.result.host), "kernel": "5.4.0"}.items()))
    file = tmp_path / "night.toml"
    write_evaluation(evaluation_of(older), file)
    status, out, _ = check("--processes", "1", against=file)
    assert status == 0 and out.startswith(f"same     {MODEL} ")
    assert f"kernel: 5.4.0 before, {dict(found.result.host)['kernel']} now" in out
    assert "leave --system out" in one_line(check("--system", "pi", against=file))
    write_evaluation(evaluation_of(), file)
    assert "has no results to compare with" in one_line(check(against=file))


def test_a_wrong_file_or_option_is_one_line(check: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, content, said in (
        ("text.json", "no json", "nothing in"),
        ("empty.json", "", "has no good results of whole models"),
        ("table.csv", "a,b", "is neither an evaluation"),
    ):
        Path(name).write_text(content)
        told = one_line(check(against=Path(name)))
        assert said in told and name in told
    assert "cannot read" in one_line(check(against=Path("missing.json")))
    # Root may write anywhere.
    Path("locked").mkdir()
    may = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path).name != "locked" and may(path, mode))
    for words, said in {
        "--junit .": "that is a folder",
        "--junit locked/out.xml": "this user may not write to ",
        "--junit nowhere/out.xml": "there is no folder",
        "no-such-model": "no model 'no-such-model'",
        "--system pi": "has no system called 'pi': name one of",
    }.items():
        assert said in one_line(check(*words.split()))


def test_a_check_against_a_damaged_file_names_its_damage(check: Command, place: Path, tmp_path: Path) -> None:
    file = exported(place, tmp_path / "edited.json", of_model(1.0), systems=[fingerprint()])
    file.write_text(file.read_text().replace(MODEL, "other"))
    told = one_line(check(against=file))
    assert "has no good results of whole models (1 line left out, the first: edited.json line " in told, told


def test_a_file_of_several_other_systems_needs_the_name_of_one(check: Command, place: Path, tmp_path: Path) -> None:
    alike = replace(fingerprint(), instance_type="c5.large")
    # An id is clear, whatever else is called the same.
    systems = [replace(alike, id=name, name=name) for name in ("c5.large", "c5.xlarge")]
    file = exported(place, tmp_path / "two.json", of_model(1.0), systems=systems)
    assert "name one by --system: c5.large, c5.xlarge" in one_line(check(against=file))
    status, out, _ = check("resnet18_v1", "--system", "c5.large", against=file)
    assert (status, out) == (1, "unknown  resnet18_v1: two.json has no latency of it\n")


def test_the_api_checks_as_the_command_does(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_FACTOR", "3")
    told: list[api.Progress] = []
    options = api.CheckOptions(runtime="fake", processes=1)
    (found,) = api.check(place / "before.json.gz", MODEL, options, progress=told.append, data=place / "data")
    assert (found.model, found.verdict) == (MODEL, Verdict.SLOWER)
    assert told[-1].state is api.State.FINISHED
