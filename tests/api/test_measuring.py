"""Tests of what runs and suites measure, and of what a session warns of before a run."""

from dataclasses import replace
from pathlib import Path

import pytest
from onnx import ModelProto

from dlbricks_tui.api.measuring import measured_batch_sizes, variant_remarks
from dlbricks_tui.api.session import SILENT, Session
from dlbricks_tui.api.suites import kind_of
from dlbricks_tui.bricks.decomposition import Decomposition, decompose
from dlbricks_tui.estimate.inquiry import Inquiry
from dlbricks_tui.folders import SAMPLE_MODELS
from dlbricks_tui.host.fingerprint import fingerprint
from dlbricks_tui.models.library import Library, source_of
from dlbricks_tui.models.loading import Loader
from dlbricks_tui.runs.request import RunRequest
from dlbricks_tui.runtime.runtime import Settings
from dlbricks_tui.runtime.traits import Format
from dlbricks_tui.share.packing import SuiteModel
from dlbricks_tui.store.records import BrickForm, Measurement, Record
from tests.estimate.stored import brick_records, store_of
from tests.models.onnx_models import loaded, small, written
from tests.models.table_framework import TableFramework
from tests.runs.runs import FAKE

SYSTEM, RUNTIME = "c5.xlarge", "onnxruntime-1.32.0 python-3.11 threads-1"


@pytest.fixture(scope="module")
def at_size(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Decomposition]:
    """The same model at several batch sizes."""
    folder = tmp_path_factory.mktemp("models")
    (source,) = Library(SAMPLE_MODELS, folder, Format.ONNX).find("resnet18_v1")
    loader = Loader(folder / "cache", TableFramework())
    return {size: decompose(loader.load(source, batch_size=size)) for size in (1, 2, 8)}


def found(folder: Path, model: Decomposition, records: list[Record]) -> tuple[int, ...]:
    """The batch sizes that are found for a model with these results."""
    with store_of(folder, *records) as store:
        known = Inquiry(store, model).on(SYSTEM, RUNTIME)
        assert known is not None
        return measured_batch_sizes(store, known.way, known.estimate.parts, model.graph.batch_size)


def measured(model: Decomposition, runtime: str = RUNTIME) -> list[Record]:
    return brick_records(model, system=SYSTEM, runtime=runtime, batch_size=model.graph.batch_size)


def test_the_batch_sizes_at_which_the_bricks_of_a_model_were_measured_are_found(
    at_size: dict[int, Decomposition], tmp_path: Path
) -> None:
    records = [record for model in at_size.values() for record in measured(model)]
    assert found(tmp_path, at_size[1], records) == (2, 8)
    assert found(tmp_path / "large", at_size[8], records) == (1, 2)


def test_bricks_of_other_runtimes_and_of_other_models_do_not_count(
    at_size: dict[int, Decomposition], tmp_path: Path
) -> None:
    elsewhere = measured(at_size[2], runtime="onnxruntime-1.32.0 python-3.11 threads-2")
    forms = [it for it in measured(at_size[8]) if isinstance(it, BrickForm)]
    few = [it for it in measured(at_size[8]) if isinstance(it, Measurement)][:3]
    assert found(tmp_path, at_size[1], [*measured(at_size[1]), *elsewhere, *forms, *few]) == ()


MULTIPLIED = "test (float[4,8] x) => (y) <float[8,8] w = {0.5}> { scores = MatMul (x, w) "


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (small(), "convolutional"),
        # A softmax inside is that of an attention, and one at the end that of a classifier.
        (written(f"{MULTIPLIED} shares = Softmax (scores) y = MatMul (shares, w) }}"), "transformer"),
        (written(f"{MULTIPLIED} y = Softmax (scores) }}"), "other"),
    ],
    ids=["convolutional", "transformer", "other"],
)
def test_a_network_is_of_the_kind_of_its_operators(tmp_path: Path, made: ModelProto, expected: str) -> None:
    graph = loaded(tmp_path, made)
    assert kind_of(SuiteModel(decompose(graph), graph)) == (Format.ONNX, False, expected)


def test_a_quantised_network_is_told_from_others_so_that_its_decoys_are_quantised(tmp_path: Path) -> None:
    source = source_of(SAMPLE_MODELS / "onnx" / "mobilenetv2_int8.onnx")
    graph = Loader(tmp_path, TableFramework()).load(source)
    assert kind_of(SuiteModel(decompose(graph), graph)) == (Format.ONNX, True, "convolutional")


def test_a_new_run_warns_of_more_threads_than_cores(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    warnings: list[str] = []
    session = Session(tmp_path)
    monkeypatch.setattr(session, "remarks", SILENT._replace(warn=warnings.append))
    session.new_run(RunRequest(models=(), runtime=FAKE))
    assert not warnings
    session.new_run(RunRequest(models=(), runtime=replace(FAKE, settings=Settings(threads=1024))))
    assert ["1024 threads on" in it for it in warnings] == [True]


def test_a_run_warns_of_more_threads_than_a_container_has_time_for(monkeypatch: pytest.MonkeyPatch) -> None:
    here = fingerprint()
    facts = (*(it for it in here.facts if it[0] != "quota_cores"), ("quota_cores", 2.5))
    monkeypatch.setattr("dlbricks_tui.api.measuring.fingerprint", lambda: replace(here, cores=64, facts=facts))
    assert variant_remarks([2]) == []
    (warning,) = variant_remarks([1, 32])
    assert "a time limit of 2.5 cores" in warning and "--threads 2 keeps to it" in warning
