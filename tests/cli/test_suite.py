"""`dlbricks suite` as people use it, with the real MXNet and the real runtimes of ONNX models."""

import json
import os
import shutil
import signal
import stat
import sys
import zipfile
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

import pytest

from dlbricks_tui.api.measuring import MeasureOptions
from dlbricks_tui.api.suites import suite_run_at
from dlbricks_tui.cli.main import main
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.runtime.registry import Registry
from dlbricks_tui.runtime.variant import Precision
from dlbricks_tui.share.suite_files import sha256
from tests.cli.people import document, one_line
from tests.models.onnx_models import saved, with_a_sequence
from tests.models.table_framework import TableFramework
from tests.share.onnx_network import network as onnx_network
from tests.share.trio import DECOY_WIDTHS, PRIVATE_WIDTHS, SECRET, network


@dataclass(frozen=True)
class Partners:
    """An owner with a private model and some to hide it among, and a vendor with a machine: each has a data folder."""

    path: Path
    capsys: pytest.CaptureFixture[str]
    model: str
    decoys: Sequence[str]
    # The options of the number of decoys, and of the run.
    wanted: tuple[str, ...]
    how: tuple[str, ...]

    def say(self, who: str, *arguments: str) -> tuple[int, str, str]:
        """Run a command and return its status, standard output and standard error."""
        self.capsys.readouterr()
        status = main(["--data-dir", str(self.path / who), *arguments])
        out, told = self.capsys.readouterr()
        return status, out, told

    def export(self, *options: str) -> tuple[int, str, str]:
        named = () if "0" in options else self.decoys
        decoys = [option for path in named for option in ("--decoys-from", path)]
        return self.say("owner", "suite", "export", self.model, "-o", self.suite, *self.wanted, *decoys, *options)

    def run(self, *options: str) -> tuple[int, str, str]:
        return self.say("vendor", "suite", "run", self.suite, "-o", self.results, *self.how, *options)

    @property
    def suite(self) -> str:
        return str(self.path / ("suite.dlbricks" if self.model.endswith(".onnx") else "suite"))

    @property
    def results(self) -> str:
        return str(self.path / "results.json")


