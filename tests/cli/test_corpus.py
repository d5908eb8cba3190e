"""How models are cut: `dlbricks corpus` and `dlbricks tree`."""

import io
import json
import sys
from pathlib import Path
from typing import Any

import networkx as nx
import pytest
from onnx.helper import make_node
from rich.cells import cell_len

from dlbricks_tui.bricks.decomposition import decompose
from dlbricks_tui.cli.main import main
from dlbricks_tui.host.fingerprint import fingerprint
from dlbricks_tui.runtime.registry import Registry
from dlbricks_tui.store.records import Measurement
from tests.estimate.stored import brick_records, model_record, store_of
from tests.estimate.table1 import table1
from tests.models.onnx_models import endless, model, saved

pytestmark = pytest.mark.usefixtures("shared_cache")


@pytest.fixture(autouse=True)
def eighty_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)


def document(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    assert main(["corpus", *arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def view(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[str]:
    assert main(["corpus", *arguments]) == 0
    return capsys.readouterr().out.splitlines()


def test_the_fifty_models_of_table_1_have_the_papers_totals(capsys: pytest.CaptureFixture[str]) -> None:
    corpus = document(capsys, "table1:14", "table1", "table1:14")
    assert corpus["layers"] == corpus["sequences"] == 10_815
    assert 1_485 <= corpus["unique_layers"] <= 1_536
    assert corpus["contexts"] >= corpus["unique_layers"]
    # A model that is named twice is compared once.
    fourteenth, *others = (model["table1_id"] for model in corpus["models"])
    assert fourteenth == "14" and others == [str(number) for number in range(1, 51) if number != 14]
    assert round(corpus["models"][46]["share"], 3) == 0.039
    assert corpus["speedup"] is None


def test_at_a_higher_granularity_sequences_are_counted_beside_layers(capsys: pytest.CaptureFixture[str]) -> None:
    corpus = document(capsys, "vgg16", "-g", "4")
    assert corpus["layers"] == 38
    assert corpus["unique_layers"] <= corpus["sequences"] < 38
    assert "sequences" in view(capsys, "vgg16", "-g", "4")[0]


def test_the_speedup_is_the_time_of_the_models_over_that_of_their_unique_bricks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = tmp_path / "data"
    ours: dict[str, Any] = {"system": fingerprint().id, "runtime": Registry(data).default().identity}
    squeezenet = decompose(table1()["16"])
    records = [*brick_records(squeezenet, **ours), model_record(squeezenet, 40.0, **ours)]
    unique_ms = sum(record.statistics.trimmed_mean_ms for record in records[:-1] if isinstance(record, Measurement))
    store_of(data / "store", *records).close()
    corpus = document(capsys, "table1:16", "--data-dir", str(data))
    assert corpus["speedup"] == pytest.approx(40.0 / unique_ms)
    assert "times as long as their unique bricks" in view(capsys, "table1:16", "--data-dir", str(data))[1]
    # VGG-16 has no results and does not count.
    assert document(capsys, "table1:16", "table1:17", "--data-dir", str(data))["speedup"] == corpus["speedup"]
    assert document(capsys, "table1:17", "--data-dir", str(data))["speedup"] is None


def test_an_unloadable_model_is_named_and_the_others_are_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "broken-symbol.json").write_text("{}")
    assert main(["corpus", "vgg16", str(tmp_path / "broken-symbol.json"), "--json"]) == 1
    captured = capsys.readouterr()
    assert [model["model"] for model in json.loads(captured.out)["models"]] == ["vgg16"]
    assert captured.err.startswith("left out: broken: ")
    assert main(["corpus", str(tmp_path / "broken-symbol.json")]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert err.startswith("dlbricks: error: broken: ")


def tree_document(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    assert main(["tree", *arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def tree_view(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[str]:
    assert main(["tree", *arguments]) == 0
    return [line.rstrip() for line in capsys.readouterr().out.splitlines()]


def test_the_document_lists_every_layer_once_with_its_brick_and_shapes(capsys: pytest.CaptureFixture[str]) -> None:
    tree = tree_document(capsys, "resnet50_v1")
    assert (tree["model"], tree["level"], tree["granularity"]) == ("resnet50_v1", "written", 1)
    assert (tree["layers"], tree["unique_layers"], len(tree["sequences"])) == (174, 46, 174)
    assert len({sequence["brick"] for sequence in tree["sequences"]}) == 46
    assert len({(sequence["brick"], sequence["context"]) for sequence in tree["sequences"]}) == tree["contexts"]
    layers = {layer["index"]: layer for sequence in tree["sequences"] for layer in sequence["layers"]}
    assert sorted(layers) == list(range(174))
    assert layers[0] == {
        "index": 0,
        "name": "resnet50_v1_conv0_fwd",
        "op": "conv",
        "kind": "convolution",
        "times": 1,
        "in_shapes": [[1, 3, 224, 224]],
        "out_shapes": [[1, 64, 112, 112]],
        "unmeasurable": None,
        "recorded": False,
    }
    assert all(0 <= source < reader < 174 for source, reader in tree["edges"])


@pytest.mark.parametrize(("model", "columns"), [("table1:22", 60), ("table1:36", 80), ("densenet121", 120)])
def test_every_line_fits_the_terminal(
    model: str, columns: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    lines = tree_view(capsys, model)
    assert max(map(cell_len, lines)) <= columns
    # A line keeps its own text at any width.
    assert not [line for line in lines if line.split("…")[0].strip("│├└─ ") == "" and "…" in line]


def test_a_terminal_without_line_characters_gets_plain_ascii(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="ascii"))
    monkeypatch.setenv("COLUMNS", "120")
    assert main(["tree", "resnet18_v1"]) == 0
    lines = raw.getvalue().decode("ascii").splitlines()
    assert lines[6].startswith("|- conv 7x7/2 64 ")
    assert "\\u" not in "".join(lines)


def test_one_model_at_a_time_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tree", "table1"]) == 2
    assert capsys.readouterr().err == (
        "dlbricks: error: table1 stands for 50 models; `tree` shows one, such as table1:14\n"
    )


def test_an_absurd_input_shape_is_refused_in_one_line_for_either_format(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    of_any_rank = model([make_node("Relu", ["x"], ["y"])], {"x": ("n",)}, ["y"])
    of_any_rank.graph.input[0].type.tensor_type.ClearField("shape")
    file = str(saved(tmp_path, of_any_rank))
    for shape in ("99999999999999999999", "-1", "0", ",".join(["1"] * 5_000), "9" * 100, "1e300"):
        for name, asked in (("x", file), ("data", "alexnet")):
            assert main(["tree", asked, "--input", f"{name}={shape}"]) == 2
            told = capsys.readouterr()
            (line,) = told.err.splitlines()
            assert line.startswith("dlbricks: error: ")
            assert name in line
            assert len(line) < 300
            assert told.out == ""


def test_the_graph_is_written_beside_the_tree(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    graphml, dot = tmp_path / "net.graphml", tmp_path / "net.dot"
    tree = tree_document(capsys, "squeezenet1.1", "--graphml", str(graphml), "--dot", str(dot))
    digraph = nx.read_graphml(graphml, node_type=int)
    assert sorted(map(list, digraph.edges)) == sorted(tree["edges"])
    assert dot.read_text().count(" -> ") == len(tree["edges"])


def test_a_graph_that_cannot_be_written_is_refused_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tree", "squeezenet1.1", "--dot", "/nowhere/net.dot"]) == 2
    out, told = capsys.readouterr()
    assert out == ""
    assert told.startswith("dlbricks: error: /nowhere/net.dot cannot be written: ") and told.count("\n") == 1


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("sr", "--value 'sr' is not NAME=16000, NAME=1,2,3 or NAME=text"),
        ("rate=1", "silero_vad has no input 'rate'; its inputs are: input, state, sr"),
        ("sr=1,2", "silero_vad: input 'sr' is a single number; its --value has 2 numbers, give 1"),
    ],
)
def test_a_wrong_value_is_refused_in_one_line(value: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tree", "silero_vad", "--value", value]) == 2
    assert capsys.readouterr().err == f"dlbricks: error: {message}\n"


def test_a_given_value_chooses_the_branch_and_is_remembered(capsys: pytest.CaptureFixture[str]) -> None:
    def first_layer(*arguments: str) -> str:
        tree = tree_document(capsys, "silero_vad", *arguments)
        return str(tree["sequences"][0]["layers"][0]["name"])

    assert first_layer() == "then_branch_/stft/Pad"
    assert first_layer("--value", "sr=8000") == "else_branch_/stft/Pad"
    assert main(["tree", "silero_vad"]) == 0
    shown = capsys.readouterr()
    assert "input sr = 8000 scalar" in shown.out
    assert "inputs as given before: silero_vad: sr=8000; --input or --value gives others" in shown.err
    assert first_layer() == "else_branch_/stft/Pad"


def test_a_loop_without_end_is_given_up_after_seconds_with_a_word(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("dlbricks_tui.models.frameworks.RUN_SECONDS", 0.3)
    monkeypatch.setattr("dlbricks_tui.models.frameworks.QUIET_SECONDS", 0.0)
    assert main(["tree", str(saved(tmp_path, endless())), "--level", "written"]) == 0
    out, told = capsys.readouterr()
    assert "Loop, unmeasurable" in out
    assert "it is run once to learn them, for at most 0.3 s\n" in told
    assert "did not answer within 0.3 s" in told
