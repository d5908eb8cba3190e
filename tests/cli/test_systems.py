import json
from pathlib import Path
from typing import Any

import pytest

from dlbricks_tui.cli.main import main
from tests.cli.people import Command
from tests.cli.test_estimate import SQUEEZENET, VGG
from tests.estimate.stored import brick_records, model_record, store_of, timed
from tests.store.samples import runtime, system


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """c5.2xlarge is quicker than c5.xlarge, but not twice as quick, and has run SqueezeNet only."""
    by: dict[str, Any] = {"runtime": "mxnet-1.5.1"}
    store_of(
        tmp_path / "data" / "store",
        system("c5.xlarge"),
        system("c5.2xlarge"),
        runtime("mxnet-1.5.1"),
        *brick_records(SQUEEZENET, system="c5.xlarge", **by, statistics=timed(0.6)),
        *brick_records(VGG, system="c5.xlarge", **by),
        *brick_records(SQUEEZENET, system="c5.2xlarge", **by, statistics=timed(0.4)),
        model_record(SQUEEZENET, 40.0, system="c5.xlarge", **by),
    ).close()
    return tmp_path / "data"


@pytest.fixture
def systems(data: Path, capsys: pytest.CaptureFixture[str]) -> Command:
    """Run `dlbricks systems ...`, and return its exit status, standard output and standard error."""

    def run(*arguments: str, folder: Path = data) -> tuple[int, str, str]:
        status = main(["--data-dir", str(folder), "systems", *arguments])
        return status, *capsys.readouterr()

    return run


def test_systems_are_listed_with_prices_and_numbers_of_results(systems: Command, data: Path) -> None:
    status, out, _ = systems("--json")
    assert status == 0
    first, second = json.loads(out)
    assert (first["system"], first["dollars_per_hour"]) == ("c5.xlarge", 0.17)
    assert first["results"][0]["bricks"] == len(SQUEEZENET.suite | VGG.suite)
    assert (second["system"], second["results"][0]["models"]) == ("c5.2xlarge", 0)
    assert "0.34/h" in systems("list")[1]
    status, out, err = systems(folder=data / "empty")
    assert (status, out) == (0, "")
    assert "dlbricks run" in err


def test_a_model_is_compared_over_systems_by_latency_and_cost(systems: Command, data: Path) -> None:
    status, out, _ = systems("compare", "table1:16", "--json")
    assert status == 0
    quick, cheap = json.loads(out)
    assert (quick["system"], quick["quickest"], quick["cheapest"]) == ("c5.2xlarge", True, False)
    assert (cheap["system"], cheap["quickest"], cheap["cheapest"]) == ("c5.xlarge", False, True)
    assert cheap["dollars_per_million"] == pytest.approx(cheap["latency_ms"] * 0.17 / 3.6)
    shown = systems("compare", "table1:16")[1].splitlines()
    assert "quickest" in shown[2]
    assert "cheapest" in shown[3]
    # The user's own prices count before.
    (data / "prices.toml").write_text('[dollars_per_hour]\n"c5.2xlarge" = 0.05\n')
    _, out, _ = systems("compare", "table1:16", "--json")
    assert [it["cheapest"] for it in json.loads(out)] == [True, False]


def test_several_models_on_several_systems_make_a_grid(systems: Command) -> None:
    status, out, _ = systems("compare", "table1:16", "table1:17")
    header, *rows = out.splitlines()
    assert status == 0
    assert header.split() == ["MODEL", "c5.2xlarge", "c5.xlarge", "QUICKEST", "CHEAPEST"]
    assert rows[0].endswith("c5.xlarge")
    # It has run SqueezeNet only: other layers are predicted from c5.xlarge.
    assert "~" in rows[1]
    on_one = ("compare", "table1:16", "table1:17", "--system", "c5.xlarge")
    found = json.loads(systems(*on_one, "--json")[1])
    assert {(it["system"], it["model"][:3]) for it in found} == {("c5.xlarge", "Squ"), ("c5.xlarge", "VGG")}
    assert systems(*on_one)[1].splitlines()[0] == "c5.xlarge"


def test_a_model_without_results_is_reported(systems: Command) -> None:
    status, out, err = systems("compare", "table1:16", "table1:38", "--json")
    assert status == 1
    assert len(json.loads(out)) == 2
    assert "these systems have no results of Very Deep Net" in err
