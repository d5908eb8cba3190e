"""Commands write JSON, and tables for pipes and terminals; control codes in names reach neither."""

import csv
import io
import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from onnx import ModelProto, TensorProto
from onnx.helper import make_graph, make_model, make_node, make_opsetid, make_tensor_value_info
from rich import table as rich_table
from rich.text import Text

from benchmarks.terminal import Terminal
from dlbricks_tui.cli.main import main
from dlbricks_tui.cli.output import forget_remarks, narrate_once, show, show_parts, write, write_json
from dlbricks_tui.documents.parts import Column, Table, bar_column, name_column
from dlbricks_tui.measure.method import Method
from dlbricks_tui.printable import shell_words
from dlbricks_tui.store.database import ResultsDatabase
from tests.store.samples import end_to_end, form, load_test, measurement, runtime, system


class Screen(io.StringIO):
    """A standard output that is a terminal."""

    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("COLUMNS", "NO_COLOR", "FORCE_COLOR", "CLICOLOR_FORCE", "TTY_COMPATIBLE", "COLORTERM"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")


def watched(monkeypatch: pytest.MonkeyPatch) -> Screen:
    # Not a fixture: pytest puts its own stream back between a fixture and its test.
    stream = Screen()
    monkeypatch.setattr(sys, "stdout", stream)
    return stream


def test_json_is_one_document_on_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    write_json({"layers": 174, "speedup": None, "name": "r\u00e9seau\n"})
    assert capsys.readouterr().out == '{"layers": 174, "speedup": null, "name": "r\\u00e9seau\\n"}\n'


def test_a_pipe_gets_no_trailing_blanks_and_no_colours(capsys: pytest.CaptureFixture[str]) -> None:
    table = rich_table.Table("model", "task", box=None, style="red")
    table.add_row("resnet50_v1", "")
    table.add_row("vgg16", "classification")
    show(table)
    lines = capsys.readouterr().out.split("\n")
    assert [line.split() for line in lines[1:]] == [["resnet50_v1"], ["vgg16", "classification"], []]
    assert lines == [line.rstrip() for line in lines]


def test_a_terminal_gets_colours_unless_no_color_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal, red = watched(monkeypatch), "\x1b[31m"
    show(Text("vgg16", "red"))
    assert red in terminal.getvalue()
    monkeypatch.setenv("NO_COLOR", "1")
    terminal.truncate(0)
    show(Text("vgg16", "red"))
    assert "vgg16" in terminal.getvalue() and red not in terminal.getvalue()


def test_brackets_and_colons_in_names_are_printed_as_text(capsys: pytest.CaptureFixture[str]) -> None:
    show("[red]conv[0] :smile:")
    assert capsys.readouterr().out == "[red]conv[0] :smile:\n"


def test_characters_that_the_terminal_lacks_are_spelled_out(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="ascii"))
    write("r\u00e9seau \udc80\n")
    assert raw.getvalue() == b"r\\xe9seau \\udc80\n"


@pytest.mark.parametrize("name", ["caf\u00e9 \udcff.onnx", "it's\n\\x1b\x1b", "\u2028"])
def test_names_that_cannot_be_printed_reach_a_shell_whole(name: str) -> None:
    shown = shell_words(["printf", "%s", name])
    assert shown.isprintable() and subprocess.check_output(["bash", "-c", shown]) == os.fsencode(name)


def test_a_remark_is_made_once_by_a_command(capsys: pytest.CaptureFixture[str]) -> None:
    for _ in range(2):
        forget_remarks()
        for remark in ("inputs as given before", "the host is busy", "inputs as given before"):
            narrate_once(remark)
        assert capsys.readouterr().err == "inputs as given before\nthe host is busy\n"


def test_in_ascii_bars_and_cut_names_keep_their_width(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "22")
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="ascii"))
    columns: tuple[Column[str], ...] = name_column("layer", str), Column("ms", lambda _: "1.5")
    show_parts([Table(columns, ["a_long_name_of_a_layer"])])
    show_parts([Table((*columns, bar_column(lambda _: 1.0)), ["conv"])], 20)
    assert raw.getvalue().decode().splitlines() == [
        "LAYER               MS",
        "a_long_name_of_a.  1.5",
        "LAYER   MS",
        "conv   1.5  ########",
    ]


