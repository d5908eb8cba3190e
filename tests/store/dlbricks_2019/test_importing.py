from pathlib import Path

import pytest

from dlbricks_tui.bricks.decomposition import decompose
from dlbricks_tui.bricks.identity import whole_model
from dlbricks_tui.models.graph import Level
from dlbricks_tui.models.library import ModelSource
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.dlbricks_2019.checkout import PublishedModels
from dlbricks_tui.store.dlbricks_2019.results import RUNTIME, SystemReport, import_checkout
from dlbricks_tui.store.errors import ExchangeError
from dlbricks_tui.store.records import BrickForm, EndToEnd, Measurement, RuntimeRecord
from dlbricks_tui.store.selections import by_id
from dlbricks_tui.store.statistics import summarise
from tests.bricks.graphs import DATA, Spec, after, built
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
    report = imported(store, checkout)
    assert {name: (each.new, each.known) for name, each in report.items()} == {"c4.xlarge": (1, 0), "c5.xlarge": (7, 0)}
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
    whole = {each.name: each for each in store.records(EndToEnd)}
    assert whole.keys() == {"Tiny Net", "Other Net"}
    assert (whole["Tiny Net"].model, whole["Tiny Net"].samples_ms) == (whole_model(TINY).key, (0.060, 0.061))
    before = counts(store)
    again = imported(store, checkout)
    assert {name: (each.new, each.known) for name, each in again.items()} == {"c4.xlarge": (0, 1), "c5.xlarge": (0, 7)}
    assert counts(store) == before


def test_systems_are_described_by_their_instance_type(store: ResultsDatabase, checkout: Path) -> None:
    time_model(checkout, "x9.huge", "Tiny Net", [1.0])
    imported(store, checkout)
    found = by_id(store.systems())
    assert {name: (each.cores, each.memory_bytes / 2**30, each.instance_type) for name, each in found.items()} == {
        "c4.xlarge": (4, 7.5, "c4.xlarge"),
        "c5.xlarge": (4, 8.0, "c5.xlarge"),
        "x9.huge": (0, 0.0, "x9.huge"),
    }
    assert found["x9.huge"].cpu == "unknown"


def test_other_times_for_a_layer_are_stored_beside_the_existing_ones(store: ResultsDatabase, checkout: Path) -> None:
    imported(store, checkout)
    time_layers(checkout, "c4.xlarge", "Tiny Net", {"conv": [81.0]})
    # A model without a file of layers keeps its end-to-end time.
    time_model(checkout, "c4.xlarge", "Other Net", [60.0])
    report = imported(store, checkout)["c4.xlarge"]
    assert (report.new, report.end_to_end, report.by_layers) == (2, {"Other Net"}, {"Tiny Net"})
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
    assert report.by_layers == {"Other Net"}
    assert report.new == 4


def test_nul_bytes_do_not_reach_the_store(store: ResultsDatabase, checkout: Path) -> None:
    path = time_layers(checkout, "c5.xlarge", "Tiny Net", {"conv": [40.0], "1/relu": [10.0], "co~nv": [3.0]})
    # Not every Python writes such a file.
    path.write_bytes(path.read_bytes().replace(b"~", b"\x00"))
    assert b"\x00" in path.read_bytes()
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
