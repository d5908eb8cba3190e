"""The authors' published results of 2019: checkouts are read, matched with our models, and imported."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlbricks_tui.bricks.decomposition import decompose
from dlbricks_tui.bricks.identity import whole_model
from dlbricks_tui.folders import SAMPLE_MODELS
from dlbricks_tui.models.graph import LayerGraph, Level
from dlbricks_tui.models.library import Library, ModelSource
from dlbricks_tui.models.loading import Loader
from dlbricks_tui.store import published
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.documents import BrokenDocumentError, ExchangeError
from dlbricks_tui.store.published import (
    RUNTIME,
    PublishedModels,
    Row,
    SystemReport,
    import_checkout,
    parse_numbers,
    rows_of,
    systems_of,
)
from dlbricks_tui.store.records import BrickForm, EndToEnd, Measurement, RuntimeRecord
from dlbricks_tui.store.selections import by_id
from dlbricks_tui.store.statistics import summarise
from tests.bricks.graphs import DATA, Spec, after, built
from tests.models.table_framework import TableFramework
from tests.store.dlbricks_2019.checkouts import time_layers, time_model
from tests.store.samples import counts

# The two relus are one brick, which occurs in both models.
TINY = built(
    [Spec("conv", DATA), Spec("relu", after(0)), Spec("relu", after(1))], ("conv", "1/relu", "2/relu").__getitem__
)
OTHER = built([Spec("relu", DATA), Spec("pool", after(0))], ("act", "pool").__getitem__)
RELU = decompose(TINY).occurrences[1].brick
MODELS = PublishedModels(
    [ModelSource("Tiny Net", Path("tiny"), table1_id="1"), ModelSource("Other Net", Path("other"), table1_id="2")],
    lambda source: TINY if source.name == "Tiny Net" else OTHER,
)


def test_a_checkout_has_a_folder_for_each_system_and_a_file_for_each_model(tmp_path: Path) -> None:
    for system in ("c5.xlarge", "c4.xlarge"):
        time_model(tmp_path, system, "Big Net", [2.5e6])
        layers = time_layers(tmp_path, system, "Tiny Net", {"a/conv": [10.0, 11.0], "2": [5.0]})
    (tmp_path / "data" / "mxnet_model" / "README.md").write_text("not a system")
    (tmp_path / "data" / "mxnet_model" / "c5.xlarge" / "notes.txt").write_text("no times")
    # Columns are found by their names; byte order marks and foreign line ends are accepted.
    layers.write_bytes(b"\xef\xbb\xbf" + layers.read_bytes().replace(b"\n", b"\r\n"))
    time_model(tmp_path, "c9.xlarge", "Big Net", []).write_text('raw_time,extra,name\n"{7.}",,Big Net\n')
    several = time_layers(tmp_path, "m5.large", "Tiny Net", {"1": [1.0]})
    several.write_text(several.read_text().replace('"1","1","1"', '"1","3","1;3"'))
    found = {
        system: {path.name: rows_of(path, columns) for path, columns in files}
        for system, files in systems_of(tmp_path).items()
    }
    both = {
        "Big_Net.csv": [Row(2, "Big Net", None, "{2.5*^6}")],
        "Tiny_Net.csv": [Row(2, "Tiny Net", "a/conv", "{10., 11.}"), Row(3, "Tiny Net", "2", "{5.}")],
    }
    assert found == {
        "c4.xlarge": both,
        "c5.xlarge": both,
        "c9.xlarge": {"Big_Net.csv": [Row(2, "Big Net", None, "{7.}")]},
        # A row of several layers is of no single one.
        "m5.large": {"Tiny_Net.csv": [Row(2, "Tiny Net", "1 ... 3", "{1.}")]},
    }


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"", "has no column name and no raw_time"),
        (b'"id","name"\n1,"Tiny Net"\n', "has no column raw_time"),
        (b'name,raw_time\n"Tiny Net","{1., 2.', "is not a table of comma-separated values: unexpected end of data"),
        (b'name,raw_time\n"Tiny Net"', "ends in the middle of line 2"),
        (b'name,raw_time\n"' + b"x" * 200_000 + b'","{1.}"\n', "field larger than field limit"),
        (b"name,raw_time\n\xff\xfe,{1.}\n", "is not text"),
        (b"x" * 600_000, "is larger than"),
    ],
)
def test_a_file_in_another_layout_counts_as_broken(
    tmp_path: Path, content: bytes, complaint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(published, "_MOST_BYTES", 500_000)
    time_model(tmp_path, "a", "Tiny Net", [1.0]).write_bytes(content)
    ((file,),) = systems_of(tmp_path).values()
    with pytest.raises(BrokenDocumentError, match=complaint):
        rows_of(*file)


def test_a_pipe_is_refused_without_waiting(tmp_path: Path) -> None:
    folder = time_model(tmp_path, "a", "Tiny Net", [1.0]).parent
    os.mkfifo(folder / "pipe.csv")
    (folder / "folder.csv").mkdir()
    (folder / "gone.csv").symlink_to(folder / "nowhere")
    (files,) = systems_of(tmp_path).values()
    assert len(files) == 4
    for path, columns in files:
        if path.name != "Tiny_Net.csv":
            with pytest.raises(BrokenDocumentError, match="cannot be read"):
                rows_of(path, columns)


@given(st.binary() | st.text(alphabet='name,raw_time"\n\r{}.1 \x00').map(str.encode))
def test_any_bytes_give_rows_or_a_broken_file(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "any.csv"
    path.write_bytes(content)
    try:
        assert all(row.line > 1 for row in rows_of(path, ("name", "raw_time")))
    except BrokenDocumentError as broken:
        assert str(broken)


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        (" { } ", ()),
        ("{17857., 155.5667, .5, 12}", (17857.0, 155.5667, 0.5, 12.0)),
        ("{1.*^6, 1.571141*^6, 2.5*^-3, 1*^+2}", (1e6, 1571141.0, 0.0025, 100.0)),
        ("{-1., -2.5*^6, +3.}", (-1.0, -2.5e6, 3.0)),
        ("{1.5`, 2.25`15.95*^3}", (1.5, 2250.0)),
        ("{1.,\n 2.}", (1.0, 2.0)),
        ("", "is not in braces"),
        ("{1., 2.", "is not in braces"),
        ("{1., , 2.}", "has '' for a number"),
        ("{1. 2.}", "has '1. 2.' for a number"),
        ("{1., $Failed}", "has '\\$Failed' for a number"),
        ("{1e6}", "has '1e6' for a number"),
        ("{nan}", "has 'nan' for a number"),
        ("{1_000.}", "has '1_000.' for a number"),
        ("{\u0661.}", "for a number"),
        ("{" + "x" * 1000 + "}", "has '" + "x" * 40 + "' for a number"),
    ],
)
def test_lists_are_read_as_wolfram_prints_them_and_others_refused(text: str, numbers: tuple[float, ...] | str) -> None:
    if isinstance(numbers, tuple):
        assert parse_numbers(text) == numbers
    else:
        with pytest.raises(BrokenDocumentError, match=numbers):
            parse_numbers(text)


@pytest.mark.parametrize(
    ("name", "is_found"),
    [
        ("tiny_net_v1.1_a-to-b", True),
        ("“Tiny Net” V1.1, A to B", True),
        ("Tiny Net V1.2 (A-to-B)", False),
        ("Tiny", False),
        ("", False),
        ("\x00", False),
        # Only models of Table 1 were published.
        ("resnet50_v1", False),
    ],
)
def test_a_model_is_found_with_any_punctuation_in_its_name_and_read_once(name: str, is_found: bool) -> None:
    read: list[str] = []

    def load(asked: ModelSource) -> LayerGraph:
        read.append(asked.name)
        return TINY

    own = ModelSource("resnet50_v1", Path("somewhere"))
    models = PublishedModels([ModelSource("Tiny Net V1.1 (A-to-B)", Path("somewhere"), table1_id="1"), own], load)
    assert read == []
    found = models.find(name)
    assert (found is not None) == is_found and models.find(name) is found
    assert read == ["Tiny Net V1.1 (A-to-B)"] * is_found
    if found is not None:
        assert found.key == whole_model(TINY).key
        # Layers have exact names, with or without quotes.
        assert found.brick("1/relu") == found.brick(' "1" / "relu"') == RELU
        assert found.brick("CONV") is None


@pytest.mark.parametrize(
    ("published", "number"),
    [
        ("ResNet-101 Trained on YFCC100m Geotagged Data", "12"),
        ("Unguided Volumetric Regression Net for 3D Face Reconstruction", "47"),
    ],
)
def test_names_that_differ_from_the_paper_are_known(tmp_path: Path, published: str, number: str) -> None:
    library = Library(SAMPLE_MODELS, tmp_path)
    found = PublishedModels(library.samples(), Loader(tmp_path, TableFramework()).load).find(published)
    assert found is not None and found.name == library.find(f"table1:{number}")[0].name


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Both models on one system, and one of them on another."""
    checkout = tmp_path / "checkout"
    time_model(checkout, "c5.xlarge", "Tiny Net", [60.0, 61.0])
    time_layers(checkout, "c5.xlarge", "Tiny Net", {"conv": [40.0], "1/relu": [10.0], "2/relu": [12.0]})
    time_model(checkout, "c5.xlarge", "Other Net", [30.0])
    time_layers(checkout, "c5.xlarge", "Other Net", {"act": [14.0], "pool": [2.5e6]})
    time_layers(checkout, "c4.xlarge", "Tiny Net", {"conv": [80.0]})
    return checkout


