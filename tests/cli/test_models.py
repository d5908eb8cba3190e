"""`dlbricks models`, how `corpus` and `tree` cut models, and what is not loaded to look up a known one."""

import io
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from shutil import copy
from typing import Any

import networkx as nx
import pytest
from onnx.helper import make_node
from rich.cells import cell_len

from dlbricks_tui.bricks.decomposition import decompose
from dlbricks_tui.cli.main import main
from dlbricks_tui.folders import SAMPLE_MODELS
from dlbricks_tui.host.fingerprint import fingerprint
from dlbricks_tui.models.input_shapes import ShapeMemory
from dlbricks_tui.models.library import source_of
from dlbricks_tui.runtime.registry import Registry
from dlbricks_tui.store.records import Measurement
from tests.cli.people import Command, document, one_line
from tests.estimate.stored import brick_records, model_record, store_of
from tests.estimate.table1 import table1
from tests.models.onnx_models import endless, floats, model, saved
from tests.store.samples import runtime, system


@pytest.fixture(autouse=True)
def eighty_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def data(data_folder: str) -> Path:
    return Path(data_folder)


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


def listed(dlbricks: Command) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(dlbricks("models", "--json")[1])
    return found


def test_samples_are_listed_with_their_counts_and_table_1_first(data: Path, dlbricks: Command) -> None:
    found = listed(dlbricks)
    assert [model["table1_id"] for model in found] == [str(number) for number in range(1, 51)] + [None] * (34 + 8)
    assert found[13].pop("path") == str(SAMPLE_MODELS / "table1" / "resnet50-symbol.json")
    name = "ResNet-50 Trained on ImageNet Competition Data"
    facts = {"name": name, "task": "IC", "table1_id": "14", "layers": 177, "unique_layers": 48}
    assert found[13] == {**facts, "formats": ["MXNet", "ONNX"], "inputs": {"data": [1, 3, 224, 224]}}
    assert not data.exists(), "none of them was loaded"


