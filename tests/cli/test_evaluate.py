"""`dlbricks evaluate` with interpreters that always start the fake worker."""

import json
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from dlbricks_tui.cli.main import main
from dlbricks_tui.evaluations.evaluation import EvaluatedScenario, Evaluation
from dlbricks_tui.evaluations.file import read_evaluation, write_evaluation
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.jobs.folder import RunFolders
from dlbricks_tui.runs.request import read_request
from dlbricks_tui.runtime.variant import InstructionSet, Precision
from dlbricks_tui.scenarios.scenario import ScenarioKind
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.records import EndToEnd
from tests.cli.people import Command, document, one_line, schema_kept
from tests.models.onnx_models import saved, small
from tests.runs.runs import MODEL

pytestmark = pytest.mark.usefixtures("without_mxnet", "_steady")


@pytest.fixture
def _steady(monkeypatch: pytest.MonkeyPatch) -> None:
    # Every worker invents the same latencies.
    monkeypatch.setenv("FAKE_NOISE", "0.005")


@pytest.fixture
def at(tmp_path: Path, fake_interpreter: Path, dlbricks: Command) -> Callable[..., Command]:
    """Return `dlbricks ...` in a data folder of this name, with a runtime called `fake`."""

    def in_folder(name: str, *options: str) -> Command:
        here = partial(dlbricks, folder=tmp_path / name)
        registered = tmp_path / name / "runtimes.json"
        if options in REGISTERED:
            registered.parent.mkdir()
            registered.write_bytes(REGISTERED[options])
        else:
            assert here("runtimes", "add", fake_interpreter, "--name", "fake", *options)[0] == 0
            REGISTERED[options] = registered.read_bytes()
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


# What the first test has made, for all others: by the options of the runtime, and of the evaluation.
REGISTERED: dict[tuple[str, ...], bytes] = {}
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


def subjects(found: dict[str, Any]) -> list[str]:
    return [it["subject"] for it in found["differences"]]


def test_an_evaluation_from_another_data_folder_is_called_the_same(
    here: Command, full_file: Path, tmp_path: Path
) -> None:
    file = full_file
    found = document(here("evaluate", file, "--compare", "--processes", "2", "--json"))
    assert found["refused"] is False
    assert all(it["matches"] for it in found["same"])
    assert found["evaluation"]["file"] == str(file)
    assert found["evaluation"]["sha256"] == read_evaluation(file).sha256
    (result,), (compared,) = found["results"], found["comparison"]
    assert (result["model"], result["framework"], result["threads"], result["samples"]) == (MODEL, "mxnet", 2, 24)
    assert result["measured_ms"] == compared["is_ms"]
    assert result["measured_interval_ms"][0] <= result["measured_ms"] <= result["measured_interval_ms"][1]
    assert result["coverage"]["missing"] == 0 and result["estimate_ms"] > 0
    assert result["unmet"] == []
    assert (compared["verdict"], compared["of"], compared["differences"]) == ("same", "end to end", [])
    assert found["compared_with"] == "file"
    # The first run measures bricks and the whole model, the other one the whole model again.
    assert [read_request(it).bricks for it in runs_in(tmp_path, "here")] == [True, False]