@pytest.fixture
def store(tmp_path: Path) -> ResultsDatabase:
    """An empty store."""
    return ResultsDatabase(tmp_path / "store")


def imported(store: ResultsDatabase, checkout: Path) -> dict[str, SystemReport]:
    return {report.system: report for report in import_checkout(store, checkout, MODELS)}


def measurements(store: ResultsDatabase, **fields: str) -> list[Measurement]:
    found = store.records(Measurement)
    return [each for each in found if all(getattr(each, name) == value for name, value in fields.items())]


def test_a_checkout_is_imported_whole_counted_by_system_and_once(store: ResultsDatabase, checkout: Path) -> None:
    time_model(checkout, "x9.huge", "Tiny Net", [1.0])
    report = imported(store, checkout)
    new = {"c4.xlarge": 1, "c5.xlarge": 7, "x9.huge": 1}
    assert {name: (each.new, each.known) for name, each in report.items()} == {name: (new[name], 0) for name in new}
    assert report["c5.xlarge"].by_layers == report["c5.xlarge"].end_to_end == {"Tiny Net", "Other Net"}
    # Every occurrence of a brick is a measurement of it.
    found = measurements(store, brick=RELU.key, system="c5.xlarge")
    assert {(each.occurrence, each.samples_ms) for each in found} == {
        ((("model", "Tiny Net"), ("layer", "1/relu")), (0.010,)),
        ((("model", "Tiny Net"), ("layer", "2/relu")), (0.012,)),
        ((("model", "Other Net"), ("layer", "act")), (0.014,)),
    }
    assert BrickForm(key=RELU.key, canonical=RELU.canonical) in store.records(BrickForm)
    # Published layers have no context, and the facts known of 2019.
    (one,) = measurements(store, system="c4.xlarge")
    assert (one.context, one.level, one.protocol, one.runtime, one.batch_size, one.dtype) == (
        *("", Level.WRITTEN, "dlbricks-2019", "mxnet-2019-wolfram", 1, "float32"),
    )
    assert one.good and one.statistics == summarise([0.080])
    assert store.records(RuntimeRecord) == [RUNTIME]
    # Times above a million are microseconds, too.
    (pool,) = [each for each in measurements(store) if ("layer", "pool") in each.occurrence]
    assert pool.samples_ms == (2500.0,)
    # A whole model is found by its key and by our name.
    whole = {each.name: each for each in store.records(EndToEnd) if each.system == "c5.xlarge"}
    assert whole.keys() == {"Tiny Net", "Other Net"}
    assert (whole["Tiny Net"].model, whole["Tiny Net"].samples_ms) == (whole_model(TINY).key, (0.060, 0.061))
    # Systems are described by their instance type.
    systems = by_id(store.systems())
    assert {name: (it.cores, it.memory_bytes / 2**30, it.instance_type) for name, it in systems.items()} == {
        "c4.xlarge": (4, 7.5, "c4.xlarge"),
        "c5.xlarge": (4, 8.0, "c5.xlarge"),
        "x9.huge": (0, 0.0, "x9.huge"),
    }
    assert systems["x9.huge"].cpu == "unknown"
    before, again = counts(store), imported(store, checkout)
    assert {name: (each.new, each.known) for name, each in again.items()} == {name: (0, new[name]) for name in new}
    assert counts(store) == before
    # Other times for a layer are stored beside the existing ones.
    time_layers(checkout, "c4.xlarge", "Tiny Net", {"conv": [81.0]})
    assert imported(store, checkout)["c4.xlarge"].new == 1
    assert {each.samples_ms for each in measurements(store, system="c4.xlarge")} == {(0.080,), (0.081,)}


