import json
from pathlib import Path
from shutil import copy
from typing import Any

import pytest
from rich.cells import cell_len

from dlbricks_tui.cli.main import main
from dlbricks_tui.folders import SAMPLE_MODELS
from dlbricks_tui.models.input_shapes import ShapeMemory
from dlbricks_tui.models.library import source_of
from tests.cli.people import Command, one_line


@pytest.fixture(autouse=True)
def eighty_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DLBRICKS_DATA_DIR", str(tmp_path / "data"))
    return tmp_path / "data"


@pytest.fixture
def own_models(tmp_path: Path, data: Path) -> Path:
    """A folder of the user's: a model that was seen before, and one that is broken."""
    folder = tmp_path / "own"
    folder.mkdir()
    copy(SAMPLE_MODELS / "gluon" / "vgg16-symbol.json", folder / "mine-symbol.json")
    (folder / "broken-symbol.json").write_text("{}")
    inferred = SAMPLE_MODELS / "gluon" / "vgg16-types.json"
    (data / "cache" / "inferred").mkdir(parents=True)
    copy(inferred, data / "cache" / "inferred" / f"{json.loads(inferred.read_bytes())['key']}.json")
    return folder


def listed(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    assert main(["models", "--json"]) == 0
    document: list[dict[str, Any]] = json.loads(capsys.readouterr().out)
    return document


def view(capsys: pytest.CaptureFixture[str]) -> list[str]:
    assert main(["models"]) == 0
    return capsys.readouterr().out.splitlines()


def test_samples_are_listed_with_their_counts_and_table_1_first(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    models = listed(capsys)
    assert [model["table1_id"] for model in models] == [str(number) for number in range(1, 51)] + [None] * (34 + 8)
    assert models[13] == {
        "name": "ResNet-50 Trained on ImageNet Competition Data",
        "path": str(SAMPLE_MODELS / "table1" / "resnet50-symbol.json"),
        "task": "IC",
        "table1_id": "14",
        "layers": 177,
        "unique_layers": 48,
        "formats": ["MXNet", "ONNX"],
        "inputs": {"data": [1, 3, 224, 224]},
    }
    assert not data.exists(), "none of them was loaded"


def test_the_table_has_names_to_type_and_the_share_of_unique_layers(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = view(capsys)
    assert lines[0].split() == ["MODEL", "NAME", "FORMAT", "LAYERS", "UNIQUE", "INPUTS"]
    adain = next(line for line in lines if line.startswith("table1:22 "))
    assert adain.split()[-6:] == ["both", "109", "36.7", "%", "1x3x512x512", "+1"]
    assert max(map(cell_len, lines)) <= 80
    monkeypatch.setenv("COLUMNS", "100")
    lines = view(capsys)
    assert lines[0].split() == ["MODEL", "NAME", "TASK", "FORMAT", "LAYERS", "UNIQUE", "INPUTS"]
    assert next(line.split() for line in lines if line.startswith("resnet50_v1 ")) == [
        *("resnet50_v1", "image", "classification", "both", "174", "26.4", "%", "1x3x224x224")
    ]
    assert max(map(cell_len, lines)) <= 100
    monkeypatch.delenv("COLUMNS")
    name = "Age Estimation VGG-16 Trained on IMDB-WIKI and Looking at People Data"
    assert name in "\n".join(view(capsys)), "a pipe gets whole names"


def test_an_added_folder_or_file_is_listed_until_it_is_removed(
    own_models: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["models", "add", str(own_models)]) == 0
    assert capsys.readouterr().err == f"{own_models}: 2 models added\n"
    mine = next(model for model in listed(capsys) if model["name"] == "mine")
    assert (mine["layers"], mine["unique_layers"], mine["inputs"]) == (38, 24, {"data": [1, 3, 224, 224]})
    # One that cannot be read is listed and reported.
    assert main(["models"]) == 0
    out, err = capsys.readouterr()
    assert next(line.split()[-2:] for line in out.splitlines() if line.startswith("broken ")) == ["?", "?"]
    assert err.startswith(f"{own_models / 'broken-symbol.json'}: broken: ")
    assert main(["models", "remove", str(own_models)]) == 0
    assert len(listed(capsys)) == 92
    file = own_models / "mine-symbol.json"
    capsys.readouterr()
    assert main(["models", "add", str(file)]) == 0
    assert capsys.readouterr().err == f"{file}: 1 model added\n"
    assert len(listed(capsys)) == 93
    assert main(["models", "remove", str(file)]) == 0
    assert len(listed(capsys)) == 92


def test_given_inputs_are_forgotten(own_models: Path, data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = own_models / "mine-symbol.json"
    memory = ShapeMemory(data)
    memory.remember(source_of(file), {"data": (1, 8)}, {"scale": (2,)})
    assert main(["models", "reset", str(file)]) == 0
    assert capsys.readouterr().err == "mine: forgot data=1,8 scale=2\n"
    assert not memory.recall_shapes(source_of(file))
    assert main(["models", "reset", str(file)]) == 0
    assert capsys.readouterr().err == "mine: nothing was given for its inputs\n"


def test_what_is_no_model_and_no_folder_with_models_is_not_added(own_models: Path, dlbricks: Command) -> None:
    (own_models / "README.md").write_text("# Nets")
    (own_models.parent / "empty").mkdir()
    for name, complaint in {
        "own/broken-symbol.json": "broken",
        "own/README.md": "README.md",
        "nowhere": "is not a folder",
        "empty": "holds no *-symbol.json or *.onnx file",
    }.items():
        assert complaint in one_line(dlbricks("models", "add", own_models.parent / name))
    assert len(json.loads(dlbricks("models", "--json")[1])) == 92


def test_a_missing_folder_is_reported(own_models: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["models", "add", str(own_models)])
    own_models.rename(own_models.with_name("moved"))
    capsys.readouterr()
    assert main(["models"]) == 0
    assert capsys.readouterr().err.startswith(f"{own_models} is not there; ")
    assert main(["models", "remove", str(own_models)]) == 0
    assert main(["models"]) == 0
    assert capsys.readouterr().err == ""
