"""Commands about this host and others: `dlbricks doctor`, `systems` and `runtimes`."""

import json
import sys
from importlib.util import find_spec
from pathlib import Path
from shutil import copy
from typing import Any

import pytest

from dlbricks_tui.host.noise import SOURCES
from tests.api.test_denormals import WEIGHTS, params
from tests.cli.people import Command, document, one_line
from tests.cli.test_estimate import SQUEEZENET, VGG
from tests.estimate.stored import brick_records, model_record, store_of, timed
from tests.store.samples import end_to_end, peaks, runtime, system


def test_every_source_of_noise_has_its_state_effect_and_cure(dlbricks: Command) -> None:
    found = document(dlbricks("doctor", "--json"))
    assert {it["source"] for it in found["noise"]} == {source.name for source in SOURCES}
    for it in found["noise"]:
        assert it["verdict"] in ("quiet", "noisy", "unknown") and it["effect"]
        assert bool(it["cure"]) == (it["verdict"] != "quiet")
        assert (it["state"] == "unknown") <= (it["verdict"] == "unknown")
    assert found["system"]["cores"] >= 1 and found["weights"] == []
    out = dlbricks("doctor")[1]
    assert all(source.name in out for source in SOURCES)


def test_denormals_in_weights_are_counted(tmp_path: Path, dlbricks: Command) -> None:
    path = tmp_path / "model.params"
    path.write_bytes(params(WEIGHTS))
    (found,) = json.loads(dlbricks("doctor", "--params", path, "--json")[1])["weights"]
    assert (found["values"], found["denormals"]) == (12, 4)
    assert {it["array"] for it in found["arrays"]} == {"arg:w", "aux:h", "arg:d"}
    status, out, told = dlbricks("doctor", "--params", path)
    assert status == 0 and "4 of 12 values denormal" in out and "cure" in told


@pytest.mark.parametrize("words", [("--threads", "2"), ("--params", "/nowhere/none.params")])
def test_what_makes_no_sense_is_refused_in_one_line(words: tuple[str, ...], dlbricks: Command) -> None:
    assert one_line(dlbricks("doctor", *words)).startswith("dlbricks: error: ")