def test_the_table_has_names_to_type_and_the_share_of_unique_layers(
    dlbricks: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = dlbricks("models")[1].splitlines()
    assert lines[0].split() == ["MODEL", "NAME", "FORMAT", "LAYERS", "UNIQUE", "INPUTS"]
    adain = next(line for line in lines if line.startswith("table1:22 "))
    assert adain.split()[-6:] == ["both", "109", "36.7", "%", "1x3x512x512", "+1"]
    assert max(map(cell_len, lines)) <= 80
    monkeypatch.setenv("COLUMNS", "160")
    lines = dlbricks("models")[1].splitlines()
    assert lines[0].split() == ["MODEL", "NAME", "TASK", "FORMAT", "LAYERS", "UNIQUE", "INPUTS"]
    assert max(map(cell_len, lines)) <= 160
    monkeypatch.delenv("COLUMNS")
    name = "Age Estimation VGG-16 Trained on IMDB-WIKI and Looking at People Data"
    assert name in dlbricks("models")[1], "a pipe gets whole names"


def test_an_added_folder_or_file_is_listed_until_it_is_removed(own_models: Path, dlbricks: Command) -> None:
    assert dlbricks("models", "add", own_models) == (0, "", f"{own_models}: 2 models added\n")
    mine = next(model for model in listed(dlbricks) if model["name"] == "mine")
    assert (mine["layers"], mine["unique_layers"], mine["inputs"]) == (38, 24, {"data": [1, 3, 224, 224]})
    # One that cannot be read is listed and reported.
    status, out, err = dlbricks("models")
    assert next(line.split()[-2:] for line in out.splitlines() if line.startswith("broken ")) == ["?", "?"]
    assert status == 0 and err.startswith(f"{own_models / 'broken-symbol.json'}: broken: ")
    assert dlbricks("models", "remove", own_models)[0] == 0 and len(listed(dlbricks)) == 92
    file = own_models / "mine-symbol.json"
    assert dlbricks("models", "add", file) == (0, "", f"{file}: 1 model added\n")
    assert len(listed(dlbricks)) == 93
    assert dlbricks("models", "remove", file)[0] == 0 and len(listed(dlbricks)) == 92


def test_given_inputs_are_forgotten(own_models: Path, data: Path, dlbricks: Command) -> None:
    file = own_models / "mine-symbol.json"
    memory = ShapeMemory(data)
    memory.remember(source_of(file), {"data": (1, 8)}, {"scale": (2,)})
    assert dlbricks("models", "reset", file) == (0, "", "mine: forgot data=1,8 scale=2\n")
    assert not memory.recall_shapes(source_of(file))
    assert dlbricks("models", "reset", file) == (0, "", "mine: nothing was given for its inputs\n")


def test_what_is_no_model_and_no_folder_with_models_is_not_added(own_models: Path, dlbricks: Command) -> None:
    (own_models.parent / "empty").mkdir()
    assert "broken" in one_line(dlbricks("models", "add", own_models / "broken-symbol.json"))
    assert "holds no *-symbol.json or *.onnx file" in one_line(dlbricks("models", "add", own_models.parent / "empty"))
    assert len(document(dlbricks("models", "--json"))) == 92


def test_a_missing_folder_is_reported(own_models: Path, dlbricks: Command) -> None:
    dlbricks("models", "add", own_models)
    own_models.rename(own_models.with_name("moved"))
    status, _, err = dlbricks("models")
    assert status == 0 and err.startswith(f"{own_models} is not there; ")
    assert dlbricks("models", "remove", own_models)[0] == 0
    assert dlbricks("models")[::2] == (0, "")


LOOK_UPS = (("tree", "MODEL"), ("tree", "MODEL", "--json"), ("estimate", "MODEL", "--level", "written"))
# Runs commands one after another, and prints after each what has been loaded.
PROGRAM = """
import contextlib, json, sys
from dlbricks_tui.cli.main import main
for command in json.loads(sys.argv[1]):
    with contextlib.suppress(SystemExit):
        main(command)
    libraries = {"networkx", "onnx", "google.protobuf"} & set(sys.modules)
    predicting = {f"dlbricks_tui.estimate.{it}" for it in ("nearest", "predictors", "transfer")} & set(sys.modules)
    print("loaded:", *sorted(libraries), *predicting, file=sys.stderr)
"""


def loaded_by(data: Path, *commands: Sequence[str]) -> list[set[str]]:
    """The libraries for reading and cutting, and the modules for predicting, loaded by the end of each command."""
    asked = json.dumps([["--data-dir", str(data), *command] for command in commands])
    ran = subprocess.run([sys.executable, "-c", PROGRAM, asked], capture_output=True, text=True, check=True)
    return [set(line.split()[1:]) for line in ran.stderr.splitlines() if line.startswith("loaded:")]


def libraries_of(loaded: set[str]) -> set[str]:
    """Return the modules that are not of dlbricks."""
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
    assert "dlbricks_tui.estimate.nearest" in other


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


def view(dlbricks: Command, *arguments: str) -> list[str]:
    status, out, told = dlbricks(*arguments)
    assert status == 0, told
    return [line.rstrip() for line in out.splitlines()]


def test_the_fifty_models_of_table_1_have_the_papers_totals(dlbricks: Command) -> None:
    corpus = document(dlbricks("corpus", "table1:14", "table1", "table1:14", "--json"))
    assert corpus["layers"] == corpus["sequences"] == 10_815
    assert 1_485 <= corpus["unique_layers"] <= 1_536
    assert corpus["contexts"] >= corpus["unique_layers"]
    # A model that is named twice is compared once.
    fourteenth, *others = (model["table1_id"] for model in corpus["models"])
    assert fourteenth == "14" and others == [str(number) for number in range(1, 51) if number != 14]
    assert round(corpus["models"][46]["share"], 3) == 0.039
    assert corpus["speedup"] is None


def test_the_speedup_is_the_time_of_the_models_over_that_of_their_unique_bricks(
    tmp_path: Path, dlbricks: Command
) -> None:
    data = tmp_path / "data"
    ours: dict[str, Any] = {"system": fingerprint().id, "runtime": Registry(data).default().identity}
    bricks = brick_records(decompose(table1()["16"]), **ours)
    unique_ms = sum(record.statistics.trimmed_mean_ms for record in bricks if isinstance(record, Measurement))
    store_of(data / "store", *bricks, model_record(decompose(table1()["16"]), 40.0, **ours)).close()
    # VGG-16 has no results and does not count.
    corpus = document(dlbricks("corpus", "table1:16", "table1:17", "--json"))
    assert corpus["speedup"] == pytest.approx(40.0 / unique_ms)
    assert "times as long as their unique bricks" in view(dlbricks, "corpus", "table1:16")[1]
    assert document(dlbricks("corpus", "table1:17", "--json"))["speedup"] is None


def test_an_unloadable_model_is_named_and_the_others_are_compared(tmp_path: Path, dlbricks: Command) -> None:
    (tmp_path / "broken-symbol.json").write_text("{}")
    status, out, told = dlbricks("corpus", "vgg16", tmp_path / "broken-symbol.json", "--json")
    assert (status, [model["model"] for model in json.loads(out)["models"]]) == (1, ["vgg16"])
    assert told.startswith("left out: broken: ")
    told = one_line(dlbricks("corpus", tmp_path / "broken-symbol.json"))
    assert told.startswith("dlbricks: error: broken: ")


def test_the_document_lists_every_layer_once_with_its_brick_and_shapes(dlbricks: Command) -> None:
    tree = document(dlbricks("tree", "resnet50_v1", "--json"))
    assert (tree["model"], tree["level"], tree["granularity"]) == ("resnet50_v1", "written", 1)
    assert (tree["layers"], tree["unique_layers"], len(tree["sequences"])) == (174, 46, 174)
    assert len({sequence["brick"] for sequence in tree["sequences"]}) == 46
    assert len({(sequence["brick"], sequence["context"]) for sequence in tree["sequences"]}) == tree["contexts"]
    layers = {layer["index"]: layer for sequence in tree["sequences"] for layer in sequence["layers"]}
    assert sorted(layers) == list(range(174))
    named = ("name", "op", "kind", "times", "in_shapes", "out_shapes", "unmeasurable", "recorded")
    shapes = [[1, 3, 224, 224]], [[1, 64, 112, 112]]
    first = ["resnet50_v1_conv0_fwd", "conv", "convolution", 1, *shapes, None, False]
    assert [layers[0][name] for name in named] == first
    assert all(0 <= source < reader < 174 for source, reader in tree["edges"])


def test_a_terminal_without_line_characters_gets_plain_ascii(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="ascii"))
    monkeypatch.setenv("COLUMNS", "120")
    assert main(["tree", "resnet18_v1"]) == 0
    lines = raw.getvalue().decode("ascii").splitlines()
    assert lines[6].startswith("|- conv 7x7/2 64 ")
    assert "\\u" not in "".join(lines)