# A title of the window, a wiped screen, a forged line, an 8-bit control code and a reversed reading direction.
HOSTILE = "n\x1b]0;owned\x07\x1b[2J\r\nforged\x9b2J\u202e\x7f"
SPELLED = r"n\x1b]0;owned\x07\x1b[2J\r\nforged\x9b2J\u202e\x7f"
_TEXTS_OF_LOAD_TESTS = ("model", "name", "system", "runtime")
_END = "the end of a command"
# Runs each of some command lines as `python -m dlbricks_tui` does.
_IN_TURN = f"""
import contextlib, json, sys
from dlbricks_tui.__main__ import main

for line in json.loads(sys.argv[1]):
    sys.argv = ["dlbricks", *line]
    with contextlib.suppress(SystemExit):
        main()
    print("{_END}", flush=True)
"""
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def hostile_model() -> ModelProto:
    """A model with control codes in every name."""
    nodes = [
        make_node("Relu", [f"x{HOSTILE}"], [f"r{HOSTILE}"], name=f"relu{HOSTILE}", doc_string=HOSTILE),
        make_node(f"Op{HOSTILE}", [f"r{HOSTILE}"], [f"y{HOSTILE}"], name=f"op{HOSTILE}", domain=HOSTILE),
    ]
    graph = make_graph(
        nodes,
        f"graph{HOSTILE}",
        [make_tensor_value_info(f"x{HOSTILE}", TensorProto.FLOAT, (1, 3, 8, 8))],
        [make_tensor_value_info(f"y{HOSTILE}", TensorProto.FLOAT, (1, 3, 8, 8))],
    )
    opsets = [make_opsetid("", 13), make_opsetid(HOSTILE, 1)]
    return make_model(graph, opset_imports=opsets, ir_version=8, producer_name=HOSTILE, doc_string=HOSTILE)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with a hostile model under a hostile name, and a data folder with hostile results."""
    (tmp_path / f"{HOSTILE}.onnx").write_bytes(hostile_model().SerializeToString())
    with ResultsDatabase(tmp_path / "data" / "store") as store:
        store.add(
            system(HOSTILE, cpu=HOSTILE),
            runtime(HOSTILE),
            form(0, "conv"),
            measurement(system=HOSTILE, runtime=HOSTILE, context=HOSTILE, run=HOSTILE),
            load_test(uuid="1d" * 16, valid=False, **dict.fromkeys(_TEXTS_OF_LOAD_TESTS, HOSTILE), reasons=(HOSTILE,)),
            replace(end_to_end(), model=HOSTILE, system=HOSTILE, runtime=HOSTILE, protocol=Method.ALONE.id),
        )
    return tmp_path


def commands(place: Path) -> dict[str, tuple[str, ...]]:
    """Every kind of output: tables, trees, documents, CSV, narration and errors."""
    model = str(place / f"{HOSTILE}.onnx")
    return {
        "add": ("models", "add", str(place)),
        "models": ("models",),
        "models of a pipe": ("models", "--json"),
        "tree": ("tree", model),
        "tree of layers": ("tree", model, "--level", "written"),
        "tree of a pipe": ("tree", model, "--json"),
        "corpus": ("corpus", model, "table1:1"),
        "estimate": ("estimate", model),
        "list": ("results", "list"),
        "list of all": ("results", "list", "--columns", "name,system,runtime,context,model,run"),
        "csv": ("results", "list", "--csv"),
        "json": ("results", "list", "--json"),
        "lines": ("results", "list", "--jsonl"),
        "show": ("results", "show", measurement().brick[:12]),
        "show a load test": ("results", "show", "1d1d"),
        "scenario": ("scenario", model, "--kind", "single", "--predict", "--system", HOSTILE),
        "systems": ("systems",),
        "no file": ("tree", f"{model}{HOSTILE}"),
        "no command": (f"no{HOSTILE}",),
        "no filter": ("results", "list", HOSTILE),
    }


def control_codes(written: str) -> set[str]:
    """The characters that no terminal prints, apart from colours and the ends of lines."""
    return {char for char in _COLOUR.sub("", written).replace("\r\n", "\n") if not char.isprintable()} - {"\n"}


def test_no_command_lets_a_name_control_a_terminal(place: Path) -> None:
    # Starting a process for each would take most of the time.
    lines = [["--data-dir", str(place / "data"), *arguments] for arguments in commands(place).values()]
    terminal = Terminal([sys.executable, "-c", _IN_TURN, json.dumps(lines)], (100, 30), {"TERM": "xterm-256color"})
    terminal.wait(patience=120)
    *each, rest = terminal.written.decode().split(_END)
    terminal.close()
    assert rest.strip() == ""
    for name, written in zip(commands(place), each, strict=True):
        assert written.strip() and "fault of dlbricks" not in written, (name, written)
        assert control_codes(written) == set(), (name, written)
        assert not any(line.startswith("forged") for line in written.splitlines()), (name, written)
    assert r"\x1b]0;owned" in "".join(each)


def test_no_command_writes_control_codes_to_a_pipe(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, arguments in commands(place).items():
        main(["--data-dir", str(place / "data"), *arguments])
        written = capsys.readouterr()
        assert written.out or written.err, name
        assert control_codes(written.out) == control_codes(written.err) == set(), name
        if name == "csv":
            header, *rows = csv.reader(io.StringIO(written.out))
            assert [row[header.index("system")] for row in rows] == [SPELLED, SPELLED]
