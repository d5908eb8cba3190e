"""Tests of the output of commands on terminals, into pipes, and with few characters."""

import io
import sys

import pytest
from rich import table as rich_table

from dlbricks_tui.cli.output import data_console, forget_remarks, narrate, narrate_once, show, write, write_json
from dlbricks_tui.cli.rendering import show_parts
from dlbricks_tui.documents.parts import Column, Table, bar_column, name_column


class Terminal(io.StringIO):
    """A standard output that is a terminal."""

    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("COLUMNS", "NO_COLOR", "FORCE_COLOR", "CLICOLOR_FORCE", "TTY_COMPATIBLE", "COLORTERM"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")


def watched(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    # Not a fixture: pytest puts its own stream back between a fixture and its test.
    stream = Terminal()
    monkeypatch.setattr(sys, "stdout", stream)
    return stream


def names(name: str) -> rich_table.Table:
    table = rich_table.Table("model", "layers", style="red")
    table.add_row(name, "174")
    return table


def test_json_is_one_document_on_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    write_json({"layers": 174, "speedup": None, "name": "r\u00e9seau\n"})
    assert capsys.readouterr().out == '{"layers": 174, "speedup": null, "name": "r\\u00e9seau\\n"}\n'


def test_infinite_numbers_are_refused_in_json() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_json({"latency_ms": float("nan")})


def test_a_pipe_gets_whole_names_and_no_colours(capsys: pytest.CaptureFixture[str]) -> None:
    show(names("x" * 300))
    out = capsys.readouterr().out
    assert "x" * 300 in out
    assert "\x1b" not in out


def test_a_pipe_gets_no_trailing_blanks(capsys: pytest.CaptureFixture[str]) -> None:
    table = rich_table.Table("model", "task", box=None)
    table.add_row("resnet50_v1", "")
    table.add_row("vgg16", "classification")
    show(table)
    lines = capsys.readouterr().out.split("\n")
    assert [line.split() for line in lines[1:]] == [["resnet50_v1"], ["vgg16", "classification"], []]
    assert lines == [line.rstrip() for line in lines]


def test_a_terminal_gets_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = watched(monkeypatch)
    show(names("vgg16"))
    assert "\x1b[31m" in terminal.getvalue()


def test_no_color_is_respected(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = watched(monkeypatch)
    monkeypatch.setenv("NO_COLOR", "1")
    show(names("vgg16"))
    assert "vgg16" in terminal.getvalue()
    assert "\x1b[31m" not in terminal.getvalue()


def test_the_variable_columns_sets_the_width(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    assert data_console().width == 40
    show(names("x" * 300))
    assert {len(line) for line in capsys.readouterr().out.splitlines()} == {40}


def test_brackets_and_colons_in_names_are_printed_as_text(capsys: pytest.CaptureFixture[str]) -> None:
    show("[red]conv[0] :smile:")
    assert capsys.readouterr().out == "[red]conv[0] :smile:\n"


def test_characters_that_the_terminal_lacks_are_spelled_out(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="ascii"))
    write("r\u00e9seau \udc80\n")
    assert raw.getvalue() == b"r\\xe9seau \\udc80\n"


def test_narration_goes_to_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    narrate("2 layers cannot be measured")
    assert capsys.readouterr() == ("", "2 layers cannot be measured\n")


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
