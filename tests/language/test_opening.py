"""Language models of the library, and files and folders that hold one."""

import csv
import json
import os
from decimal import Decimal
from importlib.resources import files
from pathlib import Path

import pytest
from onnx.helper import make_node

from dlbricks_tui.language.architecture import LanguageError
from dlbricks_tui.language.opening import NamedModel, library_models, model_in_library, open_language_model
from tests.language.gguf_files import LLAMA, gguf
from tests.language.test_config_file import SIZES
from tests.models.onnx_models import floats, kept_in, saved, small
from tests.models.onnx_models import model as onnx_model

MODELS = {it.name: it for it in library_models()}
ROWS = csv.DictReader(files("dlbricks_tui.language").joinpath("library.csv").read_text().splitlines())
PUBLISHED = {it["name"]: Decimal(it["billion_parameters"]) for it in ROWS}


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_the_sizes_make_the_published_number_of_parameters(model: NamedModel) -> None:
    published = PUBLISHED[model.name]
    # Within 1 %, or half of the last published digit.
    rounding = Decimal((0, (5,), int(published.as_tuple().exponent) - 1))
    assert abs(Decimal(model.architecture.parameters) / 10**9 - published) <= max(published / 100, rounding)
    assert model.title and model.hub_id


def test_the_library_spans_the_sizes_that_people_run() -> None:
    billions = sorted(PUBLISHED.values())
    assert len(MODELS) == len(PUBLISHED) >= 30
    assert (billions[0] < Decimal("0.2"), billions[-1] > 400) == (True, True)
    assert round(MODELS["mixtral-8x7b"].architecture.active_parameters / 1e9, 1) == 12.9
    assert round(MODELS["qwen3-30b-a3b"].architecture.active_parameters / 1e9, 1) == 3.4


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("llama-3.2-1b", "llama-3.2-1b"),
        ("Llama-3.2-1B", "llama-3.2-1b"),
        ("meta-llama/Llama-3.2-1B-Instruct", "llama-3.2-1b"),
        ("meta-llama/Meta-Llama-3.1-8B-Instruct", "llama-3.1-8b"),
        ("meta-llama/Llama-2-7b-chat-hf", "llama-2-7b"),
        ("google/gemma-2-2b-it", "gemma-2-2b"),
        ("mistralai/Mistral-7B-Instruct-v0.3", "mistral-7b"),
        ("TinyLlama/TinyLlama-1.1B-Chat-v1.0", "tinyllama-1.1b"),
        ("Qwen/Qwen3-8B-Base", "qwen3-8b"),
        ("bartowski/Llama-3.2-1B-Instruct-GGUF", "llama-3.2-1b"),
        ("mistralai/Mistral-7B-Instruct-v0.1", None),
        ("instruct", None),
        ("", None),
    ],
)
def test_names_on_hugging_face_find_their_model(text: str, name: str | None) -> None:
    found = model_in_library(text)
    assert (found.name if found else None) == name


def test_each_name_means_one_model() -> None:
    assert all(model_in_library(it.name) == it == model_in_library(it.hub_id) for it in MODELS.values())


CONFIG = json.dumps({"model_type": "llama", **SIZES})


def write(path: Path, content: str | bytes = CONFIG) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def refusal(path: Path | str) -> str:
    with pytest.raises(LanguageError) as error:
        open_language_model(str(path))
    assert str(error.value).isprintable()
    return str(error.value)


def test_a_name_of_the_library_needs_no_file() -> None:
    found = open_language_model("Qwen/Qwen2.5-0.5B-Instruct")
    assert (found.name, found.title) == ("qwen2.5-0.5b", "Qwen2.5 0.5B")


def test_files_and_folders_are_opened(tmp_path: Path) -> None:
    config = write(tmp_path / "small" / "config.json")
    packed = write(tmp_path / "packed" / "tiny-Q4.gguf", gguf(LLAMA))
    write(tmp_path / "packed" / "README.md", "no model")
    for path, name in (
        (config, "small"),
        (config.parent, "small"),
        (packed, "tiny-Q4"),
        (packed.parent, "tiny-Q4"),
        (write(tmp_path / "other.json", b"\xef\xbb\xbf" + CONFIG.encode()), "other"),
    ):
        found = open_language_model(str(path))
        assert found.name == found.title == name
        assert Path(found.path).is_file() and open_language_model(found.path) == found
        assert (found.architecture.family, found.architecture.hidden) == ("llama", 256)


def test_a_folder_of_the_cache_is_called_as_its_model(tmp_path: Path) -> None:
    write(tmp_path / "models--meta-llama--Llama-3.2-1B" / "snapshots" / "4e20de36" / "config.json")
    assert open_language_model(str(tmp_path)).name == "Llama-3.2-1B"


def test_an_own_config_comes_before_those_in_folders_below(tmp_path: Path) -> None:
    write(tmp_path / "config.json")
    write(tmp_path / "pooling" / "config.json", "{}")
    assert open_language_model(str(tmp_path)).architecture.hidden == 256


def test_the_parts_of_a_split_file_are_one_model(tmp_path: Path) -> None:
    for part in (1, 2, 3):
        write(tmp_path / f"big-0000{part}-of-00003.gguf", gguf(LLAMA))
    assert open_language_model(str(tmp_path)).name == "big-00001-of-00003"