@pytest.fixture
def people(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Partners:
    """Partners with an MXNet model."""
    paths = [tmp_path / f"{name}-symbol.json" for name in (SECRET, "decoy0", "decoy1", "decoy2")]
    paths[0].write_bytes(network(PRIVATE_WIDTHS, SECRET))
    for path, widths in zip(paths[1:], DECOY_WIDTHS, strict=True):
        path.write_bytes(network(widths))
    model, *decoys = map(str, paths)
    return Partners(tmp_path, capsys, model, decoys, ("--decoys", "2"), ("--target-ci", "0.9"))


@pytest.fixture
def onnx_people(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Partners:
    """Partners with an ONNX model."""
    model = saved(tmp_path, onnx_network((8,), side=8), SECRET)
    decoy = saved(tmp_path, onnx_network((6,), "decoy", side=8), "decoy")
    return Partners(tmp_path, capsys, str(model), [str(decoy)], ("--decoys", "1"), ("--threads", "1"))


class TableOfTheOwner(TableFramework):
    """A framework that a loader of the owner asks."""

    precision = Precision.F32


@pytest.fixture
def mxnet_of_the_owner_is_a_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """Export without starting MXNet."""
    monkeypatch.setattr("dlbricks_tui.api.suites.WorkerFramework", lambda *_: nullcontext(TableOfTheOwner()))


@pytest.mark.mxnet
@pytest.mark.parametrize("level", ["written", pytest.param("fused", marks=pytest.mark.soak)])
def test_an_owner_estimates_a_machine_that_never_saw_the_model(
    people: Partners, level: str, request: pytest.FixtureRequest
) -> None:
    if level == "written":
        request.getfixturevalue("mxnet_of_the_owner_is_a_table")
    status, out, told = people.export("--level", level, "--json")
    assert status == 0, told
    assert "checking that the bricks of 1 model and 2 decoys arrive unchanged" in told
    exported = json.loads(out)
    assert f"{exported['bricks']} bricks of yours among {exported['decoys']} of 2 decoys; " in told
    assert exported["left_out"] == []
    assert exported["decoys"] >= exported["bricks"] > 3
    assert stat.S_IMODE(Path(exported["key"]).stat().st_mode) == 0o600
    files = [path for path in Path(people.suite).rglob("*") if path.is_file()]
    assert not [path for path in files if SECRET in path.read_text()]

    # It ends before the suite is read, so that there is no file of results.
    status, out, _ = people.run("--time-budget", "0.001")
    assert (status, out, Path(people.results).exists()) == (1, "", False)
    ran = document(people.say("vendor", "runs", "resume", "last", "--time-budget", "inf", "--json"))
    assert ran["models"] == []
    assert ran["results"] == people.results
    assert ran["bricks"]["run"] == exported["bricks"] + exported["decoys"]

    brought = document(people.say("owner", "suite", "import", people.results, "--json"))
    assert (brought["new"], brought["decoys"], brought["missing"]) == (exported["bricks"], exported["decoys"], 0)

    asked = ("estimate", people.model, "--level", level, "--system", brought["system"], "--json")
    (estimate,) = document(people.say("owner", *asked))
    assert estimate["coverage"]["missing"] == estimate["coverage"]["unmeasurable"] == 0
    assert estimate["sequential_ms"] > 0


@pytest.mark.soak
@pytest.mark.usefixtures("mxnet_of_the_owner_is_a_table")
@pytest.mark.mxnet
def test_a_network_that_lies_about_its_shapes_is_refused_by_mxnet_too(people: Partners) -> None:
    people.export("--decoys", "0", "--level", "written")
    manifest = json.loads((Path(people.suite) / "suite.json").read_bytes())
    lies = {path.stem: path for path in (Path(people.suite) / "bricks").iterdir() if '"weight0"' in path.read_text()}
    lie = min(lies)
    content = (
        lies[lie]
        .read_text()
        .replace('"name":"weight0","attrs":{"__shape__":"(', '"name":"weight0","attrs":{"__shape__":"(7, ')
    )
    lies[lie].write_text(content)
    for brick in manifest["bricks"]:
        if lie.startswith(brick["id"]):
            brick.update(bytes=len(content), sha256=sha256(content.encode()))
    (Path(people.suite) / "suite.json").write_text(json.dumps(manifest))
    status, _, told = people.run()
    assert status == 1
    assert f"left out: brick {lie.removesuffix('-symbol')}" in told


@pytest.mark.usefixtures("mxnet_of_the_owner_is_a_table")
@pytest.mark.mxnet
def test_an_export_without_decoys_is_warned_of_and_what_would_harm_is_refused(people: Partners) -> None:
    told = one_line(people.export("--decoys", "4", "--level", "written"))
    assert "4 decoys are wanted, but only 3 can be made" in told
    status, _, told = people.export("--level", "written", "--key", f"{people.suite}/key.json")
    assert status == 2 and "where others find it" in told
    copy = people.path / "copy-symbol.json"
    copy.write_bytes(Path(people.model).read_bytes())
    reasons = {
        str(copy): "of 1 offered, 1 with no other bricks than those of your models",
        people.model: "no other file in the format of your models is offered",
    }
    for decoy, reason in reasons.items():
        asked = ("-o", people.suite, "--decoys", "1", "--decoys-from", decoy, "--level", "written")
        told = one_line(people.say("owner", "suite", "export", people.model, *asked))
        assert f"only 0 can be made: {reason}" in told
    assert not Path(people.suite).exists()
    status, _, told = people.export("--decoys", "0", "--level", "written")
    assert status == 0 and "knows that all of it is yours" in told
    shutil.rmtree(people.path / "owner" / "suites")
    shutil.rmtree(people.suite)
    Path(people.suite).mkdir()
    (Path(people.suite) / "thesis.txt").write_text("irreplaceable")
    assert "exists already" in one_line(people.export("--level", "written"))
    assert [it.name for it in Path(people.suite).iterdir()] == ["thesis.txt"]
    assert not list((people.path / "owner" / "suites").glob("*"))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("suite", "run", "nowhere", "-o", "results.json"), "suite.json is missing"),
        (("suite", "import", "nowhere"), "cannot read nowhere"),
        (("suite", "export", "alexnet"), "-o"),
        (("suite", "export", "alexnet", "-o", "nowhere/a.dlbricks"), "there is no folder nowhere"),
        (("suite", "export", "alexnet", "-o", "locked/a.dlbricks"), "this user may not write to "),
        (("suite", "export", "alexnet", "-o", "locked/new/folder"), "this user may not write to "),
        (("suite", "run", "nowhere"), "-o"),
        (("suite", "export", "a", "-o", "b", "--decoys", "0", "--decoys-from", "c"), "leave one of them out"),
    ],
)
def test_an_impossible_request_is_refused_in_one_line(
    people: Partners, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], said: str
) -> None:
    # Root may write anywhere.
    Path("locked").mkdir(exist_ok=True)
    may = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path).name != "locked" and may(path, mode))
    told = one_line(people.say("owner", *arguments))
    assert told.startswith("dlbricks: error: ") and said in told


def test_suite_without_a_subcommand_prints_its_help(people: Partners) -> None:
    status, out, _ = people.say("owner", "suite")
    assert status == 0
    assert "export" in out


