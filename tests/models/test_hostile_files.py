"""Hostile and damaged files: each is read or refused with little memory and time, and none controls the terminal."""

import copy
import json
import os
import pty
import random
import re
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlbricks_tui.bricks.decomposition import Cutting, decompose
from dlbricks_tui.folders import SAMPLE_MODELS
from dlbricks_tui.models.cache import GraphAnswer
from dlbricks_tui.models.errors import ModelError
from dlbricks_tui.models.graph import TensorType
from dlbricks_tui.models.mxnet_file import SymbolFile, parse_symbol
from dlbricks_tui.models.mxnet_layers import build_graph, input_shapes, variable_roles
from tests.models.hostile_files import ESCAPES, hostile_onnx, hostile_symbols
from tests.models.onnx_models import small
from tests.models.symbols import document, node, small_network, variable

ROOT = Path(__file__).parents[2]
MOST_MIB = 500
# Processor time, which does not depend on other processes.
MOST_SECONDS = 10
# All control characters except tabs and line ends.
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


# Some of most kinds; the soak reads them all.
@pytest.mark.parametrize("step", [11, pytest.param(1, marks=pytest.mark.soak)])
def test_hundreds_of_hostile_files_are_read_or_refused_in_one_line_each(step: int, tmp_path: Path) -> None:
    models = tmp_path / "models"
    models.mkdir()
    names: list[str] = []
    for files, suffix in ((hostile_onnx(step), ".onnx"), (hostile_symbols(step), "-symbol.json")):
        for name, content in files.items():
            (models / f"{len(names):03}{suffix}").write_bytes(content)
            names.append(name)
    assert len(names) >= 600 // step
    command = [sys.executable, "-m", "tests.models.reading_child", str(models), str(tmp_path / "data")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2_000:]
    read = [{**json.loads(it), "name": name} for it, name in zip(done.stdout.splitlines(), names, strict=True)]
    # One process reads them all, so the first file over the limit is the culprit.
    assert [(it["name"], it["peak_mib"]) for it in read if it["peak_mib"] > MOST_MIB][:1] == []
    assert [it["name"] for it in read if it["seconds"] > MOST_SECONDS] == []
    assert [it["name"] for it in read if CONTROL.search(it["out"] + it["err"])] == []
    assert [(it["name"], it["err"][:300]) for it in read if not is_told_clearly(it)] == []


def is_told_clearly(read: Mapping[str, Any]) -> bool:
    """Return true if a file was shown as a model, or refused in one readable line."""
    if read["status"] == 0:
        return bool(read["out"])
    lines = read["err"].splitlines()
    one_line = len(lines) == 1 and lines[0].startswith("dlbricks: error: ") and len(lines[0]) < 1_000
    return read["status"] == 2 and one_line and not read["out"]


# Runs `dlbricks` once for each list of arguments.
_COMMANDS = "import json, sys; from dlbricks_tui.cli.main import main; [main(it) for it in json.loads(sys.argv[1])]"


def on_a_terminal(*commands: Sequence[str]) -> bytes:
    """Return the output of the commands with both streams on a terminal."""
    above, below = pty.openpty()
    command = [sys.executable, "-c", _COMMANDS, json.dumps(commands)]
    with subprocess.Popen(command, cwd=ROOT, stdin=below, stdout=below, stderr=below) as running:
        os.close(below)
        written = bytearray()
        # Reading from a closed terminal is an error on Linux, and the end of file elsewhere.
        with suppress(OSError):
            while part := os.read(above, 2**16):
                written += part
        running.wait()
    os.close(above)
    return bytes(written)


# The codes that rich writes: colours, and the line ends of a terminal.
OWN_CODES = re.compile(rb"\x1b\[[0-9;]*m|\r\n")


def test_names_in_files_send_no_control_codes_to_the_terminal(tmp_path: Path) -> None:
    named = tmp_path / "\x1b]0;owned\x07\x1b[2J"
    named.mkdir()
    made = small()
    made.graph.node[0].name = ESCAPES
    (named / "\x1b[31mmodel.onnx").write_bytes(made.SerializeToString())
    made.graph.node[0].input[0] = ESCAPES
    (named / "\x1b[31mrefusal.onnx").write_bytes(made.SerializeToString())
    data = ["--data-dir", str(tmp_path / "data")]
    trees = [[*data, "tree", str(path)] for path in sorted(named.iterdir())]
    written = OWN_CODES.sub(b"", on_a_terminal(*trees, [*data, "models", "add", str(named)], [*data, "models"]))
    assert b"refusal: node 0" in written
    assert written.count(b"owned") > 4
    assert CONTROL.search(written.decode()) is None


@pytest.mark.soak
@pytest.mark.parametrize(
    ("make", "suffix", "level"),
    [(hostile_onnx, ".onnx", "fused"), (hostile_symbols, "-symbol.json", "written")],
    ids=["onnx", "symbols"],
)
def test_the_frameworks_survive_hostile_files(
    make: Callable[[], Mapping[str, bytes]], suffix: str, level: str, tmp_path: Path
) -> None:
    """Each file by a command of its own, with the installed framework and a terminal."""
    path = tmp_path / f"net{suffix}"
    for name, content in make().items():
        path.write_bytes(content)
        arguments = ["--data-dir", str(tmp_path / "data"), "tree", str(path), "--level", level]
        written = OWN_CODES.sub(b"\n", on_a_terminal(arguments)).decode()
        assert CONTROL.search(written) is None, name
        assert "Traceback" not in written, name
        assert "fault of dlbricks" not in written, name


# Real symbol files, damaged in every way.


SAMPLES = ("table1/capsnet", "table1/yolo_v2", "gluon/squeezenet1.0")


