"""The language model that a user names: one of the library, a file, or a folder."""

import csv
import json
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from dlbricks_tui.errors import UserError
from dlbricks_tui.files import open_regular
from dlbricks_tui.language.architecture import Architecture, LanguageError, shown_value
from dlbricks_tui.language.config_file import (
    MOST_HEADER_BYTES,
    GgufHeader,
    Values,
    architecture_of_config,
    architecture_of_gguf,
    parsed_config,
)
from dlbricks_tui.printable import printable

if TYPE_CHECKING:
    from onnx import NodeProto

    from dlbricks_tui.models.onnx_file import OnnxFile

CONFIG, GENAI_CONFIG, GGUF_SUFFIX = "config.json", "genai_config.json", ".gguf"
# Files of the builder hold tables at most: weights lie in a file beside it.
_MOST_ONNX = 256 * 2**20
_MOST_FOLDERS = 2000
_LATER_PART = re.compile(r"-(?!00001)\d{5}-of-\d{5}\.gguf$")

# The columns of the library that are no JSON.
_LIBRARY_WORDS = frozenset({"name", "title", "hub_id", "model_type", "others"})
# Parts of names that say how a model was trained or stored, and nothing about its sizes.
_VARIANTS = frozenset({"base", "chat", "gguf", "hf", "instruct", "it", "pt"})


@dataclass(frozen=True, slots=True)
class NamedModel:
    """A language model by the name that the user sees."""

    name: str
    architecture: Architecture
    title: str = ""
    # Its name on Hugging Face, such as meta-llama/Llama-3.2-1B.
    hub_id: str = ""
    # The file that tells its sizes; empty for a model of the library.
    path: str = ""


@cache
def library_models() -> tuple[NamedModel, ...]:
    """Return the models of the library, in the order of its file."""
    found = []
    with Path(__file__).with_name("library.csv").open(encoding="utf-8", newline="") as file:
        # Columns are names and keys of a config.json; `others` are rare keys.
        for row in csv.DictReader(file):
            values = row | dict(pair.split("=") for pair in row["others"].split())
            sizes = {key: json.loads(text) for key, text in values.items() if text and key not in _LIBRARY_WORDS}
            architecture = architecture_of_config({"model_type": row["model_type"], **sizes})
            found.append(NamedModel(row["name"], architecture, row["title"], row["hub_id"]))
    return tuple(found)


def model_in_library(name: str) -> NamedModel | None:
    """Return the model of that name, in any case; of a name on Hugging Face, also for its variants for chats."""
    wanted = _base(name)
    return next((it for it in library_models() if wanted in (it.name, _base(it.hub_id))), None)


def _base(name: str) -> str:
    last = name.lower().rpartition("/")[2].removeprefix("meta-")
    return "-".join([part for part in last.split("-") if part not in _VARIANTS])


def open_language_model(text: str) -> NamedModel:
    """Return the model of a library name, a name on Hugging Face, or the path of a file or folder."""
    known = model_in_library(text)
    path = os.path.expanduser(text)  # noqa: PTH111 - unlike Path's own functions, these accept any text
    is_there = os.path.exists(path)  # noqa: PTH110
    # A path that is not there is no name, whatever its last part is.
    is_path = is_there or text.startswith((os.sep, ".", "~"))
    if known is not None and not (is_path and os.sep in text):
        return known
    if is_there:
        return _at(Path(path))
    if text.endswith((".json", ".onnx", GGUF_SUFFIX)):
        raise LanguageError(f"there is no file {text[-200:]!r}: give another path")
    close = get_close_matches(text[:120].lower().rpartition("/")[2], [it.name for it in library_models()], n=3)
    meant = f"did you mean {' or '.join(close)}? " if close else ""
    raise LanguageError(
        f"no language model {text[:120]!r}: {meant}`dlbricks llm --list` shows all names; or give the path of a "
        f"{CONFIG}, a {GGUF_SUFFIX} file or a folder"
    )


def _at(path: Path) -> NamedModel:
    file = _only_file(path) if os.path.isdir(path) else path  # noqa: PTH112 - as above
    if file.suffix == ".onnx" and file.with_name(GENAI_CONFIG).is_file():
        file = file.with_name(GENAI_CONFIG)
    try:
        content = _beginning(file)
        if file.name == GENAI_CONFIG:
            found = architecture_of_config(_genai_values(file, parsed_config(content)))
        elif content[:4] == b"GGUF" or file.name.endswith(GGUF_SUFFIX):
            found = architecture_of_gguf(GgufHeader(content))
        else:
            found = architecture_of_config(parsed_config(content))
        return NamedModel(name := _name_of(file), found, title=name, path=str(file))
    except UserError as error:
        raise LanguageError(f"{printable(str(file))}: {error}") from None


