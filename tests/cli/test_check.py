"""`dlbricks check` and `api.check`, with an interpreter that always starts the fake worker."""

import json
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dlbricks_tui import api
from dlbricks_tui.api.checks import read_baselines
from dlbricks_tui.api.opening import library
from dlbricks_tui.cli.main import main
from dlbricks_tui.evaluations.evaluation import EvaluatedModel, EvaluatedRuntime, Evaluation, Measuring, RecordedResult
from dlbricks_tui.evaluations.file import write_evaluation
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.host.fingerprint import fingerprint
from dlbricks_tui.host.queue import HOST_LOCK_VARIABLE, host_queue
from dlbricks_tui.measure.method import Method
from dlbricks_tui.measure.results import runtime_record
from dlbricks_tui.models.graph import Level
from dlbricks_tui.runs.control import create_run
from dlbricks_tui.runs.request import RunRequest, chosen
from dlbricks_tui.runs.run import execute
from dlbricks_tui.runs.work import Workplace
from dlbricks_tui.runtime.registry import Registry
from dlbricks_tui.runtime.traits import Format
from dlbricks_tui.store.change import Verdict
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.records import EndToEnd, System
from dlbricks_tui.store.statistics import summarise
from tests.cli.people import Command, document, hurry, one_line, schema_kept
from tests.runs.runs import MODEL
from tests.store.samples import end_to_end

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


def exported(place: Path, file: Path, *results: EndToEnd, system: System | None = None) -> Path:
    """Write a file with these results by the fake runtime, of this host unless another system is given."""
    system = system or fingerprint()
    runtime = runtime_record(Registry(place / "data").find("fake"), system)
    with ResultsDatabase(file.parent / f"{file.name}-store") as store:
        store.add(system, runtime, *(replace(it, system=system.id, runtime=runtime.id) for it in results))
    data = file.parent / f"{file.name}-data"
    data.mkdir()
    (file.parent / f"{file.name}-store").rename(data / "store")
    assert main(["--data-dir", str(data), "results", "export", str(file)]) == 0
    return file


def of_model(latency_ms: float, samples: int = 20, **fields: Any) -> EndToEnd:
    """Return a result of the usual model, whose samples vary by 1 %."""
    taken = tuple(latency_ms * (1 + number % 5 / 500) for number in range(samples))
    usual: dict[str, Any] = {"name": MODEL, "level": Level.WRITTEN, "protocol": Method.ALONE.id}
    return end_to_end(**{**usual, "samples_ms": taken, "statistics": summarise(taken), **fields})


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


def test_too_few_earlier_samples_give_no_verdict_and_no_failure(check: Command, place: Path, tmp_path: Path) -> None:
    file = exported(place, tmp_path / "few.json", of_model(1.0, samples=4))
    status, out, _ = check("--processes", "1", against=file)
    assert status == 0
    assert out.startswith("unknown ") and "fewer than 5 samples" in out


def test_another_system_is_told_and_is_a_difference(check: Command, place: Path, tmp_path: Path) -> None:
    other = replace(fingerprint(), id="c5.xlarge", name="c5.xlarge")
    file = exported(place, tmp_path / "other.json", of_model(1.0), system=other)
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
    write_evaluation(evaluation_of(), file)
    assert "has no results to compare with" in one_line(check(against=file))


def test_a_wrong_file_or_option_is_one_line(check: Command, tmp_path: Path) -> None:
    for name, content, said in (
        ("missing.json", None, "cannot read"),
        ("text.json", "no json", "nothing in"),
        ("empty.json", "", "has no good results of whole models"),
        ("table.csv", "a,b", "is neither an evaluation"),
    ):
        file = tmp_path / name
        if content is not None:
            file.write_text(content)
        told = one_line(check(against=file))
        assert said in told and name in told
    (tmp_path / "folder.json").mkdir()
    assert "cannot read" in one_line(check(against=tmp_path / "folder.json"))
    for arguments, said in (
        (("--by", "0"), "give a share above 0 %"),
        (("--processes", "0"), "give a whole number from 1 to 20"),
        (("--junit", "."), "that is a folder"),
        (("--junit", "nowhere/out.xml"), "there is no folder"),
        (("no-such-model",), "no model 'no-such-model'"),
        (("--system", "pi"), "has no system called 'pi': name one of"),
    ):
        assert said in one_line(check(*arguments))


def test_a_file_of_several_other_systems_needs_the_name_of_one(check: Command, place: Path, tmp_path: Path) -> None:
    here = fingerprint()
    data = tmp_path / "data"
    runtime = runtime_record(Registry(place / "data").find("fake"), here)
    with ResultsDatabase(data / "store") as store:
        for name in ("c5.large", "c5.xlarge"):
            system = replace(here, id=name, name=name)
            store.add(
                system, runtime, of_model(1.0, system=name, runtime=runtime.id, uuid=name.encode().hex()[:16] * 2)
            )
    file = tmp_path / "two.json"
    assert main(["--data-dir", str(data), "results", "export", str(file)]) == 0
    status, _, told = check(against=file)
    assert status == 2 and "name one by --system: c5.large, c5.xlarge" in told
    status, out, _ = check("resnet18_v1", "--system", "c5.large", against=file)
    assert (status, out) == (1, "unknown  resnet18_v1: two.json has no latency of it\n")


def test_the_api_checks_as_the_command_does(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_FACTOR", "3")
    told: list[api.Progress] = []
    options = api.CheckOptions(runtime="fake", processes=1)
    (found,) = api.check(place / "before.json.gz", MODEL, options, progress=told.append, data=place / "data")
    assert (found.model, found.verdict) == (MODEL, Verdict.SLOWER)
    assert told[-1].state is api.State.FINISHED
