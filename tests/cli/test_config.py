import json
from pathlib import Path

import pytest

from dlbricks_tui.__main__ import main as whole_program
from dlbricks_tui.cli.main import main


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DLBRICKS_DATA_DIR", str(tmp_path))
    return tmp_path / "config.toml"


def test_locate_prints_only_the_path(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "locate"]) == 0
    told = capsys.readouterr()
    assert told.out == f"{file}\n" and "there is no such file yet" in told.err


def test_locate_works_with_an_invalid_file(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text("[")
    assert main(["config", "locate", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "config": str(file),
        "exists": True,
        "themes": str(file.parent / "themes"),
    }


def test_validate_prints_a_line_per_problem(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text("[run]\nthreads = 0\nmemory = 1\n")
    assert main(["config", "validate"]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    first, second = told.err.splitlines()
    assert first == f"dlbricks: error: {file}:2: run.threads = 0: it has to be a whole number from 1 to 1,024"
    assert second.startswith(f"dlbricks: error: {file}:3: there is no setting run.memory; ")


def test_validate_reports_a_valid_file(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for text, told in ((None, "so all settings have their defaults"), ("[run]\nthreads = 2\n", "is valid")):
        if text is not None:
            file.write_text(text)
        assert main(["config", "validate"]) == 0
        assert told in capsys.readouterr().err


def test_validate_names_keys_that_the_workbench_refuses(
    file: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file.write_text('[keys]\nmodels.sort = "q"\n')
    monkeypatch.setattr("sys.argv", ["dlbricks", "config", "validate", "--json"])
    assert whole_program() == 2
    document = json.loads(capsys.readouterr().out)
    assert not document["valid"]
    assert document["problems"][0].startswith(f"{file}:2: keys.models.sort: q ")


def test_an_invalid_config_file_stops_every_command_with_one_line(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file.write_text("[workbench]\nthem = 'x'\n")
    assert main(["models"]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err == f"dlbricks: error: {file}:2: there is no setting workbench.them; did you mean workbench.theme?\n"


def test_the_list_names_the_origin_of_each_setting(
    file: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file.write_text("[run]\nthreads = 2\n[keys]\ntree.expand = 'x'\n")
    monkeypatch.setenv("DLBRICKS_WORKBENCH_MOUSE", "off")
    assert main(["--set", "cutting.cut=overlap", "config", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["settings"]["run.threads"] == {"value": 2, "from": f"{file}:2"}
    assert document["settings"]["workbench.mouse"] == {"value": "off", "from": "DLBRICKS_WORKBENCH_MOUSE"}
    assert document["settings"]["cutting.cut"] == {"value": "overlap", "from": "--set"}
    assert document["settings"]["cutting.order"] == {"value": "branch", "from": "default"}
    assert document["keys"] == {"tree.expand": {"keys": ["x"], "from": f"{file}:4"}}
    assert main(["config"]) == 0
    assert 'workbench.theme       "dark"' in capsys.readouterr().out
    file.write_text("[")
    assert main([]) == 0
    assert capsys.readouterr().out.startswith("usage: dlbricks"), "help works with an invalid file"


def test_a_command_line_option_overrides_all_settings(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text("[cutting]\ngranularity = 2\n")
    asked, given = ["tree", "vgg16", "--json"], ["--set", "cutting.granularity=3"]
    for arguments, granularity in ((asked, 2), ([*given, *asked], 3), ([*given, *asked, "-g", "4"], 4)):
        assert main(arguments) == 0
        assert json.loads(capsys.readouterr().out)["granularity"] == granularity
