"""`dlbricks suite` as people use it, with the real MXNet."""

import json
import os
import shutil
import signal
import stat
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from dlbricks_tui.runtime.variant import Precision
from dlbricks_tui.share.suites.suite_files import sha256
from tests.cli.people import People, one_line
from tests.models.table_framework import TableFramework
from tests.share.trio import DECOY_WIDTHS, PRIVATE_WIDTHS, SECRET, network


@dataclass(frozen=True)
class Partners(People):
    """An owner with a private model and some to hide it among, and a vendor with a machine."""

    def export(self, *options: str) -> tuple[int, str, str]:
        decoys = [option for path in self.decoys for option in ("--decoys-from", path)]
        return self.say("owner", "suite", "export", self.model, "-o", self.suite, "--decoys", "2", *decoys, *options)

    def run(self, *options: str) -> tuple[int, str, str]:
        how = ("-o", self.results, "--fixed-runs", "1")
        return self.say("vendor", "suite", "run", self.suite, *how, *options)

    @property
    def model(self) -> str:
        path = self.path / f"{SECRET}-symbol.json"
        path.write_bytes(network(PRIVATE_WIDTHS, SECRET))
        return str(path)

    @property
    def decoys(self) -> list[str]:
        found = [self.path / f"decoy{number}-symbol.json" for number in range(len(DECOY_WIDTHS))]
        for path, widths in zip(found, DECOY_WIDTHS, strict=True):
            path.write_bytes(network(widths))
        return list(map(str, found))

    @property
    def suite(self) -> str:
        return str(self.path / "suite")

    @property
    def results(self) -> str:
        return str(self.path / "results.json")


@pytest.fixture
def people(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Partners:
    return Partners(tmp_path, capsys)


class TableOfTheOwner(TableFramework):
    """A framework that a loader of the owner asks."""

    precision = Precision.F32


@pytest.fixture
def mxnet_of_the_owner_is_a_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """Export without starting MXNet."""
    monkeypatch.setattr("dlbricks_tui.answers.suites.WorkerFramework", lambda *_: nullcontext(TableOfTheOwner()))


def document(out: str) -> Any:
    return json.loads(out)


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
    exported = document(out)
    assert f"{exported['bricks']} bricks of yours among {exported['decoys']} of 2 decoys; " in told
    assert exported["left_out"] == []
    assert exported["decoys"] >= exported["bricks"] > 3
    assert stat.S_IMODE(Path(exported["key"]).stat().st_mode) == 0o600
    files = [path for path in Path(people.suite).rglob("*") if path.is_file()]
    assert not [path for path in files if SECRET in path.read_text()]

    # It ends before the suite is read, so that there is no file of results.
    status, out, _ = people.run("--time-budget", "0.001")
    assert (status, out, Path(people.results).exists()) == (1, "", False)
    status, out, told = people.say("vendor", "runs", "resume", "last", "--time-budget", "inf", "--json")
    assert status == 0, told
    ran = document(out)
    assert ran["models"] == []
    assert ran["results"] == people.results
    assert ran["bricks"]["run"] == exported["bricks"] + exported["decoys"]

    status, out, told = people.say("owner", "suite", "import", people.results, "--json")
    assert status == 0, told
    brought = document(out)
    assert (brought["new"], brought["decoys"], brought["missing"]) == (exported["bricks"], exported["decoys"], 0)

    asked = ("estimate", people.model, "--level", level, "--system", brought["system"], "--json")
    status, out, told = people.say("owner", *asked)
    assert status == 0, told
    (estimate,) = document(out)
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
        (
            ("suite", "export", "alexnet", "-o", "suite", "--decoys", "-1"),
            "--decoys: '-1': give a whole number from 0 to",
        ),
        (("suite", "export", "alexnet"), "-o"),
        (("suite", "run", "nowhere"), "-o"),
    ],
)
def test_an_impossible_request_is_refused_in_one_line(people: Partners, arguments: tuple[str, ...], said: str) -> None:
    told = one_line(people.say("owner", *arguments))
    assert told.startswith("dlbricks: error: ") and said in told


def test_suite_without_a_subcommand_prints_its_help(people: Partners) -> None:
    status, out, _ = people.say("owner", "suite")
    assert status == 0
    assert "export" in out


def test_results_import_names_the_command_for_results_of_a_suite(people: Partners) -> None:
    Path(people.results).write_text('{\n"format":"dlbricks-suite-results",\n"schema":2\n}\n')
    told = one_line(people.say("owner", "results", "import", people.results))
    assert "has results of a suite: `dlbricks suite import` imports them" in told


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

    monkeypatch.setattr("dlbricks_tui.share.suites.exporting.write_suite", stop)
    status, out, told = people.export("--level", "written", "--key", str(key))
    assert (status, out) == (130, "") and told.endswith(f"{why}; nothing was written\n")
    assert not key.exists() and not Path(people.suite).exists()
    status, out, _ = people.say("owner", "jobs", "--json")
    (job,) = json.loads(out)
    assert (status, job["kind"], job["state"], job["message"]) == (0, "suite export", state, why)
