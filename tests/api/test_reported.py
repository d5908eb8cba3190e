"""The contents of reports: series, estimates, rows of analyses, and what the paper has published."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from dlbricks_tui.api.analyses import csv_rows
from dlbricks_tui.api.reported import (
    COMPOSED_SYSTEM,
    LAYERS,
    LONGEST_LABEL,
    SPEEDUP,
    SYSTEMS,
    ReportContents,
    ReportedModel,
    find_contents,
    geometric_mean,
    published_model,
    published_models,
    reported_model,
)
from dlbricks_tui.bricks.decomposition import Cutting, Decomposition, decompose
from dlbricks_tui.folders import SAMPLE_MODELS
from dlbricks_tui.models.errors import ModelError
from dlbricks_tui.models.graph import Level
from dlbricks_tui.models.library import Library, ModelSource
from dlbricks_tui.models.loading import Loader
from dlbricks_tui.store.records import PUBLISHED, Record
from tests.analysis.executions import analysed
from tests.documents.snapshots import check
from tests.estimate.stored import brick_records, model_record, store_of
from tests.estimate.table1 import NoFramework, table1
from tests.store.samples import run, system

# CapsNet and SqueezeNet; 2 and 3 are one network.
CAPSNET, SQUEEZENET, VGG = (decompose(table1()[number]) for number in ("4", "16", "2"))
HOST: dict[str, Any] = {"system": "here", "runtime": "ours"}
C5: dict[str, Any] = {"system": "c5.xlarge", "runtime": "mxnet-1.5.1"}


def sources(*names: str) -> tuple[ModelSource, ...]:
    return Library(SAMPLE_MODELS, Path("nowhere")).find_all(names)


def contents_of(
    folder: Path, records: Sequence[Record], *names: str, only: frozenset[str] | None = None
) -> ReportContents:
    with store_of(folder / "store", *records) as store:
        loader = Loader(folder / "cache", NoFramework())
        return find_contents(
            store, lambda _: loader, sources(*names), names, "here", lambda it: only is None or it.system in only
        )


def told(found: ReportContents) -> list[str]:
    """The models of a report, and its series with their results."""
    lines = [f"{it.name}, {it.layers} layers" for it in found.corpus.models]
    for series in found.series:
        accuracy = series.accuracy(1)
        judged = f", {accuracy.models} judged: x{accuracy.geometric_mean:.3f}" if accuracy else ""
        lines.append(f"{series.title}: {series.slug}, granularities {series.granularities}{judged}")
        for it in series.results:
            timed = it.found.end_to_end and "{:.2f} ({:.2f} to {:.2f})".format(*it.found.end_to_end)
            lines.append(
                f"{it.reported.name} as {it.found.estimate.model}: {it.found.sequential_ms} ms of "
                f"{len(it.found.estimate.parts)} parts, timed {timed}, result {it.result_id}{', judged' * it.judged}"
            )
    return lines


def timed(decomposition: Decomposition, ms: float, number: int = 1, **fields: Any) -> Record:
    return model_record(decomposition, ms, uuid=f"{number:032x}", **{**HOST, **fields})


def test_each_series_is_listed_with_its_models_and_this_host_comes_first(tmp_path: Path) -> None:
    there = [system("c5.xlarge"), *brick_records(SQUEEZENET, **C5), timed(SQUEEZENET, 30.0, 2, **C5)]
    here = [*brick_records(SQUEEZENET, **HOST), timed(SQUEEZENET, 20.0)]
    of_two = [it for name in ("one", "two") for it in brick_records(SQUEEZENET, system="here", runtime=name)]
    # One runtime in several variants, and in two versions of Python.
    variants = ("threads-1", "threads-2", "threads-2 DNNL_MAX_CPU_ISA=AVX2", "precision-int8 threads-2", "threads-4")
    names = [*(f"mxnet-1.9.1 python-3.11 {it}" for it in variants), "mxnet-1.9.1 python-3.12 threads-4"]
    of_variants = [it for name in names for it in brick_records(SQUEEZENET, system="here", runtime=name)]
    in_pairs = [*here, *brick_records(decompose(SQUEEZENET.graph, Cutting(2)), **HOST)]
    # Equal models keep their own published end-to-end latencies.
    names = [source.name for source in sources("table1:2", "table1:3")]
    equal = {
        protocol: [
            *brick_records(VGG, **HOST, protocol=protocol),
            *(timed(VGG, 90.0 + 10 * at, at, name=name, protocol=protocol) for at, name in enumerate(names, 1)),
        ]
        for protocol in (PUBLISHED, "hot")
    }
    gone = brick_records(CAPSNET, without=sorted(CAPSNET.pairs)[:1], **HOST)
    squeezenet, two = ("table1:16",), ("table1:2", "table1:3")
    cases: dict[str, tuple[Sequence[Record], tuple[str, ...]]] = {
        "an empty store": ([], ("table1:4", "table1:16")),
        "two systems": ([*there, *here], squeezenet),
        "two runtimes of one system": (of_two, squeezenet),
        "variants of one runtime": (of_variants, squeezenet),
        # Granularities are those of the runs.
        "a run in pairs": ([*in_pairs, run(granularity=2, level=Level.WRITTEN, **HOST)], squeezenet),
        "pairs without a run": (in_pairs, squeezenet),
        "published latencies of equal models": (equal[PUBLISHED], two),
        "measured latencies of equal models": (equal["hot"], two),
        "an incomplete and an untimed model": (
            [*gone, timed(CAPSNET, 9.0), *brick_records(VGG, **HOST)],
            ("table1:4", "table1:2"),
        ),
        "a model that was timed only end to end": ([timed(CAPSNET, 9.0)], ("table1:4",)),
    }
    found = {name: contents_of(tmp_path / name, records, *asked) for name, (records, asked) in cases.items()}
    check("reported", {name: told(it) for name, it in found.items()}, width=200)
    assert found["an empty store"].series == ()
    only = contents_of(tmp_path / "only", [*there, *here], "table1:16", only=frozenset({"here"}))
    assert [it.way.system for it in only.series] == ["here"]


def test_unreadable_models_are_named_and_the_others_are_reported(tmp_path: Path) -> None:
    broken = tmp_path / "broken-symbol.json"
    broken.write_text("{}")
    found = contents_of(tmp_path, [], "table1:4", str(broken))
    assert [it.table1_id for it in found.reported_models] == ["4"]
    assert found.left_out[0].startswith("broken: ")
    with pytest.raises(ModelError, match="broken"):
        contents_of(tmp_path / "alone", [], str(broken))


def test_the_fifty_have_unique_labels_that_fit_and_are_those_of_table_1() -> None:
    fifty = Library(SAMPLE_MODELS, SAMPLE_MODELS).find("table1")
    labels = [reported_model(source).label for source in fifty]
    assert len(set(labels)) == 50 and max(map(len, labels)) <= LONGEST_LABEL
    assert labels[8] == "9 Inception V3"
    # A model of the user is labelled by its name.
    assert ReportedModel("resnet18_v1").label == "resnet18_v1"
    assert ReportedModel("x" * 80).label == "x" * (LONGEST_LABEL - 1) + "…"
    published = [published_model(source.table1_id) for source in fifty]
    assert [it.layers for it in published if it] == [source.layers for source in fifty]
    assert sum(it.layers for it in published_models().values()) == LAYERS
    assert published_model(None) is published_model("51") is None


def test_single_layers_add_up_to_the_published_sums() -> None:
    for name, mean, models in (
        ("c4.xlarge", 1.125, 49),
        ("c4.2xlarge", 1.086, 49),
        ("c5.xlarge", 0.969, 49),
        ("c5.2xlarge", 1.033, 48),
    ):
        assert geometric_mean(name) == pytest.approx(mean, abs=0.001)
        assert sum(it.ratio(name) is not None for it in published_models().values()) == models
        assert name in SPEEDUP
    assert geometric_mean("m7i.large") is None


def test_running_in_parallel_is_never_slower_than_in_sequence() -> None:
    for model in published_models().values():
        assert set(model.end_to_end_ms) == set(SYSTEMS)
        assert model.parallel_ratio <= model.sequential_ratio < 1
        assert model.sequential_ratio == model.sequential_ms / model.end_to_end_ms[COMPOSED_SYSTEM]


def test_comma_separated_rows_have_a_cell_for_each_column() -> None:
    columns, full, empty = csv_rows([analysed("a"), analysed("b", best_ms=None, gap=None, what_ifs=())])
    assert len(columns) == len(set(columns)) == len(full) == len(empty)
    held = dict(zip(columns, full, strict=True))
    assert (held["model"], held["best_runtime"], held["runtime_gain"]) == ("a", "runtime-other", 0.25)
