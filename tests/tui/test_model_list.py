from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlbricks_tui.documents.lines import Line, Span, contains_all, highlighted, width_of
from dlbricks_tui.models.library import ModelSource
from dlbricks_tui.tui.open_model import id_of
from dlbricks_tui.tui.workbench.model_columns import (
    COLUMNS,
    FIRST_COLUMNS,
    KnownLatency,
    ListedModel,
    ModelOrder,
    columns_in,
    grouped,
    in_order,
    labels,
    list_rows,
)
from dlbricks_tui.tui.workbench.models import ModelRows, heading_line, row_line, searched_text

RESNET = ModelSource("resnet50_v1", Path("gluon/resnet50_v1-symbol.json"), task="IC", layers=174, unique_layers=46)
SSD = ModelSource("SSD Trained on PASCAL VOC Data", Path("table1/ssd-symbol.json"), task="OD", table1_id="43")
OWN = ModelSource("net", Path("/models/a/net.onnx"))
OTHER = ModelSource("net", Path("/models/b/net.onnx"))
HOUR = 3600.0
NAMES = tuple(each.name for each in COLUMNS)


def text(line: Line) -> str:
    return "".join(span.text for span in line)


def row(
    source: ModelSource,
    width: int,
    latency: KnownLatency | None = None,
    columns: Collection[str] = FIRST_COLUMNS,
    *,
    marked: bool = False,
) -> str:
    return text(
        row_line(
            ListedModel(source.name, source), columns_in(columns), width, marked=marked, latency=latency, now=4 * HOUR
        )
    )


@given(st.integers(24, 130), st.sets(st.sampled_from(NAMES)), st.sampled_from(ModelOrder))
def test_a_row_and_its_heading_take_exactly_their_width(width: int, names: set[str], order: ModelOrder) -> None:
    columns = columns_in(names)
    assert width_of(row_line(ListedModel("resnet50_v1", RESNET), columns, width)) == width
    assert width_of(heading_line(columns, order, width)) == width


def test_columns_are_shown_as_far_as_they_fit() -> None:
    measured = KnownLatency("24.13", 24.13, 72, 72, since=HOUR)
    assert row(RESNET, 30, measured).split() == ["resnet50_v1", "24.13"]
    assert row(RESNET, 40, measured).split() == ["resnet50_v1", "24.13"]
    assert row(RESNET, 44, measured).split() == ["resnet50_v1", "3", "h", "24.13"]
    assert row(RESNET, 80, measured).split() == ["resnet50_v1", "IC", "174", "26", "%", "3", "h", "24.13"]


def test_the_user_selects_the_columns() -> None:
    measured = KnownLatency(
        "24.13", 24.13, 72, 72, end_to_end_ms=25.0, per_second=41.44, combination="mxnet, 2 threads"
    )
    shown = row(RESNET, 100, measured, ("measured", "format", "per_second", "runtime")).split()
    assert shown == ["resnet50_v1", "MXNet", "mxnet,", "2", "threads", "41.44", "25.00"]
    predicted = replace(measured, predicted=True)
    assert row(RESNET, 60, predicted, ("per_second",)).endswith(" ~41.44")
    assert row(RESNET, 40, measured, ()).strip() == "resnet50_v1"
    assert text(heading_line(columns_in(("age", "estimate")), ModelOrder.AGE, 50)).split()[-2:] == [
        "▾age",
        "ms",
    ]


def test_unknown_values_are_dashes() -> None:
    assert row(replace(RESNET, layers=None), 80).split() == ["resnet50_v1", "IC", "-", "-", "-", "-"]


def test_a_partly_measured_model_shows_its_coverage_instead_of_a_sum() -> None:
    assert row(RESNET, 40, KnownLatency("", None, 43, 72)).endswith(" 60 % run")
    assert row(RESNET, 40, KnownLatency("", None, 999, 1000)).endswith(" 99 % run")
    assert row(RESNET, 40, KnownLatency("", None, 1, 4, possible=False)).endswith(" none")


def test_a_marked_model_has_a_sign() -> None:
    assert row(RESNET, 30, marked=True).startswith("● resnet50_v1")


