import json
from pathlib import Path

import pytest

from dlbricks_tui.cli.main import main
from dlbricks_tui.host.noise import SOURCES
from dlbricks_tui.host.queue import host_queue
from tests.cli.people import Command, one_line
from tests.host.lines import turn_of
from tests.measure.test_denormals import WEIGHTS, params
from tests.store.samples import peaks


def test_every_source_of_noise_has_its_state_effect_and_cure(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert {it["source"] for it in found["noise"]} == {source.name for source in SOURCES}
    for it in found["noise"]:
        assert it["verdict"] in ("quiet", "noisy", "unknown")
        assert it["effect"]
        assert bool(it["cure"]) == (it["verdict"] != "quiet")
        assert (it["state"] == "unknown") <= (it["verdict"] == "unknown")
    assert found["system"]["cores"] >= 1
    assert found["weights"] == []
    assert main(["doctor"]) == 0
    out = capsys.readouterr().out
    assert all(source.name in out for source in SOURCES)


def test_denormals_in_weights_are_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "model.params"
    path.write_bytes(params(WEIGHTS))
    assert main(["doctor", "--params", str(path), "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)["weights"]
    assert (found["values"], found["denormals"]) == (12, 4)
    assert {it["array"] for it in found["arrays"]} == {"arg:w", "aux:h", "arg:d"}
    assert main(["doctor", "--params", str(path)]) == 0
    out, told = capsys.readouterr()
    assert "4 of 12 values denormal" in out
    assert "cure" in told


@pytest.mark.parametrize(
    "words", [("--threads", "2"), ("--peaks", "--threads", "0"), ("--params", "/nowhere/none.params")]
)
def test_what_makes_no_sense_is_refused_in_one_line(words: tuple[str, ...], dlbricks: Command) -> None:
    assert one_line(dlbricks("doctor", *words)).startswith("dlbricks: error: ")


@pytest.fixture
def _measured_peaks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Peaks of one size."""
    monkeypatch.setattr(
        "dlbricks_tui.host.peaks.measure_peaks", lambda system, threads: peaks(system=system, threads=threads)
    )


@pytest.mark.usefixtures("_measured_peaks")
def test_measured_peaks_are_stored_with_the_system_and_shown_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = ["--data-dir", str(tmp_path / "data")]
    assert main([*data, "doctor", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["peaks"] == []
    assert main([*data, "doctor", "--peaks", "--threads", "2"]) == 0
    assert "at most 98.5 GFLOP/s (avx512), 61 GFLOP/s (avx2), 21 GB/s from memory" in capsys.readouterr().out
    assert main([*data, "doctor", "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)["peaks"]
    assert (found["threads"], found["gflops"]["avx512"], found["gigabytes_per_second"]["memory"]) == (2, 98.5, 21.0)
    assert main([*data, "systems", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["peaks"] == [found]
    assert main([*data, "systems"]) == 0
    assert "GFLOP/S" in (shown := capsys.readouterr().out) and "98.5" in shown


@pytest.mark.usefixtures("_measured_peaks")
def test_peaks_wait_for_their_turn(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    other = turn_of(host_queue(), "20261121-1", tmp_path)
    monkeypatch.setattr("dlbricks_tui.host.queue.time.sleep", lambda _: other.leave())
    assert main(["--data-dir", str(tmp_path / "data"), "doctor", "--peaks", "--json"]) == 0
    out, told = capsys.readouterr()
    assert told.startswith("waiting for run 20261121-1 of alexnet by ")
    assert len(json.loads(out)["peaks"]) == 1
