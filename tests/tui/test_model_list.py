"""The rows of the list of models: groups, columns, and names that differ at any width."""

import string
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from rich.cells import cell_len

from dlbricks_tui.api.open_models import KnownLatency, id_of
from dlbricks_tui.documents.lines import Line, Span, width_of
from dlbricks_tui.folders import SAMPLE_MODELS
from dlbricks_tui.models.library import Library, ModelSource
from dlbricks_tui.tui.model_names import FAMILY_INDENT, LEAST_WIDTH, family_rows, told_apart
from dlbricks_tui.tui.workbench.model_columns import (
    COLUMNS,
    FIRST_COLUMNS,
    SIX,
    ListedModel,
    ListSection,
    ModelGroup,
    ModelOrder,
    columns_in,
    fitting,
    grouped,
    in_order,
    labels,
    list_rows,
    names_room,
    sections_of,
    usually_unfolded,
    whole_names,
)
from dlbricks_tui.tui.workbench.models import ModelRows, heading_line, row_line
from dlbricks_tui.wording.numbers import task_words

RESNET = ModelSource("resnet50_v2", Path("gluon/resnet50_v2-symbol.json"), task="IC", layers=174, unique_layers=46)
SSD = ModelSource("SSD Trained on PASCAL VOC Data", Path("table1/ssd-symbol.json"), task="OD", table1_id="43")
OWN = ModelSource("net", Path("/models/a/net.onnx"))
OTHER = ModelSource("net", Path("/models/b/net.onnx"))
HOUR = 3600.0
UNFOLDED = usually_unfolded(2)
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
    shown = fitting(columns_in(columns), width - 2)
    listed = ListedModel(source.name, source)
    return text(row_line(listed, *shown, width, marked=marked, latency=latency, now=4 * HOUR))


@given(st.integers(24, 130), st.sets(st.sampled_from(NAMES)), st.sampled_from(ModelOrder))
def test_a_row_and_its_heading_take_exactly_their_width(width: int, names: set[str], order: ModelOrder) -> None:
    columns, name_width = fitting(columns_in(names), width - 2)
    assert width_of(row_line(ListedModel("resnet50_v2", RESNET), columns, name_width, width)) == width
    assert width_of(heading_line(columns, order, name_width)) == width


def test_columns_are_shown_as_far_as_they_fit() -> None:
    measured = KnownLatency("24.13", 24.13, 72, 72, since=HOUR, combination="MXNet, 2 threads, batch 1")
    assert row(RESNET, 30, measured).split() == ["resnet50_v2", "24.13"]
    assert row(RESNET, 39, measured).split() == ["resnet50_v2", "24.13"]
    assert row(RESNET, 40, measured).split() == ["resnet50_v2", "3", "h", "24.13"]
    task = ("image", "classification")
    assert row(RESNET, 75, measured).split() == ["resnet50_v2", *task, "MXNet", "3", "h", "24.13"]
    assert row(RESNET, 91, measured).split() == [*("resnet50_v2", "174", "26", "%", *task, "MXNet", "3", "h", "24.13")]
    # A column that does not fit leaves its place to narrower ones.
    assert row(RESNET, 70, measured).split() == ["resnet50_v2", "174", "26", "%", "MXNet", "3", "h", "24.13"]


def test_a_wide_list_drops_columns_rather_than_parts_of_names() -> None:
    long = replace(OWN, name="a name of a model that is longer than others")
    names, columns = (
        whole_names([ListSection(None, [(long.name, long)])], ModelOrder.LIBRARY),
        columns_in(FIRST_COLUMNS),
    )
    assert names == len(long.name)
    assert names_room(names, columns, 78) < names == names_room(names, columns, 89)
    # Beside other panels they are whole where the three most important columns have room.
    assert names_room(names, columns, 75, is_wide=True) == names > names_room(names, columns, 74, is_wide=True)
    assert [it.name for it in fitting(columns_in(FIRST_COLUMNS), 89, len(long.name))[0]] == [
        *("layers", "unique", "runtime", "age", "estimate")
    ]


def test_a_partly_measured_model_shows_its_coverage_instead_of_a_sum() -> None:
    assert row(RESNET, 40, KnownLatency("", None, 43, 72)).endswith(" 60 % run")
    assert row(RESNET, 40, KnownLatency("", None, 999, 1000)).endswith(" 99 % run")
    assert row(RESNET, 40, KnownLatency("", None, 1, 4, possible=False)).endswith(" none")