def test_measured_peaks_are_stored_with_the_system_and_shown_again(
    dlbricks: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dlbricks_tui.host.peaks.measure_peaks", lambda *it: peaks(system=it[0], threads=it[1]))
    assert json.loads(dlbricks("doctor", "--json")[1])["peaks"] == []
    told = "at most 98.5 GFLOP/s (avx512), 61 GFLOP/s (avx2), 21 GB/s from memory"
    assert told in dlbricks("doctor", "--peaks", "--threads", "2")[1]
    (found,) = json.loads(dlbricks("doctor", "--json")[1])["peaks"]
    assert (found["threads"], found["gflops"]["avx512"], found["gigabytes_per_second"]["memory"]) == (2, 98.5, 21.0)
    assert json.loads(dlbricks("systems", "--json")[1])[0]["peaks"] == [found]
    shown = dlbricks("systems")[1]
    assert "GFLOP/S" in shown and "98.5" in shown


def test_a_store_that_cannot_be_written_is_told_of_before_peaks_are_measured(
    tmp_path: Path, dlbricks: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dlbricks_tui.host.peaks.measure_peaks", lambda *_: pytest.fail("it has measured"))
    (tmp_path / "data" / "store").mkdir(parents=True)
    (tmp_path / "data" / "store" / "lock").mkdir()
    assert "cannot write" in one_line(dlbricks("doctor", "--peaks"))


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
def systems(data: Path, dlbricks: Command) -> Command:
    """Run `dlbricks systems ...` on them, or on another folder."""
    return lambda *arguments, **place: dlbricks("systems", *arguments, **place)


def test_systems_are_listed_with_prices_and_numbers_of_results(systems: Command, data: Path) -> None:
    first, second = document(systems("--json"))
    assert (first["system"], first["dollars_per_hour"]) == ("c5.xlarge", 0.17)
    assert first["results"][0]["bricks"] == len(SQUEEZENET.pairs | VGG.pairs)
    assert (second["system"], second["results"][0]["models"]) == ("c5.2xlarge", 0)
    assert "0.34/h" in systems("list")[1]
    status, out, err = systems(folder=data / "empty")
    assert (status, out) == (0, "")
    assert "dlbricks run" in err


def test_the_models_of_a_system_are_those_of_all_its_runtimes(systems: Command, data: Path) -> None:
    other = runtime("onnxruntime-1.32.0", framework="onnxruntime")
    store_of(data / "store", other, end_to_end(name="net", system="c5.xlarge", runtime=other.id)).close()
    assert [line.split()[-1] for line in systems()[1].splitlines()] == ["MODELS", "2", "0"]


def test_a_model_is_compared_over_systems_by_latency_and_cost(systems: Command, data: Path) -> None:
    quick, cheap = document(systems("compare", "table1:16", "--json"))
    assert (quick["system"], quick["quickest"], quick["cheapest"]) == ("c5.2xlarge", True, False)
    assert (cheap["system"], cheap["quickest"], cheap["cheapest"]) == ("c5.xlarge", False, True)
    assert cheap["dollars_per_million"] == pytest.approx(cheap["latency_ms"] * 0.17 / 3.6)
    # The interval is that of the latency, also where the model was timed.
    assert cheap["latency_ms"] == cheap["measured_ms"] == 40.0 and cheap["interval_ms"] == pytest.approx([39.6, 40.4])
    shown = systems("compare", "table1:16")[1].splitlines()
    assert "quickest" in shown[2]
    assert "cheapest" in shown[3]
    # The user's own prices count before.
    (data / "prices.toml").write_text('[dollars_per_hour]\n"c5.2xlarge" = 0.05\n')
    _, out, _ = systems("compare", "table1:16", "--json")
    assert [it["cheapest"] for it in json.loads(out)] == [True, False]


def test_a_model_without_results_is_reported(systems: Command) -> None:
    status, out, err = systems("compare", "table1:16", "table1:38", "--json")
    assert status == 1
    assert len(json.loads(out)) == 2
    assert "no system has results of Very Deep Net" in err and "`dlbricks run MODEL` measures this one" in err


# The runtimes of this interpreter.
OWN = ["default", "default-onnx", *["default-openvino"] * (find_spec("openvino") is not None)]


@pytest.fixture
def interpreter(fake_interpreter: Path, tmp_path: Path) -> Path:
    """An interpreter that a test may change."""
    return Path(copy(fake_interpreter, tmp_path / "python"))


def test_a_runtime_is_added_listed_checked_and_removed(dlbricks: Command, interpreter: Path) -> None:
    old = ("--name", "old", "--threads", "2", "--env", "OMP_X=1")
    status, out, told = dlbricks("runtimes", "add", interpreter, *old, "--json")
    assert status == 0 and "--runtime old" in told
    (added,) = json.loads(out)
    assert (added["name"], added["framework"], added["version"], added["threads"]) == ("old", "mxnet", "1.9.1", 2)
    assert added["environment"] == {"OMP_X": "1"}
    assert [it["name"] for it in document(dlbricks("runtimes", "list", "--json"))] == [*OWN, "old"]
    assert document(dlbricks("runtimes", "check", "old", "--json")) == [added]
    out = dlbricks("runtimes")[1]
    assert "mxnet 1.9.1" in out and str(interpreter) in out
    interpreter.write_text("#!/bin/sh\nexit 3\n")
    status, _, told = dlbricks("runtimes", "check", "old")
    assert status == 1 and "old does not work" in told
    assert dlbricks("runtimes", "remove", "old")[0] == 0
    assert [it["name"] for it in document(dlbricks("runtimes", "--json"))] == OWN
    abreast = ("--framework", "onnxruntime", "--name", "abreast", "--at-once", "2", "--env", "ORT_X=1", "--json")
    (added,) = document(dlbricks("runtimes", "add", sys.executable, *abreast))
    assert added["environment"] == {"ORT_X": "1", "ORT_INTER_OP_THREADS": "2"}


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["add", "/no/such/python"], "/no/such/python"),
        (["add", sys.executable, "--env", "NAME"], "NAME=VALUE"),
        (["check", "nobody"], "nobody"),
        (["remove", "default"], "cannot be removed"),
    ],
)
def test_impossible_options_are_refused(dlbricks: Command, arguments: list[str], complaint: str) -> None:
    assert complaint in one_line(dlbricks("runtimes", *arguments))


def test_a_list_says_in_one_line_that_scenarios_need_loadgen(
    dlbricks: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "mlperf_loadgen", None)
    status, _, told = dlbricks("runtimes", "list")
    assert (status, told.count("\n")) == (0, 1)
    assert "pip install 'dlbricks-tui[scenarios]'" in told
