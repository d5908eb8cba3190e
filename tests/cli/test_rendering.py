"""Documents on terminals with few characters."""

import io
import sys

import pytest

from dlbricks_tui.cli.rendering import show_parts
from dlbricks_tui.documents.parts import Column, Table, bar_column, name_column


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