def test_several_models_are_listed_in_one_line(tmp_path: Path) -> None:
    for name in ("a", "b", "c", "d", "e\x1b[31m"):
        write(tmp_path / name / "config.json")
    listed = "a/config.json, b/config.json, c/config.json, d/config.json, ..."
    assert refusal(tmp_path) == f"{tmp_path} holds 5 models: {listed}; give the path of one"
    write(tmp_path / "pair" / "x.gguf")
    write(tmp_path / "pair" / "y.gguf")
    assert "holds 2 models: x.gguf, y.gguf" in refusal(tmp_path / "pair")


def test_unknown_names_get_the_close_ones() -> None:
    assert "no language model 'llama-3.2-1c': did you mean llama-3.2-1b or " in refusal("llama-3.2-1c")
    assert "did you mean qwen3-8b or " in refusal("Qwen/Qwen3-9B")
    assert r"no language model '\x1b[31m\x00': `dlbricks llm --list` shows all names" in refusal("\x1b[31m\0")
    assert "no language model ''" in refusal("")
    for path in ("~/models/Llama-3.2-1B", "/models/llama-3.2-1b", "./llama-3.2-1b"):
        assert f"no language model '{path}': did you mean llama-3.2-1b" in refusal(path), "another model may be meant"
    assert refusal("models/nothing.gguf") == "there is no file 'models/nothing.gguf': give another path"


def test_what_cannot_be_read_is_refused_in_one_line(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "config.json")
    assert refusal(tmp_path).endswith("config.json cannot be read: it is not a regular file")
    assert "/dev/zero: zero cannot be read: it is not a regular file" in refusal("/dev/zero")
    (tmp_path / "empty").mkdir()
    assert refusal(tmp_path / "empty").endswith(
        "empty holds no readable config.json or .gguf file: give another folder"
    )
    path = write(tmp_path / "bad\x1b.json", b"\xff\xfe")
    cure = "give a config.json of Hugging Face, a GGUF file or a folder"
    assert refusal(path) == f"{tmp_path}/bad\\x1b.json: it is not UTF-8 text: invalid start byte at byte 0; {cure}"
    assert "it is too large for a config.json" in refusal(write(tmp_path / "large.json", b" " * (4 * 2**20 + 1)))
    assert "it is not a GGUF file" in refusal(write(tmp_path / "text.gguf"))
    assert "its family 'bert' is not known; known are llama" in refusal(
        write(tmp_path / "b.json", '{"model_type": "bert"}')
    )


GENAI = {
    "model": {
        "type": "qwen2",
        "context_length": 4096,
        "vocab_size": 1024,
        "decoder": {
            "filename": "model.onnx",
            "head_size": 64,
            "hidden_size": 256,
            "num_attention_heads": 4,
            "num_hidden_layers": 1,
            "num_key_value_heads": 2,
        },
    }
}


def genai_folder(folder: Path, *, bits: int, is_tied: bool = False) -> Path:
    """A folder as onnxruntime-genai's builder writes it; the graph has the last product of a block only."""
    weight, product = "down_proj.MatMul.weight", "/model/layers.0/mlp/down_proj/MatMul"
    if bits < 32:
        node = make_node("MatMulNBits", ["x", weight], ["y"], product + "_Q", domain="com.microsoft", K=704, bits=bits)
        stored = floats(weight, (1,))
    else:
        node = make_node("MatMul", ["x", weight], ["y"], product)
        stored = kept_in("a file that is not there", floats(weight, (704, 256)))
    table = [] if is_tied else [floats("model.embed_tokens.weight", (1,))]
    config = write(folder / "genai_config.json", json.dumps(GENAI))
    made = onnx_model([node], {"x": ("n", None)}, ["y"], [stored, *table])
    made.opset_import.add(domain="com.microsoft", version=1)
    saved(folder, made, "model")
    return config


@pytest.mark.parametrize("bits", [4, 8, 32])
def test_a_folder_of_onnxruntime_genai_is_read_without_its_weights(tmp_path: Path, bits: int) -> None:
    config = genai_folder(tmp_path / "built", bits=bits, is_tied=bits == 4)
    for path in (config, config.parent, config.with_name("model.onnx")):
        found = open_language_model(str(path))
        assert found.name == "built"
        assert (found.architecture.family, found.architecture.inner) == ("qwen2", 704)
        assert (found.architecture.is_tied, found.architecture.positions) == (bits == 4, 4096)


def test_a_config_beside_the_graph_tells_more(tmp_path: Path) -> None:
    genai_folder(tmp_path, bits=4)
    write(tmp_path / "config.json")
    assert open_language_model(str(tmp_path)).architecture.blocks == 4


def test_broken_folders_of_onnxruntime_genai_are_refused_in_one_line(tmp_path: Path) -> None:
    config = genai_folder(tmp_path, bits=4)
    for name in ("../model.onnx", "/etc/passwd", "", "\0", "\ud800", 7, None):
        write(config, json.dumps({"model": {**GENAI["model"], "decoder": {"filename": name}}}))
        assert "its model.decoder.filename is " in refusal(config)
    write(config, '{"model": []}')
    assert "it has no model.decoder" in refusal(config)
    write(config, json.dumps(GENAI))
    write(tmp_path / "model.onnx", b"\0")
    assert "model.onnx" in refusal(config)
    saved(tmp_path, small(), "model")
    assert "its graph does not tell the sizes; put the config.json of the model beside it" in refusal(config)
    (tmp_path / "model.onnx").unlink()
    assert "model.onnx cannot be read: No such file or directory" in refusal(config)