def test_results_import_names_the_command_for_results_of_a_suite(people: Partners) -> None:
    Path(people.results).write_text('{\n"format":"dlbricks-suite-results",\n"schema":2\n}\n')
    told = one_line(people.say("owner", "results", "import", people.results))
    assert f"has results of a suite: `dlbricks --data-dir {people.path}/owner suite import` imports them" in told


@pytest.mark.mxnet
@pytest.mark.usefixtures("mxnet_of_the_owner_is_a_table")
@pytest.mark.parametrize(
    ("number", "state", "why"),
    [
        (signal.SIGTERM, "cancelled", "it was cancelled"),
        (signal.SIGINT, "interrupted", "it was interrupted from the keyboard"),
    ],
)
def test_an_export_that_is_stopped_writes_nothing_and_is_listed_as_a_job(
    people: Partners, monkeypatch: pytest.MonkeyPatch, number: signal.Signals, state: str, why: str
) -> None:
    key = people.path / "suite.key"

    def stop(*_: object) -> None:
        assert key.exists()
        os.kill(os.getpid(), number)

    monkeypatch.setattr("dlbricks_tui.share.exporting.write_suite", stop)
    status, out, told = people.export("--level", "written", "--key", str(key))
    assert (status, out) == (130, "") and told.endswith(f"{why}; nothing was written\n")
    assert not key.exists() and not Path(people.suite).exists()
    status, out, _ = people.say("owner", "jobs", "--json")
    (job,) = json.loads(out)
    assert (status, job["kind"], job["state"], job["message"]) == (0, "suite export", state, why)


def test_an_owner_estimates_an_onnx_model_by_each_runtime_of_a_machine_that_never_saw_it(onnx_people: Partners) -> None:
    frameworks = [it.framework for it in Registry(onnx_people.path).all() if it.framework != "mxnet"]
    exported = document(onnx_people.export("--json"))
    assert exported["left_out"] == []
    with zipfile.ZipFile(onnx_people.suite) as archive:
        for name in archive.namelist():
            assert SECRET.encode() not in archive.read(name)
            assert SECRET not in name
        assert json.loads(archive.read("suite.json"))["frameworks"] == frameworks

    found = document(onnx_people.run("--target-ci", "0.9", "--json"))
    assert (found["models"], found["results"]) == ([], onnx_people.results)

    brought = document(onnx_people.say("owner", "suite", "import", onnx_people.results, "--json"))
    assert (brought["new"], brought["failed"], brought["missing"]) == (exported["bricks"], 0, 0)
    assert len(brought["runtimes"]) == len(frameworks)
    again = document(onnx_people.say("owner", "suite", "import", onnx_people.results, "--json"))
    assert (again["new"], again["known"]) == (0, exported["bricks"])

    for framework in frameworks:
        asked = ("--system", brought["system"], "--runtime", framework, "--threads", "1", "--json")
        (estimate,) = document(onnx_people.say("owner", "estimate", onnx_people.model, *asked))
        assert estimate["coverage"]["missing"] == estimate["coverage"]["predicted"] == 0
        assert estimate["sequential_ms"] > 0


@pytest.mark.openvino
def test_a_model_that_one_runtime_cannot_fuse_is_refused_with_the_runtimes_that_can(onnx_people: Partners) -> None:
    saved(onnx_people.path, with_a_sequence(), SECRET)
    status, _, told = onnx_people.export()
    assert (status, told.endswith("; leave OpenVINO out: --runtime default-onnx\n")) == (2, True)


def test_what_suites_cannot_have_is_refused_in_one_line(onnx_people: Partners) -> None:
    onnx_people.export("--runtime", "onnxruntime")
    assert "the suite is for ONNX Runtime" in one_line(onnx_people.run("--runtime", "openvino"))
    assert "leave it out for suites" in one_line(onnx_people.run("--fixed-runs", "5"))


def test_the_runtime_of_the_settings_measures_the_bricks_for_its_framework(onnx_people: Partners) -> None:
    onnx_people.export("--runtime", "onnxruntime")
    vendor = DataFolder(onnx_people.path / "vendor")
    Registry(vendor.path).add(sys.executable, "mine", framework="onnxruntime")
    named = [
        suite_run_at(MeasureOptions(usual_runtime=it), Path(onnx_people.suite), Path(onnx_people.results), vendor)
        for it in ("mine", "openvino")
    ]
    assert [it.request.runtime.name for it in named] == ["mine", "default-onnx"]


def test_an_export_has_no_options_that_cut_models_as_longer_sequences_consist_of_its_bricks(
    onnx_people: Partners,
) -> None:
    assert "unrecognized arguments: -g 2" in one_line(onnx_people.export("-g", "2"))
