"""Sentences about figures in doubt: the one of two to doubt, the reason, and the command that settles it."""

from dataclasses import replace

import pytest

from dlbricks_tui.bricks.cutting import Cut
from dlbricks_tui.bricks.decomposition import Cutting, decompose
from dlbricks_tui.bricks.ordering import LayerOrder
from dlbricks_tui.estimate.estimate import estimate
from dlbricks_tui.estimate.knowledge import Knowledge, Latency
from dlbricks_tui.estimate.system_estimate import SystemEstimate
from dlbricks_tui.models.graph import Level
from dlbricks_tui.runtime.variant import AskedVariant, InstructionSet, Optimisation, Precision, Variant
from dlbricks_tui.wording.answers import doubts_about, options_of, settling_command, slow_host
from tests.bricks.graphs import chain
from tests.estimate.test_accuracy import WAY
from tests.estimate.test_explanation import knowledge_by_op

HOUR = 3_600_000_000


def one(
    measured_ms: float = 9.0,
    *,
    doubt: float = 0.01,
    bricks_reference_ms: float = 0.64,
    samples: int = 24,
    bricks_when: int = HOUR,
    half_ms: float = 0.05,
) -> SystemEstimate:
    """A model that is estimated at 6 ms, and was timed end to end."""
    graph = chain("conv", "pool")
    known = knowledge_by_op(graph, doubt)
    measured = {
        pair: it._replace(reference_ms=bricks_reference_ms, when=bricks_when) for pair, it in known.measured.items()
    }
    return SystemEstimate(
        WAY._replace(runtime="onnxruntime-1.32.0 threads-2"),
        estimate(decompose(graph), Knowledge(measured)),
        Latency(measured_ms, measured_ms - half_ms, measured_ms + half_ms),
        reference_ms=0.64,
        usual_reference_ms=0.64,
        timed_when=HOUR,
        timed_samples=samples,
        variant=Variant(threads=2, batch=4),
        runtime_name="onnxruntime",
    )


COMMAND = "dlbricks run generated --runtime onnxruntime --threads 2 --batch 4 --level written --again --end-to-end"


@pytest.mark.parametrize(
    ("found", "reason"),
    [
        (
            one(3.0, bricks_reference_ms=1.28),
            "the host was 2.00 times as slow for its bricks than for the model",
        ),
        (
            one(9.0, bricks_reference_ms=0.40),
            "the host was 1.60 times as slow for the model than for its bricks",
        ),
        (one(samples=3), "Doubt the measurement: it has 3 samples only"),
        (one(doubt=0.2), "Doubt the estimate: its interval is wider than that of the measurement"),
        (one(half_ms=2.0), "Doubt the measurement: its interval is wider than that of the estimate"),
        (one(bricks_when=10 * HOUR), "Doubt the measurement: it is older"),
        (one(bricks_when=HOUR // 1000), "Doubt the estimate: some of its bricks were timed in other networks"),
    ],
)
def test_a_measurement_outside_of_the_interval_says_which_of_the_two_to_doubt(
    found: SystemEstimate, reason: str
) -> None:
    (told,) = (it for it in doubts_about(found) if "outside" in it)
    assert f". {reason}. `" in told or f": {reason}. `" in told
    assert f"`{COMMAND}` measures both anew." in told


def test_a_measurement_inside_of_the_interval_needs_no_sentence() -> None:
    assert doubts_about(one(6.01)) == ()
    assert doubts_about(replace(one(), end_to_end=None)) == ()


def test_the_command_repeats_the_variant() -> None:
    assert settling_command(one()) == COMMAND
    way = WAY._replace(runtime="onnxruntime-1.32.0 threads-1")
    found = replace(one(), way=way, variant=Variant(threads=1, batch=1, precision=Precision.INT8))
    told = settling_command(found, "table1:16")
    assert told == COMMAND.replace("generated", "table1:16").replace(
        "--threads 2 --batch 4", "--threads 1 --precision int8"
    )


def test_the_command_repeats_kernels_and_cutting() -> None:
    limited = AskedVariant(instructions=InstructionSet.AVX2, optimisation=Optimisation.BASIC)
    cutting = Cutting(3, Cut.OVERLAP, LayerOrder.PAPER)
    told = options_of("", limited, Level.FUSED, cutting)
    assert " ".join(told) == "--instructions avx2 --optimisation basic --granularity 3 --cut overlap --order paper"
    assert options_of("", AskedVariant(precision=Precision.F32), Level.FUSED, cutting, cutting) == []


def test_a_host_that_was_slower_than_usual_is_named_with_the_share() -> None:
    assert slow_host(one(6.0)) == ""
    slow = replace(one(6.0, bricks_reference_ms=0.77), reference_ms=0.77)
    assert slow_host(slow).startswith("The host was 20 % slower than usual when this was measured")
    (told,) = doubts_about(slow)
    assert told.endswith("on a quiet host replaces them.")
    bricks = one(6.0, bricks_reference_ms=0.77)
    assert slow_host(bricks).startswith("The host was 20 % slower than usual when the bricks were measured")
    model = replace(one(6.0), reference_ms=0.77)
    assert slow_host(model).startswith("The host was 20 % slower than usual when the model was measured")
    # It is not known what is usual.
    assert slow_host(replace(slow, usual_reference_ms=0.0)) == ""
