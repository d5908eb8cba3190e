from dataclasses import replace

import pytest

from dlbricks_tui.bricks.cutting import Cut
from dlbricks_tui.bricks.decomposition import Cutting
from dlbricks_tui.documents.lines import wrapped_lines
from dlbricks_tui.estimate.calibration import CALL_MS, Correction
from dlbricks_tui.store.records import Measurement
from dlbricks_tui.store.statistics import summarise
from dlbricks_tui.tui.open_model import OpenModel
from dlbricks_tui.tui.workbench.details import details
from dlbricks_tui.tui.workbench.outline import Outline
from dlbricks_tui.tui.workbench.parts import Measurements, PartLatencies, part_details
from tests.bricks.graphs import DATA, Spec, after, built, chain
from tests.estimate.knowledge_of import measured, with_predictions
from tests.tui.opened_models import estimated, open_model, sample, unable

WIDTH = 60


def told(
    opened: OpenModel,
    sequence: int | None,
    latencies: PartLatencies | None = None,
    samples: Measurements | None = None,
    elsewhere: tuple[str, ...] | None = None,
    inside: int = 0,
) -> str:
    """Return the details of a sequence, of a layer in it by its number, or of the model."""
    outline = Outline(opened)
    index = 0 if sequence is None else outline.reveal(opened.nesting.leaf(sequence))
    if inside:
        outline.expand(index)
    selected = part_details(outline.rows[index + inside], outline, latencies)
    lines = wrapped_lines(details(selected, samples, elsewhere, WIDTH), WIDTH)
    return "\n".join("".join(span.text for span in line).rstrip() for line in lines)


def timed(*samples_ms: float, flags: tuple[str, ...] = ()) -> Measurement:
    return Measurement(
        brick="b" * 64,
        context="plain",
        system="s",
        runtime="r",
        level=sample("alexnet").graph.level,
        protocol="hot-1",
        run="r1",
        when="2026-11-21T08:00:00+00:00",
        statistics=summarise(samples_ms),
        samples_ms=samples_ms,
        flags=flags,
    )


def test_a_layer_starts_with_its_title_name_and_latency() -> None:
    opened = sample("resnet50_v1")
    lines = told(opened, 0, estimated(opened, measured(opened.decomposition))).splitlines()
    assert lines[0] == "conv 7x7/2 64"
    assert lines[1].split() == ["name", "resnet50_v1_conv0_fwd"]
    text = "\n".join(lines)
    assert "in         1x3x224x224" in text and "out        1x64x112x112" in text and "weights    64x3x7x7" in text
    assert "kernel=7x7" in text and "stride=2x2" in text
    assert "of the model" in text and "interval" in text and "* on the critical path" in text


def test_the_model_shows_the_overhead_of_a_call() -> None:
    opened = sample("resnet50_v1")
    known = measured(opened.decomposition, correction=Correction(((CALL_MS, 0.06),)))
    call = "call       0.060 ms of it: overhead of one call"
    assert call in told(opened, None, estimated(opened, known)).splitlines()
    assert call not in told(opened, 0, estimated(opened, known)).splitlines()
    assert "of the runtime" not in told(opened, None, estimated(opened, measured(opened.decomposition)))


def test_a_brick_shows_its_key_contexts_and_occurrences() -> None:
    opened = sample("resnet50_v1")
    occurrences = opened.decomposition.occurrences
    by_brick: dict[str, set[str]] = {}
    for it in occurrences:
        by_brick.setdefault(it.brick.key, set()).add(it.context)
    number = next(it.sequence.index for it in occurrences if len(by_brick[it.brick.key]) > 1)
    key, context = occurrences[number].brick.key, occurrences[number].context
    text = told(opened, number).replace("\n" + " " * 11, " ")
    assert f"brick      {key[:12]}" in text and f"context    {context}" in text
    assert f"elsewhere in the model: {', '.join(sorted(by_brick[key] - {context}))}" in text
    assert f"occurs     {sum(it.brick.key == key for it in occurrences)} times in this model" in text


@pytest.mark.parametrize(
    ("names", "says"),
    [
        ((), "in no other model of the library"),
        (("vgg16",), "1 model: vgg16"),
        (tuple("abcdef"), "6 models: a, b, c, d and 2 more"),
    ],
)
def test_other_models_with_the_brick_are_named(names: tuple[str, ...], says: str) -> None:
    assert f"elsewhere  {says}" in told(sample("alexnet"), 0, elsewhere=names)


def test_other_models_are_not_mentioned_before_the_index_is_complete() -> None:
    assert "elsewhere" not in told(sample("alexnet"), 0)