def test_the_graph_is_written_beside_the_tree(tmp_path: Path, dlbricks: Command) -> None:
    graphml, dot = tmp_path / "net.graphml", tmp_path / "net.dot"
    tree = document(dlbricks("tree", "squeezenet1.1", "--graphml", str(graphml), "--dot", str(dot), "--json"))
    digraph = nx.read_graphml(graphml, node_type=int)
    assert sorted(map(list, digraph.edges)) == sorted(tree["edges"])
    assert dot.read_text().count(" -> ") == len(tree["edges"])


def test_a_given_value_chooses_the_branch_and_is_remembered(dlbricks: Command) -> None:
    def first_layer(*arguments: str) -> str:
        tree = document(dlbricks("tree", "silero_vad", *arguments, "--json"))
        return str(tree["sequences"][0]["layers"][0]["name"])

    assert first_layer() == "then_branch_/stft/Pad"
    assert first_layer("--value", "sr=8000") == "else_branch_/stft/Pad"
    status, out, told = dlbricks("tree", "silero_vad")
    assert status == 0 and "input sr = 8000 scalar" in out
    assert "inputs as given before: silero_vad: sr=8000; --input or --value gives others" in told
    assert first_layer() == "else_branch_/stft/Pad"


def test_a_loop_without_end_is_given_up_after_seconds_with_a_word(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dlbricks: Command
) -> None:
    monkeypatch.setattr("dlbricks_tui.models.frameworks.RUN_SECONDS", 0.3)
    monkeypatch.setattr("dlbricks_tui.models.frameworks.QUIET_SECONDS", 0.0)
    status, out, told = dlbricks("tree", saved(tmp_path, endless()), "--level", "written")
    assert status == 0 and "Loop, unmeasurable" in out
    assert "it is run once to learn them, for at most 0.3 s\n" in told
    assert "did not answer within 0.3 s" in told