def test_the_library_has_groups_and_a_family_has_its_common_words_once() -> None:
    cycles = [
        replace(SSD, name=f"CycleGAN {way} Translation", path=Path(f"table1/{way}")) for way in ("A-to-B", "B-to-A")
    ]
    rows = list_rows(sections_of([SSD, *cycles, RESNET, OWN], (), UNFOLDED, 40), ModelOrder.LIBRARY, 18)
    assert [("  " if it.in_family else "") + it.text for it in rows] == [
        "Yours",
        "net",
        "Table 1 of the paper",
        "SSD, PASCAL VOC",
        "CycleGAN …",
        "  A-to-B Translat…",
        "  B-to-A Translat…",
        "Gluon model zoo",
        "resnet50_v2",
        "Language models",
    ]
    # The heading of the family cannot be unfolded.
    assert [it.group for it in rows if it.source is None] == [
        *(ModelGroup.OWN, ModelGroup.TABLE_1, None, ModelGroup.GLUON, ModelGroup.LANGUAGE)
    ]


def test_the_six_to_try_span_tasks_and_formats_and_keep_their_order() -> None:
    samples = Library(SAMPLE_MODELS, Path("/nowhere")).samples()
    groups = grouped(samples, ())
    six = groups[ModelGroup.TO_TRY]
    assert tuple(it.name for it in six) == SIX
    assert len({it.task for it in six}) == 5 and len({it.formats for it in six}) == 2
    assert [len(groups[it]) for it in (ModelGroup.TABLE_1, ModelGroup.GLUON, ModelGroup.ONNX)] == [49, 32, 5]
    assert all(" " in task_words(it.task) or it.task == "RG" for it in samples)
    # One that was opened lately is not repeated.
    assert sections_of(samples, [id_of(six[0])], UNFOLDED, 0)[2].heading == ListedModel(
        "Five to try", None, group=ModelGroup.TO_TRY
    )


def test_models_of_several_folders_have_the_folders_as_headings_unless_these_are_many() -> None:
    models = [replace(OWN, name=f"net{it}", path=Path(f"/models/{it % 2}/net.onnx")) for it in range(4)]
    rows = list_rows(sections_of(models, (), UNFOLDED, 0), ModelOrder.LIBRARY, 40)
    assert [it.text for it in rows] == ["Yours", "/models/0", "net0", "net2", "/models/1", "net1", "net3"]
    scattered = [replace(OWN, name=f"net{it}", path=Path(f"/models/{it}/net.onnx")) for it in range(4)]
    rows = list_rows(sections_of(scattered, (), UNFOLDED, 0), ModelOrder.LIBRARY, 40)
    assert [it.text for it in rows] == ["Yours", "net0", "net1", "net2", "net3"]


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


# Names with common beginnings, wide characters and control codes.
ANY_NAMES = st.lists(
    st.lists(st.sampled_from(["CycleGAN", "Trained on", "ImageNet", "模型", "a", "b", "\n", "x" * 30]), min_size=1).map(
        " ".join
    )
    | st.text(max_size=60)
    | st.text(string.ascii_letters + "_-. ", max_size=40),
    unique=True,
    max_size=12,
)
LIBRARY = [it.name for it in Library(SAMPLE_MODELS, SAMPLE_MODELS.parent / "none").samples()]


@given(ANY_NAMES, st.integers(LEAST_WIDTH, 50))
@example(["A Trained on B", "A, B"], 40)
@example(["a" * 50, "a" * 51, "a" * 52, "a" * 49 + "#1"], LEAST_WIDTH)
def test_different_names_look_different_at_any_width(names: list[str], width: int) -> None:
    shown = told_apart(names, width)
    assert len(set(shown)) == len(names)
    assert all(cell_len(text) <= width and text.isprintable() for text in shown)


@given(ANY_NAMES, st.integers(LEAST_WIDTH + FAMILY_INDENT, 50))
def test_different_names_look_different_below_the_heads_of_their_families(names: list[str], width: int) -> None:
    rows = family_rows(names, width)
    assert [row.place for row in rows if row.place is not None] == list(range(len(names)))
    head, seen = "", list[tuple[str, str]]()
    for row in rows:
        assert cell_len(row.text) + (FAMILY_INDENT if row.in_family else 0) <= width
        if row.place is None:
            head = row.text
        else:
            seen.append((head if row.in_family else "", row.text))
    assert len(set(seen)) == len(names)


def test_a_name_keeps_the_part_where_it_differs() -> None:
    ages = [name for name in LIBRARY if name.startswith("Age")]
    assert told_apart(ages, 24) == ["Age Esti…IMDB-WIKI and …", "Age Estimation…IMDB-WIKI"]
    assert told_apart(["resnet50_v1", "a short name"], 24) == ["resnet50_v1", "a short name"]