def _only_file(folder: Path) -> Path:
    """Return the file that describes the model of a folder; if it has none itself, the only one below it."""
    walk = [(Path(where), names) for where, _, names in islice(os.walk(folder), _MOST_FOLDERS)]
    own = [file for where, names in walk[:1] for file in _describing(where, names)]
    found = own or sorted([file for where, names in walk[1:] for file in _describing(where, names)])
    shown = printable(str(folder))
    if not found:
        raise LanguageError(f"{shown} holds no readable {CONFIG} or {GGUF_SUFFIX} file: give another folder")
    if len(found) > 1:
        listed = ", ".join([printable(str(it.relative_to(folder))) for it in found[:4]])
        raise LanguageError(
            f"{shown} holds {len(found):,} models: {listed}{', ...' * (len(found) > 4)}; give the path of one"
        )
    return found[0]


def _describing(folder: Path, names: Sequence[str]) -> list[Path]:
    for name in (GENAI_CONFIG, CONFIG):
        if name in names:
            return [folder / name]
    return sorted([folder / it for it in names if it.endswith(GGUF_SUFFIX) and not _LATER_PART.search(it)])


def _name_of(file: Path) -> str:
    """Return the name of the folder that a config.json describes; in Hugging Face's cache, that of the model."""
    if file.name not in (CONFIG, GENAI_CONFIG):
        return file.stem
    folder = file.absolute().parent
    if folder.parent.name == "snapshots":
        return folder.parent.parent.name.rpartition("--")[2]
    return folder.name


def _beginning(file: Path, most: int = MOST_HEADER_BYTES) -> bytes:
    try:
        with open_regular(file) as opened:
            return opened.read(most)
    except OSError as error:
        raise LanguageError(f"{printable(file.name)} cannot be read: {error.strerror}") from None


def _genai_values(file: Path, values: Values) -> Values:
    """Return what a config.json would say about a folder of onnxruntime-genai."""
    # It loads packages that other models do not need.
    from dlbricks_tui.models.onnx_file import parse_onnx

    model = values.get("model")
    decoder = model.get("decoder") if isinstance(model, dict) else None
    if not isinstance(model, dict) or not isinstance(decoder, dict):
        raise LanguageError("it has no model.decoder; give a folder that onnxruntime-genai's builder wrote")
    name = decoder.get("filename")
    if not isinstance(name, str) or not re.fullmatch(r"[\w.-]+\.onnx", name):
        raise LanguageError(f"its model.decoder.filename is {shown_value(name)}, and has to name a file beside it")
    content = _beginning(file.with_name(name), _MOST_ONNX + 1)
    if len(content) > _MOST_ONNX:
        raise LanguageError(f"its {name} has more than 256 MiB; give the path of a {CONFIG} of the model")
    found, config = parse_onnx(content, name), file.with_name(CONFIG)
    return parsed_config(_beginning(config)) if config.is_file() else _config_of_graph(model, decoder, found)


def _config_of_graph(model: Values, decoder: Values, graph: "OnnxFile") -> Values:
    """Return what a config.json would say, by the names that the builder gives to nodes and weights."""
    weights = {it.name: it for it in graph.weights}
    sizes = ("hidden_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads")
    nodes = {it.name for it in graph.nodes}
    windows = [_whole(it, "local_window_size") for it in graph.nodes if it.op_type == "GroupQueryAttention"]
    inner = [
        _whole(it, "K") or weights[name].dims[0]
        for it in graph.nodes
        if it.name.startswith("/model/layers.0/mlp/down_proj/MatMul")
        for name in it.input[1:2]
        if name in weights and weights[name].dims
    ]
    if not inner:
        raise LanguageError(f"its graph does not tell the sizes; put the {CONFIG} of the model beside it")
    return {
        "model_type": model.get("type"),
        **{key: decoder.get(key) for key in sizes},
        "head_dim": decoder.get("head_size"),
        "intermediate_size": inner[0],
        "vocab_size": model.get("vocab_size"),
        "max_position_embeddings": model.get("context_length"),
        "tie_word_embeddings": "model.embed_tokens.weight" not in weights,
        "attention_bias": "/model/layers.0/attn/o_proj/Add" in nodes,
        "mlp_bias": "/model/layers.0/mlp/down_proj/Add" in nodes,
        "use_sliding_window": True,
        "sliding_window": max([0, *windows]),
        "layer_types": ["sliding_attention" if it > 0 else "full_attention" for it in windows],
    }


def _whole(node: "NodeProto", name: str) -> int:
    return next((it.i for it in node.attribute if it.name == name), 0)
