"""`dlbricks suite` with ONNX models, as people use it: with the real runtimes."""

import json
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from onnx import ModelProto

from dlbricks_tui.runtime.registry import Registry
from dlbricks_tui.share.suites.suite_files import sha256
from tests.cli.people import People, one_line
from tests.models.onnx_models import saved
from tests.share.onnx_network import SECRET, network


@dataclass(frozen=True)
class Partners(People):
    """An owner with a private model, and a vendor with a machine."""

    def export(self, *options: str) -> tuple[int, str, str]:
        """Export the private model with a decoy."""
        mine = saved(self.path, network((8,), side=8), SECRET)
        decoy = saved(self.path, network((6,), "decoy", side=8), "decoy")
        asked = ("--decoys", "1", "--decoys-from", str(decoy), *options)
        return self.say("owner", "suite", "export", str(mine), "-o", self.suite, *asked)

    def run(self, *options: str) -> tuple[int, str, str]:
        """Measure the suite."""
        return self.say("vendor", "suite", "run", self.suite, "-o", self.results, "--threads", "1", *options)

    @property
    def suite(self) -> str:
        """The file of the suite."""
        return str(self.path / "suite.dlbricks")

    @property
    def results(self) -> str:
        """The file of its results."""
        return str(self.path / "results.json")

    @property
    def model(self) -> str:
        """The file of the private model."""
        return str(self.path / f"{SECRET}.onnx")


@pytest.fixture
def people(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Partners:
    return Partners(tmp_path, capsys)


def test_an_owner_estimates_an_onnx_model_by_each_runtime_of_a_machine_that_never_saw_it(people: Partners) -> None:
    frameworks = [it.framework for it in Registry(people.path).all() if it.framework != "mxnet"]
    status, out, told = people.export("--json")
    assert status == 0, told
    exported = json.loads(out)
    assert exported["left_out"] == []
    with zipfile.ZipFile(people.suite) as archive:
        for name in archive.namelist():
            assert SECRET.encode() not in archive.read(name)
            assert SECRET not in name
        assert json.loads(archive.read("suite.json"))["frameworks"] == frameworks

    status, out, told = people.run("--target-ci", "0.9", "--json")
    assert status == 0, told
    assert (json.loads(out)["models"], json.loads(out)["results"]) == ([], people.results)

    status, out, told = people.say("owner", "suite", "import", people.results, "--json")
    assert status == 0, told
    brought: dict[str, Any] = json.loads(out)
    assert (brought["new"], brought["failed"], brought["missing"]) == (exported["bricks"], 0, 0)
    assert len(brought["runtimes"]) == len(frameworks)
    status, out, _ = people.say("owner", "suite", "import", people.results, "--json")
    assert (json.loads(out)["new"], json.loads(out)["known"]) == (0, exported["bricks"])

    for framework in frameworks:
        asked = ("--system", brought["system"], "--runtime", framework, "--threads", "1", "--json")
        status, out, told = people.say("owner", "estimate", people.model, *asked)
        assert status == 0, told
        (estimate,) = json.loads(out)
        assert estimate["coverage"]["missing"] == estimate["coverage"]["predicted"] == 0
        assert estimate["sequential_ms"] > 0


def test_what_suites_of_onnx_models_cannot_have_is_refused_in_one_line(people: Partners) -> None:
    assert "single layers of ONNX models: leave out --granularity" in one_line(people.export("--granularity", "2"))
    people.export("--runtime", "onnxruntime")
    assert "the suite is for ONNX Runtime" in one_line(people.run("--runtime", "openvino"))
    assert "leave it out for ONNX models" in one_line(people.run("--fixed-runs", "5"))


def test_a_run_names_a_hostile_brick_and_measures_the_others(people: Partners) -> None:
    people.export("--runtime", "onnxruntime")
    with zipfile.ZipFile(people.suite) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    document = json.loads(files["suite.json"])
    brick = document["bricks"][0]
    name = f"bricks/{brick['id']}.onnx"
    hostile = ModelProto.FromString(files[name])
    hostile.graph.initializer[0].external_data.add(key="location", value="/etc/passwd")
    files[name] = hostile.SerializeToString(deterministic=True)
    brick.update(bytes=len(files[name]), sha256=sha256(files[name]))
    files["suite.json"] = json.dumps(document).encode()
    with zipfile.ZipFile(people.suite, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    status, _, told = people.run("--target-ci", "0.9")
    assert status == 1
    assert f"brick {brick['id']} has an array in another file" in told
    (part,) = json.loads(Path(people.results).read_text())["parts"]
    assert list(part["failed"]) == [brick["id"]]
    # Excerpts also hold the bricks around theirs.
    assert len(part["measured"]) >= len(document["bricks"]) - 1