def test_the_library_has_groups_and_a_family_has_its_common_words_once() -> None:
    cycles = [
        replace(SSD, name=f"CycleGAN {way} Translation", path=Path(f"table1/{way}")) for way in ("A-to-B", "B-to-A")
    ]
    rows = list_rows([SSD, *cycles, RESNET, OWN], ModelOrder.LIBRARY, (), 18, in_groups=True)
    assert [("  " if it.in_family else "") + it.text for it in rows] == [
        "Table 1 of the paper",
        "SSD, PASCAL VOC",
        "CycleGAN …",
        "  A-to-B Translat…",
        "  B-to-A Translat…",
        "Gluon model zoo",
        "resnet50_v1",
        "/models/a",
        "net",
    ]
    assert [it.models for it in rows if it.source is None] == [3, 0, 1, 1]


def test_models_opened_lately_are_the_first_group() -> None:
    groups = grouped([SSD, RESNET, OWN], (id_of(OWN), id_of(OTHER)))
    assert [(name, [it.name for it in members]) for name, members in groups] == [
        ("Opened lately", ["net"]),
        ("Table 1 of the paper", [SSD.name]),
        ("Gluon model zoo", ["resnet50_v1"]),
    ]


def test_a_search_and_a_single_group_need_no_headings() -> None:
    assert [it.source for it in list_rows([SSD, RESNET], ModelOrder.LIBRARY, (), 40, in_groups=False)] == [SSD, RESNET]
    assert [it.source for it in list_rows([SSD], ModelOrder.LIBRARY, (), 40, in_groups=True)] == [SSD]


def test_models_in_many_folders_are_one_group() -> None:
    models = [replace(OWN, name=f"net{it}", path=Path(f"/models/{it}/net.onnx")) for it in range(4)]
    assert [name for name, _ in grouped(models, ())] == ["Your models"]


def test_models_with_one_name_are_told_apart_by_their_folders() -> None:
    deep = ModelSource("net", Path("/else/b/net.onnx"))
    assert labels([OWN, OTHER]) == {id_of(OWN): "net in a", id_of(OTHER): "net in b"}
    assert len(set(labels([OWN, OTHER, deep]).values())) == 3


def test_the_slowest_the_largest_and_the_newest_come_first() -> None:
    latencies = {
        id_of(SSD): KnownLatency("5.00", 5.0, 72, 72, since=2 * HOUR),
        id_of(RESNET): KnownLatency("24.13", 24.13, 72, 72, since=HOUR),
        # A sum of some layers cannot be compared.
        id_of(OWN): KnownLatency("", None, 1, 72),
    }
    models = [OWN, SSD, RESNET]
    assert in_order(models, ModelOrder.TIME, latencies) == [RESNET, SSD, OWN]
    assert in_order(models, ModelOrder.AGE, latencies) == [SSD, RESNET, OWN]
    assert in_order(models, ModelOrder.LAYERS, latencies) == [RESNET, OWN, SSD]
    assert in_order(models, ModelOrder.NAME, latencies) == [OWN, RESNET, SSD]
    assert in_order(models, ModelOrder.LIBRARY, latencies) == models


@pytest.mark.parametrize(
    ("sought", "names"),
    [
        ("", ["resnet50_v1", SSD.name]),
        ("RESNET", ["resnet50_v1"]),
        ("data trained", [SSD.name]),
        ("table1:43", [SSD.name]),
        ("od ssd", [SSD.name]),
        ("gluon/", ["resnet50_v1"]),
        ("resnet ssd", []),
    ],
)
def test_a_search_finds_models_that_contain_every_word(sought: str, names: list[str]) -> None:
    words = sought.casefold().split()
    assert [source.name for source in (RESNET, SSD) if contains_all(searched_text(source), words)] == names


def test_found_words_are_highlighted() -> None:
    matched = [span.text for span in highlighted("resnet50_v1", ["NET", "v1"]) if span.style == "match"]
    assert matched == ["net", "v1"]
    assert text(highlighted("resnet50_v1", ["net", "netw", "t50"])) == "resnet50_v1"


def test_the_cursor_stays_on_its_model_when_a_list_of_another_width_is_drawn_before_it_knows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    by_width = {
        30: [ListedModel("family", None), ListedModel("a", RESNET), ListedModel("b", SSD)],
        80: [ListedModel("b", SSD)],
    }
    width = 30
    monkeypatch.setattr(ModelRows, "line_width", property(lambda _: width + 1))
    rows = ModelRows(by_width.__getitem__, lambda row, _: (Span(row.text),))
    rows.set_reactive(ModelRows.cursor, 2)
    assert (rows.row_count, rows.selected) == (3, SSD)
    width = 80
    assert (rows.row_count, rows.selected) == (1, SSD)