def test_rows_that_fit_no_layer_are_listed_and_the_others_imported(store: ResultsDatabase, tmp_path: Path) -> None:
    time_layers(tmp_path, "c5.xlarge", "Tiny Net", {"conv": [40.0], "3/relu": [1.0], "x" * 5000: [2.0]})
    report = imported(store, tmp_path)["c5.xlarge"]
    assert report.new == 1
    assert [(row.line, row.model, row.layer, row.reason) for row in report.unmatched] == [
        (3, "Tiny Net", "3/relu", "is not a layer of it here"),
        (4, "Tiny Net", "x" * 120, "is not a layer of it here"),
    ]
    assert str(report.unmatched[0]) == (
        "data/mxnet_layer_sequence/seq_0/c5.xlarge/Tiny_Net.csv line 3: Tiny Net: layer '3/relu' is not a layer of it "
        "here"
    )


@pytest.mark.parametrize(
    ("times", "reason"),
    [
        ("{}", "has no times"),
        ("{1., -2.}", "has a negative or infinite time"),
        ("{1.*^999}", "has a negative or infinite time"),
        ("$Failed", "has times that cannot be read: the list is not in braces"),
        ("{" + "1., " * 1000 + "1.}", "has 1001 times, more than the 1000 that can be taken"),
    ],
)
def test_rows_without_usable_times_are_listed(store: ResultsDatabase, tmp_path: Path, times: str, reason: str) -> None:
    path = time_layers(tmp_path, "c5.xlarge", "Tiny Net", {"conv": [40.0], "1/relu": [7.0]})
    path.write_text(path.read_text().replace("{40.}", times))
    report = imported(store, tmp_path)["c5.xlarge"]
    assert (report.new, [row.reason for row in report.unmatched]) == (1, [reason])