def test_only_what_the_store_lacks_is_run_and_a_comparison_measures_whole_models_again(
    here: Command, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, first, _ = here("evaluate", file, "--json")
    (path,) = runs_in(tmp_path, "here")
    assert read_request(path).evaluation == read_evaluation(file).label
    with ResultsDatabase(DataFolder(tmp_path / "here").store) as store:
        (timed,) = store.records(EndToEnd)
        origin = store.provenance_of(timed.run, timed.runtime)
    assert origin is not None
    assert (origin.evaluation, origin.unmet) == (read_evaluation(file).label, ())
    status, second, told = here("evaluate", file, "--json")
    assert (status, told) == (0, "")
    assert json.loads(second)["results"] == json.loads(first)["results"]
    # A narrow terminal gets fewer columns.
    assert "95 % INTERVAL" in here("evaluate", file)[1]
    monkeypatch.setenv("COLUMNS", "80")
    _, out, _ = here("evaluate", file)
    assert "END TO END" in out and "95 % INTERVAL" not in out
    assert max(len(line) for line in out.splitlines()[1:]) <= 80
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


def test_a_variable_of_this_host_is_refused_and_named(at: Callable[..., Command], file: Path, tmp_path: Path) -> None:
    tuned = at("tuned", "--env", "OMP_WAIT_POLICY=active")
    status, out, told = tuned("evaluate", str(file))
    assert (status, out) == (1, "")
    assert "does not match: MXNet variable OMP_WAIT_POLICY: wanted not set, found active; " in told
    assert not runs_in(tmp_path, "tuned")
    found = document(tuned("evaluate", str(file), "--anyway", *COMPARE, "--json"))
    assert subjects(found["comparison"][0]) == ["variable OMP_WAIT_POLICY"]
    assert found["results"][0]["unmet"] == ["MXNet variable OMP_WAIT_POLICY: wanted not set, found active"]


def test_a_changed_version_is_refused_named_and_marked(here: Command, file: Path, tmp_path: Path) -> None:
    def of_an_older_version(it: Evaluation) -> Evaluation:
        runtime, result = replace(it.runtimes[0], version="==1.8.0"), replace(it.results[0], version="1.8.0")
        return replace(it, runtimes=(runtime,), results=(result,))

    change(file, of_an_older_version)
    status, out, told = here("evaluate", file, "--json")
    found = json.loads(out)
    schema_kept(found, "evaluate")
    assert "comparison" not in found
    assert (status, found["refused"], found["results"]) == (1, True, [])
    (mismatch,) = [it for it in found["same"] if not it["matches"]]
    assert (mismatch["subject"], mismatch["wanted"], mismatch["found"]) == ("MXNet", "==1.8.0", "1.9.1")
    assert "MXNet: wanted ==1.8.0, found 1.9.1; install it" in told
    assert not runs_in(tmp_path, "here")
    found = document(here("evaluate", file, "--anyway", *COMPARE, "--json"))
    schema_kept(found, "evaluate")
    assert {"subject": "MXNet version", "was": "1.8.0", "now": "1.9.1"} in found["comparison"][0]["differences"]
    # A later call without a measurement marks the result, too.
    status, out, told = here("evaluate", file, "--anyway")
    assert f"{MODEL} [1]" in out
    assert "[1] MXNet: wanted ==1.8.0, found 1.9.1" in out
    assert "1 result marked" in told


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
    assert subjects(compared) == ["threads"]


def test_estimates_are_compared_where_whole_models_are_not_timed(here: Command, full_file: Path) -> None:
    change(full_file, lambda it: replace(it, measuring=replace(it.measuring, end_to_end=False)))
    # Estimates of isolated bricks have wide intervals.
    status, out, _ = here("evaluate", full_file, *COMPARE, "--by", "60%", "--json")
    found = json.loads(out)
    assert (status, found["comparison"][0]["of"], found["comparison"][0]["verdict"]) == (0, "estimate", "same")
    assert found["results"][0]["measured_ms"] is None


def test_a_model_of_another_content_is_refused_and_named(here: Command, file: Path, tmp_path: Path) -> None:
    change(file, lambda it: replace(it, models=(replace(it.models[0], sha256="0" * 64),)))
    status, _, told = here("evaluate", file)
    assert status == 1
    assert f"does not match: model {MODEL}: wanted sha256 000000000000, found sha256 " in told
    assert not runs_in(tmp_path, "here")
    _, out, _ = here("evaluate", file, "--anyway", *COMPARE, "--json")
    # The recorded result is of the content that the run had.
    assert json.loads(out)["comparison"][0]["verdict"] == "same"


def test_a_model_is_found_by_its_content_whatever_its_name_is(here: Command, file: Path) -> None:
    def renamed(it: Evaluation) -> Evaluation:
        return replace(it, models=(replace(it.models[0], name="ours"),), results=())

    change(file, renamed)
    status, out, _ = here("evaluate", file, "--json", "--quiet")
    assert (status, json.loads(out)["results"][0]["model"]) == (0, "ours")


def test_a_model_is_found_at_its_path_beside_the_file(here: Command, file: Path, tmp_path: Path) -> None:
    net = tmp_path / "models" / "net-symbol.json"
    net.parent.mkdir()
    net.write_text("{}")

    def at_path(it: Evaluation) -> Evaluation:
        return replace(
            it, models=(replace(it.models[0], name="net", path="models/net-symbol.json", sha256=""),), results=()
        )

    change(file, at_path)
    status, _, told = here("evaluate", file)
    assert status == 2
    assert "net cannot be read" in told and "nothing was measured" in told
    assert not runs_in(tmp_path, "here")


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


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("--from", "last"),
        ("FILE", "--from", "last", "-o", "other.toml"),
        ("FILE", "-o", "other.toml"),
        ("FILE", "--force"),
        ("FILE", "--by", "3"),
        ("FILE", "--by", "3%"),
        ("FILE", "--processes", "2"),
        ("FILE", "--compare", "--processes", "0"),
        ("--from", "last", "-o", "other.toml", "--compare"),
        ("missing.toml",),
    ],
)
def test_a_wrong_command_line_is_one_line(arguments: tuple[str, ...], here: Command, tmp_path: Path) -> None:
    (tmp_path / "FILE").write_text("format = 1\n")
    words = [str(tmp_path / it) if it in ("FILE", "other.toml", "missing.toml") else it for it in arguments]
    one_line(here("evaluate", *words))


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


def test_a_scenario_without_loadgen_is_refused_before_anything_runs(
    here: Command, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "mlperf_loadgen", None)
    change(file, lambda it: replace(it, scenarios=(EvaluatedScenario(kind=ScenarioKind.SINGLE),)))
    one_line(here("evaluate", file))
    assert not runs_in(tmp_path, "here")


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


def test_an_impossible_variant_is_left_out_and_the_others_carry_no_mark(here: Command, file: Path) -> None:
    def in_bf16_too(it: Evaluation) -> Evaluation:
        return replace(it, runtimes=(replace(it.runtimes[0], precision=(Precision.F32, Precision.BF16)),))

    change(file, in_bf16_too)
    assert here("evaluate", file)[0] == 1
    status, out, told = here("evaluate", file, "--anyway", "--json")
    (result,) = json.loads(out)["results"]
    assert (status, result["precision"], result["unmet"]) == (1, "f32", [])
    assert "MXNet precision: wanted bf16, found f32" in told
