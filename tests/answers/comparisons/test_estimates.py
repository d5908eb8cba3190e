from pathlib import Path
from typing import Any

import pytest

from dlbricks_tui.answers.changes import Estimates
from dlbricks_tui.answers.sides import Found, Side, side_of
from dlbricks_tui.bricks.decomposition import decompose
from dlbricks_tui.estimate.inquiry import Inquiry
from dlbricks_tui.folders import SAMPLE_MODELS
from dlbricks_tui.models.library import Library
from dlbricks_tui.models.loading import Loader
from dlbricks_tui.store.records import Record
from tests.estimate.stored import brick_records, model_record, store_of
from tests.estimate.table1 import NoFramework, table1
from tests.store.samples import runtime, system

CAPSNET = decompose(table1()["4"])
WAY: dict[str, Any] = {"system": "here", "runtime": "mxnet-1.5.1"}
DEFINITIONS: tuple[Record, ...] = (system("here"), runtime("mxnet-1.5.1"))
WHOLE = model_record(CAPSNET, 30.0, **WAY)


def estimate_of(folder: Path, side: Side, **known: Any) -> float | None:
    """The estimate of the model that a side has timed."""
    sources = {it.name: it for it in Library(SAMPLE_MODELS, Path("nowhere")).find("table1:4")}
    loader = Loader(folder / "cache", NoFramework())
    timed: Found = next(it for it in side.results if it.subject.is_model)
    return Estimates([side], known.get("sources", sources), lambda _: loader).of(timed)


def test_estimates_are_those_of_the_store(tmp_path: Path) -> None:
    records = [*DEFINITIONS, *brick_records(CAPSNET, **WAY), WHOLE]
    with store_of(tmp_path / "store", *records) as store:
        expected = Inquiry(store, CAPSNET).on("here", "mxnet-1.5.1")
    assert expected is not None and expected.sequential_ms
    assert estimate_of(tmp_path, side_of("a", records)) == pytest.approx(expected.sequential_ms)


def test_a_model_without_some_bricks_has_no_estimate(tmp_path: Path) -> None:
    some = list(CAPSNET.suite)[:3]
    assert estimate_of(tmp_path, side_of("a", [*DEFINITIONS, *brick_records(CAPSNET, some, **WAY), WHOLE])) is None


def test_a_model_that_the_library_lacks_or_knows_by_other_layers_has_no_estimate(tmp_path: Path) -> None:
    bricks = brick_records(CAPSNET, **WAY)
    other = model_record(CAPSNET, 30.0, model="ef" * 32, **WAY)
    assert estimate_of(tmp_path, side_of("a", [*DEFINITIONS, *bricks, WHOLE]), sources={}) is None
    assert estimate_of(tmp_path, side_of("a", [*DEFINITIONS, *bricks, other])) is None