def test_an_unmeasured_sequence_says_so() -> None:
    opened = sample("alexnet")
    assert "takes      not measured yet" in told(opened, 0, estimated(opened))


def test_a_layer_that_cannot_run_shows_the_reason_and_the_model_counts_such_layers() -> None:
    opened = open_model(unable(chain("conv", "relu"), 1, "the operator is not in this build"))
    latencies = estimated(opened, measured(opened.decomposition))
    assert "cannot run the operator is not in this build" in told(opened, 1, latencies)
    whole = told(opened, None, latencies)
    assert "measured   1 of 2 layers" in whole and "cannot run 1 layer, marked !" in whole


def test_a_shape_that_depends_on_data_says_so() -> None:
    graph = chain("conv", "relu")
    recorded = replace(graph, layers=(graph.layers[0], replace(graph.layers[1], is_recorded=True)))
    assert "shape recorded from one run" in told(open_model(recorded), 1)
    assert "shape recorded from one run" not in told(open_model(recorded), 0)


def test_the_model_shows_the_given_value_of_an_input() -> None:
    graph = chain("conv", "relu")
    (given,) = graph.inputs
    assert f"{given.name} = 16000" in told(open_model(replace(graph, inputs=(given._replace(value=(16000,)),))), None)


def test_a_predicted_latency_is_marked() -> None:
    opened = sample("resnet18_v1")
    wanting = opened.decomposition.occurrences[10]
    known = measured(opened.decomposition, [(wanting.brick.key, wanting.context)])
    assert "predicted, not measured" in told(opened, 10, estimated(opened, with_predictions(known)))


def test_a_stored_array_takes_no_time() -> None:
    opened = open_model(built([Spec("constant"), Spec("conv", DATA), Spec("add", after(0, 1))]))
    assert "no time: it is stored" in told(opened, 0, estimated(opened, measured(opened.decomposition)))


def test_a_sequence_that_the_cover_leaves_out_says_why() -> None:
    opened = open_model(chain("conv", "relu", "pool"), Cutting(3, Cut.OVERLAP))
    assert "sequences that overlap it are quicker" in told(opened, 1, estimated(opened, measured(opened.decomposition)))


def test_a_repeated_layer_shows_how_often_it_is_paid() -> None:
    opened = open_model(built([Spec("conv", DATA, times=3)]))
    text = told(opened, 0, estimated(opened, measured(opened.decomposition)))
    assert "ms, each time" in text and "paid       3 times" in text and "runs       3 times, counted once" in text


def test_a_sequence_describes_each_of_its_layers() -> None:
    opened = sample("resnet50_v1", granularity=3)
    text = told(opened, 0)
    assert text.splitlines()[0] == "conv 7x7/2 64 > batch norm > relu"
    assert [line for line in text.splitlines() if line in ("conv 7x7/2 64", "batch norm", "relu")] == [
        "conv 7x7/2 64",
        "batch norm",
        "relu",
    ]


def test_a_layer_among_several_has_no_latency_of_its_own() -> None:
    opened = sample("resnet50_v1", granularity=3)
    text = told(opened, 0, estimated(opened, measured(opened.decomposition)), inside=1)
    assert text.splitlines()[0] == "conv 7x7/2 64" and "takes" not in text


def test_the_model_shows_its_inputs_and_outputs() -> None:
    text = told(sample("resnet50_v1"), None)
    assert "input      1x3x224x224 data" in text and "output     1x1000 resnet50_v1_dense0_fwd" in text
    assert "layers     174" in text and "level      written, granularity 1, cut chain" in text


def test_control_codes_in_names_are_escaped() -> None:
    graph = chain("conv", "relu")
    evil = replace(graph, layers=tuple(replace(it, name="a\x1b[2Jb") for it in graph.layers))
    assert "\x1b" not in told(open_model(evil), 0) + told(open_model(evil), None)


def test_samples_are_drawn_as_a_histogram_with_one_bar_for_outliers() -> None:
    newest = timed(*[1.0, 1.01, 1.02, 1.02, 1.03] * 5, 9.0)
    text = told(sample("alexnet"), 0, samples=Measurements(newest, (1.02,)))
    assert "26 samples, 2026-11-21 08:00 UTC" in text
    assert ">= 9.000 ms" in text and "█" in text and "median        1.020 ms" in text
    assert "history" not in text


def test_the_history_and_the_flags_are_shown() -> None:
    newest = timed(1.0, 1.0, 1.0, flags=("slower than before",))
    text = told(sample("alexnet"), 0, samples=Measurements(newest, (1.5, 1.25, 1.0)))
    assert "3 runs: 1.500, 1.250, 1.000 ms" in text and "flagged    slower than before" in text