def read(name: str) -> Any:
    return json.loads(Path(SAMPLE_MODELS, f"{name}-symbol.json").read_bytes())


def old_file() -> Any:
    nodes = [{("param" if key == "attrs" else key): part for key, part in it.items()} for it in small_network()]
    return document(nodes, version=None)


def file_with_graphs_inside() -> Any:
    body = document([variable("x"), node("relu", "r", 0)])
    nodes = [variable("data"), node("_foreach", "loop", 0, in_data_locs="(0,)") | {"subgraphs": [body, body]}]
    return document([*nodes, node("_sg_mkldnn_conv", "fused", 1, with_act="true") | {"subgraphs": [body]}])


DOCUMENTS = [*map(read, SAMPLES), old_file(), file_with_graphs_inside()]
WEIRD: list[Any] = [
    *(None, True, False, 0, 1, -1, 7, 2**16, 2**31, 10**12, 10**30, 1.5, 1e308, float("nan"), float("inf")),
    *("", " ", "null", "data", "\0", "\ud800", "(1, 2", "(0,)", "()", "None", "9" * 70, "-1", "inf", "2L", "NHWC", "²"),
    *([], {}, [[]], [0], [0, 0], [0, 0, 0], [[0, 0, 0]], [1, 1, 0], {"a": "b"}, {"op": "null"}, {"nodes": []}),
    *({"op": "BatchNorm", "inputs": [[0, 0]]}, {"__layer__": "x", "__times__": "3"}, {"op": "Convolution"}),
]


@st.composite
def mutated_documents(draw: st.DrawFn) -> bytes:
    """Documents with parts removed, replaced, doubled or exchanged."""
    found = {"": copy.deepcopy(draw(st.sampled_from(DOCUMENTS)))}
    for _ in range(draw(st.integers(1, 4))):
        holder, key = draw_place(draw, found)
        kind = draw(st.sampled_from(["replace", "remove", "double", "exchange"]))
        if kind == "replace":
            holder[key] = copy.deepcopy(draw(st.sampled_from(WEIRD)))
        elif kind == "exchange":
            other, place = draw_place(draw, found)
            holder[key] = copy.deepcopy(other[place])
        elif isinstance(holder, list):
            holder[key : key + 1] = [] if kind == "remove" else [holder[key], copy.deepcopy(holder[key])]
        elif holder is not found:
            del holder[key]
    return json.dumps(found[""]).encode()


def draw_place(draw: st.DrawFn, root: dict[str, Any]) -> tuple[Any, Any]:
    """Return a place in the document, preferably deep: its container, and its key or index."""
    holder: Any = root
    key: Any = ""
    while isinstance(holder[key], (dict, list)) and holder[key] and draw(st.sampled_from((True,) * 9 + (False,))):
        holder = holder[key]
        if isinstance(holder, list):
            key = draw(st.integers(0, len(holder) - 1))
        else:
            # Most faults of a file are faults of its nodes.
            key = "nodes" if "nodes" in holder and draw(st.booleans()) else draw(st.sampled_from(sorted(holder)))
    return holder, key


@st.composite
def damaged_bytes(draw: st.DrawFn) -> bytes:
    """A file with bytes changed, removed or doubled."""
    data = bytearray(json.dumps(draw(st.sampled_from(DOCUMENTS))).encode())
    for _ in range(draw(st.integers(1, 5))):
        begin = draw(st.integers(0, len(data) - 1))
        end = begin + draw(st.integers(0, 40))
        data[begin:end] = draw(st.sampled_from([b"", data[begin:end] * 2]) | st.binary(max_size=3))
        if not data:
            break
    return bytes(data)


def no_types(file: SymbolFile, shuffle: random.Random) -> list[list[TensorType]]:
    return [[TensorType(None)] for _ in file.nodes]


def one_type(file: SymbolFile, shuffle: random.Random) -> list[list[TensorType]]:
    return [[TensorType((1, 8, 4, 4))] * 3 for _ in file.nodes]


def any_types(file: SymbolFile, shuffle: random.Random) -> list[list[TensorType]]:
    shapes = [None, (), (1,), (1, 8), (1, 8, 4, 4), (2**31,), (10**6, 10**6)]
    return [
        [TensorType(shuffle.choice(shapes[: shuffle.randint(1, 7)])) for _ in range(shuffle.randint(0, 3))]
        for _ in file.nodes
    ]


Types = Callable[[SymbolFile, random.Random], list[list[TensorType]]]
types = st.sampled_from([no_types, one_type, any_types])
shuffles = st.randoms(use_true_random=False)


@given(mutated_documents() | damaged_bytes(), types, shuffles)
def test_a_damaged_file_is_a_model_or_refused_in_one_line(data: bytes, answer: Types, shuffle: random.Random) -> None:
    """Read the file as the loader does, and cut the result."""
    try:
        file = parse_symbol(data, "net")
        roles = variable_roles(file, {"data"})
        input_shapes(file, roles, {}, {"data": (1, 3, 8, 8)}, "resnet")
        unknown = frozenset(shuffle.sample(range(len(file.nodes)), shuffle.randint(0, 1)))
        graph = build_graph(file, roles, GraphAnswer(answer(file, shuffle), unknown), "net")
    except ModelError as error:
        assert "\n" not in str(error)
        assert 0 < len(str(error)) < 1_000
        return
    assert parse_symbol(file.render(), "net").heads == file.heads
    for index, layer in enumerate(graph.layers):
        assert layer.index == index
        assert all(feed.layer is None or feed.layer < index for feed in layer.feeds)
        assert len(layer.feeds) == len(layer.data)
    assert decompose(graph, Cutting(3)).occurrences
