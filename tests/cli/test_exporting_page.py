"""The page on exporting models agrees with the commands and their messages."""

import re
from pathlib import Path

import pytest
from onnx import ModelProto, TensorProto, helper, save

from dlbricks_tui.cli.main import main
from tests.models.onnx_models import model

TEXT = (Path(__file__).parents[2] / "docs" / "reference" / "exporting.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^    dlbricks (.*)$", TEXT, re.MULTILINE)

DeclaredInputs = dict[str, tuple[int | str, ...]]
FIXED: DeclaredInputs = {"image": (1, 3, 224, 224)}
# The inputs of models as optimum exports them.
ENCODER: DeclaredInputs = {
    "input_ids": ("batch_size", "sequence_length"),
    "attention_mask": ("batch_size", "sequence_length"),
}
DECODER: DeclaredInputs = {
    "input_ids": ("batch_size", "sequence_length"),
    "past_key_values.0.key": ("batch_size", 4, "past_sequence_length", 32),
    "past_key_values.0.value": ("batch_size", 4, "past_sequence_length", 32),
    "attention_mask": ("batch_size", "past_sequence_length + sequence_length"),
}
# The models of commands by a part of the command.
MODELS: dict[str, DeclaredInputs] = {"past": DECODER, "input_ids": ENCODER, "sr=": {"sr": ()}}


def passing_on(inputs: DeclaredInputs) -> ModelProto:
    nodes = [helper.make_node("Relu", [name], [f"{name}_out"]) for name in inputs]
    return model(nodes, inputs, [f"{name}_out" for name in inputs])


def refusal(made: ModelProto, folder: Path, capsys: pytest.CaptureFixture[str]) -> str:
    path = folder / "model.onnx"
    path.write_bytes(made.SerializeToString())
    assert main(["--data-dir", str(folder / "data"), "tree", str(path)]) == 2
    return capsys.readouterr().err.strip()


def on_the_page(message: str) -> re.Pattern[str]:
    """Return what a message of the page stands for: `...` is any text, and a version is any version."""
    assert f"`{message}`" in TEXT
    return re.compile(re.sub(r"\d+(\\\.\d+)*", r"[\\d.]+", re.escape(message)).replace(r"\.\.\.", ".*"))


def test_each_command_of_the_page_fits_the_model_that_it_is_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    explained: dict[str, str] = {}
    assert COMMANDS
    for command in COMMANDS:
        action, path, *options = command.split()
        if action not in explained:
            with pytest.raises(SystemExit):
                main([action, "--help"])
            explained[action] = capsys.readouterr().out
        assert all(option in explained[action] for option in options if option.startswith("--"))
        Path(path).parent.mkdir(exist_ok=True)
        save(passing_on(next((inputs for name, inputs in MODELS.items() if name in command), FIXED)), path)
        assert main(["--data-dir", "data", "tree", path, *options]) == 0


def test_the_example_of_an_error_is_the_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert f"    {refusal(passing_on(ENCODER), tmp_path, capsys)}\n" in TEXT


def test_the_page_has_the_message_for_lost_weights(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = model([helper.make_node("Add", ["x", "w"], ["y"])], {"x": (1, 4)}, ["y"])
    lost = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[4], data_location=TensorProto.EXTERNAL)
    lost.external_data.add(key="location", value="model.onnx.data")
    made.graph.initializer.append(lost)
    message = "the weight '...' is kept in 'model.onnx.data', which is not beside the model; put it there"
    assert on_the_page(message).search(refusal(made, tmp_path, capsys))


def test_the_page_has_the_messages_for_versions_that_are_too_new(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    operators, format_ = passing_on({"x": (1, 4)}), passing_on({"x": (1, 4)})
    operators.opset_import[0].version = 99
    format_.ir_version = 99
    message = on_the_page("it uses version 99 of ONNX's operators; the installed onnx knows 1 to 28")
    assert message.search(refusal(operators, tmp_path, capsys))
    message = on_the_page("declares version 99 of the ONNX format; onnx 1.23.2 reads 1 to 14")
    assert message.search(refusal(format_, tmp_path, capsys))