def test_models_outside_table_1_are_counted_by_name(store: ResultsDatabase, checkout: Path) -> None:
    time_layers(checkout, "c5.xlarge", "LeNet", {"1": [1.0], "2": [1.0]})
    time_model(checkout, "c5.xlarge", "LeNet", [2.0])
    time_model(checkout, "g4dn.xlarge", "LeNet", [2.0])
    found = imported(store, checkout)
    assert (found["c5.xlarge"].outside, found["g4dn.xlarge"].outside) == ({"LeNet": 3}, {"LeNet": 1})
    assert (found["c5.xlarge"].new, found["c5.xlarge"].unmatched, found["c5.xlarge"].broken) == (7, [], [])
    # A system without usable rows is not stored.
    assert set(by_id(store.systems())) == {"c4.xlarge", "c5.xlarge"}


def test_a_broken_file_is_named_and_skipped(store: ResultsDatabase, checkout: Path) -> None:
    path = time_layers(checkout, "c5.xlarge", "Tiny Net", {"conv": [40.0], "1/relu": [10.0]})
    path.write_bytes(path.read_bytes()[:-9])
    report = imported(store, checkout)["c5.xlarge"]
    (named,) = report.broken
    assert named == "data/mxnet_layer_sequence/seq_0/c5.xlarge/Tiny_Net.csv ends in the middle of line 3"
    # Nothing of it is imported: its rows would pass for the whole model.
    assert (report.by_layers, report.new) == ({"Other Net"}, 4)


def test_nul_bytes_do_not_reach_the_store(store: ResultsDatabase, checkout: Path) -> None:
    path = time_layers(checkout, "c5.xlarge", "Tiny Net", {"conv": [40.0], "1/relu": [10.0], "co~nv": [3.0]})
    # Not every Python writes such a file.
    path.write_bytes(path.read_bytes().replace(b"~", b"\x00"))
    report = imported(store, checkout)["c5.xlarge"]
    assert len(report.broken) + len(report.unmatched) == 1
    assert b"\\u0000" not in (store.storage.folder / "journal-0.jsonl").read_bytes()


@pytest.mark.parametrize("made", [[], ["data/mxnet_model"], ["mxnet_model/c5.xlarge"]])
def test_a_folder_that_is_not_a_checkout_is_refused_with_advice(
    store: ResultsDatabase, tmp_path: Path, made: list[str]
) -> None:
    for folder in made:
        (tmp_path / "checkout" / folder).mkdir(parents=True)
    with pytest.raises(
        ExchangeError, match=r"has no folder data/mxnet_model/SYSTEM .*: name a checkout of github.com/"
    ):
        imported(store, tmp_path / "checkout")
