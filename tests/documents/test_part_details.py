from dataclasses import replace
from datetime import datetime, timezone

import pytest

from dlbricks_tui.answers.shared_estimates import Measurements
from dlbricks_tui.bricks.cutting import Cut
from dlbricks_tui.bricks.decomposition import Cutting
from dlbricks_tui.documents.layout import laid_out
from dlbricks_tui.documents.outline import Outline
from dlbricks_tui.documents.part_details import PartDetails
from dlbricks_tui.documents.part_latencies import PartLatencies
from dlbricks_tui.models.graph import Level
from dlbricks_tui.store.records import Measurement
from dlbricks_tui.store.statistics import summarise
from dlbricks_tui.wording import numbers
from tests.bricks.graphs import DATA, Spec, after, built, chain
from tests.documents.outlines import estimated, leaf_of, outline_of, sample, unable
from tests.documents.snapshots import check
from tests.estimate.knowledge_of import measured, with_predictions

WIDTH = 60


def told(
    outline: Outline,
    sequence: int | None,
    latencies: PartLatencies | None = None,
    samples: Measurements | None = None,
    elsewhere: tuple[str, ...] | None = None,
    inside: int = 0,
) -> str:
    """Return the details of a sequence, of a layer in it by its number, or of the model."""
    node = outline.root if sequence is None else leaf_of(outline, sequence)
    selected = PartDetails(node.inside[inside - 1] if inside else node, latencies)
    lines = laid_out(selected.whole(samples, elsewhere), WIDTH)
    return "\n".join("".join(span.text for span in line).rstrip() for line in lines)


def timed(*samples_ms: float, flags: tuple[str, ...] = ()) -> Measurement:
    return Measurement(
        brick="b" * 64,
        context="plain",
        system="s",
        runtime="r",
        level=Level.WRITTEN,
        protocol="hot-1",
        run="r1",
        when="2026-11-21T08:00:00+00:00",
        statistics=summarise(samples_ms),
        samples_ms=samples_ms,
        flags=flags,
    )


def test_a_layer_that_cannot_run_shows_the_reason_and_the_model_counts_such_layers() -> None:
    outline = outline_of(unable(chain("conv", "relu"), 1, "the operator is not in this build"))
    latencies = estimated(outline, measured(outline.decomposition))
    assert "cannot run  the operator is not in this build" in told(outline, 1, latencies)
    whole = told(outline, None, latencies)
    assert "measured    1 of 2 layers" in whole and "cannot run  1 layer, marked !" in whole


def test_a_shape_that_depends_on_data_says_so() -> None:
    graph = chain("conv", "relu")
    recorded = replace(graph, layers=(graph.layers[0], replace(graph.layers[1], is_recorded=True)))
    assert "shape recorded from one run" in told(outline_of(recorded), 1)
    assert "shape recorded from one run" not in told(outline_of(recorded), 0)


def test_a_sequence_that_the_cover_leaves_out_says_why() -> None:
    outline = outline_of(chain("conv", "relu", "pool"), Cutting(3, Cut.OVERLAP))
    assert "sequences that overlap it are quicker" in told(
        outline, 1, estimated(outline, measured(outline.decomposition))
    )


def test_a_layer_among_several_has_no_latency_of_its_own() -> None:
    outline = sample("resnet50_v1", granularity=3)
    text = told(outline, 0, estimated(outline, measured(outline.decomposition)), inside=1)
    assert text.splitlines()[0] == "conv 7x7/2 64" and "takes" not in text


def test_control_codes_in_names_are_escaped() -> None:
    graph = chain("conv", "relu")
    evil = replace(graph, layers=tuple(replace(it, name="a\x1b[2Jb") for it in graph.layers))
    assert "\x1b" not in told(outline_of(evil), 0) + told(outline_of(evil), None)


def test_samples_are_drawn_as_a_histogram_with_one_bar_for_outliers() -> None:
    newest = timed(*[1.0, 1.01, 1.02, 1.02, 1.03] * 5, 9.0)
    text = told(sample("alexnet"), 0, samples=Measurements(newest, (1.02,)))
    assert "26 samples, 2026-11-21 08:00 UTC" in text
    assert ">= 9.000 ms" in text and "█" in text and "median        1.020 ms" in text
    assert "history" not in text


def test_the_details_of_parts_are_told_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numbers, "now", lambda: datetime(2026, 11, 21, 9, tzinfo=timezone.utc).timestamp())
    specs = [Spec("conv", DATA), Spec("relu", after(0), times=2), Spec("constant"), Spec("add", after(1, 2))]
    graph = unable(built([*specs, Spec("split", after(3)), Spec("relu", after(4)), Spec("relu", after(5))]), 5)
    outline = outline_of(graph)
    some = [(it.brick.key, it.context) for it in outline.decomposition.occurrences[3:4]]
    doubtful = estimated(outline, measured(outline.decomposition, some, doubt=0.2))
    predicted = estimated(outline, with_predictions(measured(outline.decomposition, some)))
    long = outline_of(chain(*["conv", "relu"] * 7), Cutting(14))
    newest = timed(1.0, 1.0, 1.5, flags=("slower than before",))
    history = Measurements(newest, (1.5, 1.0))
    cases = {f"layer {number}": (outline, number, doubtful) for number in range(7)}
    check(
        "part-details",
        {
            "the model": PartDetails(outline.root, doubtful).whole(None, None),
            "the model predicted": PartDetails(outline.root, predicted).facts(),
            "the model without latencies": PartDetails(outline.root).facts(),
            **{name: PartDetails(leaf_of(of, it), known).facts() for name, (of, it, known) in cases.items()},
            "a predicted layer": PartDetails(leaf_of(outline, 3), predicted).facts(tuple("abcdef")),
            "a layer with a history": PartDetails(leaf_of(outline, 0), doubtful).whole(history, ()),
            "a long sequence": PartDetails(leaf_of(long, 0)).layers(),
            "a row of layers": PartDetails(outline_of(chain("conv", *["relu"] * 3)).root.inside[1]).facts(),
        },
        width=80,
    )
