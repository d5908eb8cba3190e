"""`dlbricks models`, and what is not loaded to look up a known model."""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from shutil import copy
from typing import Any

import pytest
from onnx.helper import make_node
from rich.cells import cell_len

from dlbricks_tui.bricks.decomposition import decompose
from dlbricks_tui.folders import SAMPLE_MODELS
from dlbricks_tui.models.input_shapes import ShapeMemory
from dlbricks_tui.models.library import source_of
from tests.cli.people import Command, one_line
from tests.estimate.stored import brick_records, store_of
from tests.estimate.table1 import table1
from tests.models.onnx_models import floats, model, saved
from tests.store.samples import runtime, system


@pytest.fixture(autouse=True)
def eighty_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")


@pytest.fixture
def data(data_folder: str) -> Path:
    return Path(data_folder)


@pytest.fixture
def models(dlbricks: Command) -> Command:
    """Run `dlbricks models ...`."""
    return lambda *arguments: dlbricks("models", *arguments)


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


def listed(models: Command) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(models("--json")[1])
    return found


def test_samples_are_listed_with_their_counts_and_table_1_first(data: Path, models: Command) -> None:
    found = listed(models)
    assert [model["table1_id"] for model in found] == [str(number) for number in range(1, 51)] + [None] * (34 + 8)
    assert found[13] == {
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
    models: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = models()[1].splitlines()
    assert lines[0].split() == ["MODEL", "NAME", "FORMAT", "LAYERS", "UNIQUE", "INPUTS"]
    adain = next(line for line in lines if line.startswith("table1:22 "))
    assert adain.split()[-6:] == ["both", "109", "36.7", "%", "1x3x512x512", "+1"]
    assert max(map(cell_len, lines)) <= 80
    monkeypatch.setenv("COLUMNS", "100")
    lines = models()[1].splitlines()
    assert lines[0].split() == ["MODEL", "NAME", "TASK", "FORMAT", "LAYERS", "UNIQUE", "INPUTS"]
    assert max(map(cell_len, lines)) <= 100
    monkeypatch.delenv("COLUMNS")
    name = "Age Estimation VGG-16 Trained on IMDB-WIKI and Looking at People Data"
    assert name in models()[1], "a pipe gets whole names"


def test_an_added_folder_or_file_is_listed_until_it_is_removed(own_models: Path, models: Command) -> None:
    assert models("add", own_models) == (0, "", f"{own_models}: 2 models added\n")
    mine = next(model for model in listed(models) if model["name"] == "mine")
    assert (mine["layers"], mine["unique_layers"], mine["inputs"]) == (38, 24, {"data": [1, 3, 224, 224]})
    # One that cannot be read is listed and reported.
    status, out, err = models()
    assert next(line.split()[-2:] for line in out.splitlines() if line.startswith("broken ")) == ["?", "?"]
    assert status == 0 and err.startswith(f"{own_models / 'broken-symbol.json'}: broken: ")
    assert models("remove", own_models)[0] == 0 and len(listed(models)) == 92
    file = own_models / "mine-symbol.json"
    assert models("add", file) == (0, "", f"{file}: 1 model added\n")
    assert len(listed(models)) == 93
    assert models("remove", file)[0] == 0 and len(listed(models)) == 92


def test_given_inputs_are_forgotten(own_models: Path, data: Path, models: Command) -> None:
    file = own_models / "mine-symbol.json"
    memory = ShapeMemory(data)
    memory.remember(source_of(file), {"data": (1, 8)}, {"scale": (2,)})
    assert models("reset", file) == (0, "", "mine: forgot data=1,8 scale=2\n")
    assert not memory.recall_shapes(source_of(file))
    assert models("reset", file) == (0, "", "mine: nothing was given for its inputs\n")


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


def test_a_missing_folder_is_reported(own_models: Path, models: Command) -> None:
    models("add", own_models)
    own_models.rename(own_models.with_name("moved"))
    status, _, err = models()
    assert status == 0 and err.startswith(f"{own_models} is not there; ")
    assert models("remove", own_models)[0] == 0
    assert models()[::2] == (0, "")


LOOK_UPS = (("tree", "MODEL"), ("tree", "MODEL", "--json"), ("estimate", "MODEL", "--level", "written"))
# Runs commands one after another, and prints after each what has been loaded.
PROGRAM = """
import contextlib, json, sys
from dlbricks_tui.cli.main import main
for command in json.loads(sys.argv[1]):
    with contextlib.suppress(SystemExit):
        main(command)
    libraries = {"networkx", "onnx", "google.protobuf"} & set(sys.modules)
    predicting = [name for name in sys.modules if name.startswith("dlbricks_tui.estimate.prediction")]
    print("loaded:", *sorted(libraries), *predicting, file=sys.stderr)
"""


def loaded_by(data: Path, *commands: Sequence[str]) -> list[set[str]]:
    """The libraries for reading and cutting, and the modules for predicting, loaded by the end of each command."""
    asked = json.dumps([["--data-dir", str(data), *command] for command in commands])
    ran = subprocess.run([sys.executable, "-c", PROGRAM, asked], capture_output=True, text=True, check=True)
    return [set(line.split()[1:]) for line in ran.stderr.splitlines() if line.startswith("loaded:")]


def libraries_of(loaded: set[str]) -> set[str]:
    """Those that are not of dlbricks."""
    return {name for name in loaded if not name.startswith("dlbricks_tui.")}


def look_ups_of(model: str) -> list[list[str]]:
    return [[word.replace("MODEL", model) for word in look_up] for look_up in LOOK_UPS]


@pytest.fixture
def onnx_model(tmp_path: Path) -> str:
    nodes = [make_node("Conv", ["x", "w"], ["a"]), make_node("Relu", ["a"], ["y"])]
    return str(saved(tmp_path, model(nodes, {"x": (1, 3, 8, 8)}, ["y"], [floats("w", (8, 3, 3, 3))])))


@pytest.mark.mxnet
def test_a_known_mxnet_model_is_looked_up_without_networkx_and_estimated_without_predicting(tmp_path: Path) -> None:
    measured = decompose(table1()["16"])
    on: dict[str, Any] = {"system": "c5.xlarge", "runtime": "mxnet-1.5.1"}
    store_of(tmp_path / "store", system("c5.xlarge"), runtime("mxnet-1.5.1"), *brick_records(measured, **on)).close()
    how = ("--level", "written", "--system", "c5.xlarge")
    known, same = ("estimate", "table1:16", *how), ("estimate", "table1:16", *how, "--json")
    trees = (("tree", "table1:16"), ("tree", "table1:16", "--json"))
    (first,) = loaded_by(tmp_path, ("tree", "table1:16"))
    assert libraries_of(first) == {"networkx"}
    # VGG has other bricks.
    *look_ups, other = loaded_by(tmp_path, *trees, known, same, ("estimate", "table1:17", *how))
    assert look_ups == [set()] * 4
    assert "dlbricks_tui.estimate.prediction.nearest" in other


def test_a_known_onnx_model_is_looked_up_without_networkx_and_onnx(tmp_path: Path, onnx_model: str) -> None:
    asked = look_ups_of(onnx_model)
    first, *_ = loaded_by(tmp_path / "data", *asked)
    assert libraries_of(first) >= {"networkx", "onnx"}
    known = loaded_by(tmp_path / "data", *asked)
    assert [libraries_of(each) for each in known] == [set()] * len(asked)


def test_modules_of_commands_are_not_searched_for_garbage() -> None:
    program = (
        "import contextlib, gc\n"
        "from dlbricks_tui.cli.main import main\n"
        "with contextlib.suppress(SystemExit): main(['estimate', '--help'])\n"
        "print(gc.isenabled(), gc.get_freeze_count() > len(gc.get_objects()))"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout.splitlines()[-1] == "True True"
