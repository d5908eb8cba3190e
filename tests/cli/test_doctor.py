import json
from pathlib import Path

import pytest

from dlbricks_tui.cli.main import main
from dlbricks_tui.host.noise import SOURCES
from tests.measure.test_denormals import WEIGHTS, params


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


def test_the_table_shows_the_same_as_json(capsys: pytest.CaptureFixture[str]) -> None:
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
    assert "4 of 12 values are denormal" in out
    assert "cure" in told


def test_unreadable_weights_are_refused_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--params", str(tmp_path / "none.params")]) == 2
    out, told = capsys.readouterr()
    assert out == ""
    assert told.startswith("dlbricks: error: ")
    assert told.count("\n") == 1
