from dataclasses import replace

import pytest

from dlbricks_tui.bricks.coldness import Caches
from dlbricks_tui.bricks.contexts import caches_in, context_key, formers, kept_feeds, resident_feeds, twin_context
from dlbricks_tui.bricks.layouts import output_layouts
from dlbricks_tui.models.graph import Feed, LayerGraph, Shape
from dlbricks_tui.runtime.traits import ONNX_RUNTIME
from tests.bricks.convolutions import convolving, named
from tests.bricks.graphs import DATA, Spec, after, built, chain, of_weights, weighing


def context(graph: LayerGraph, *layers: int) -> str:
    return context_key(graph, layers, output_layouts(graph))


def twin_in(graph: LayerGraph, layers: list[int], its_context: str) -> str | None:
    return twin_context(graph, layers, output_layouts(graph), its_context)


def test_what_enters_a_model_is_plain() -> None:
    assert context(chain("relu"), 0) == "plain"


def test_a_context_is_the_classes_of_all_that_enters_a_sequence() -> None:
    graph = built([Spec("conv", DATA), Spec("relu", after(0)), Spec("concat", (*after(1, 0), *DATA)), Spec("constant")])
    assert context(graph, 2) == "conv+conv+plain"
    assert context(graph, 1, 2) == "conv+plain"
    assert context(graph, 0, 1, 2) == "plain"
    assert context(graph, 3) == "none"


@pytest.mark.parametrize(
    ("context", "expected"),
    [
        ("conv", "conv"),
        ("plain&conv/8:streamed+conv1x1:32x28x28:8x28x28:kept;cold",) * 2,
        ("conv/8~1:streamed;cold", "conv/8:streamed;cold"),
        ("conv1x1:16x56x56:144x56x56~8+conv~far:kept", "conv1x1:16x56x56:144x56x56+conv:kept"),
        ("conv1x1:64x8x8:64x8x8|conv/8~1|conv:streamed:kept+plain", "conv1x1:64x8x8:64x8x8:streamed:kept+plain"),
        ("conv|conv/8;cold", "conv;cold"),
        ("conv+conv/8|conv", "conv+conv/8"),
        ("plain:varied;cold", "plain;cold"),
        ("conv/8~1:streamed;heavy", "conv/8:streamed"),
        ("conv/8|conv:kept+plain:varied:kept", "conv/8:kept+plain:kept"),
        ("conv:kept;evicted", "conv:kept"),
        ("conv/8~1:streamed;resident", "conv/8:streamed"),
    ],
)
def test_what_a_context_was_called_before_it_said_more(context: str, expected: str) -> None:
    *otherwise, told_less = formers(context)
    assert told_less == expected
    # Twins were timed otherwise.
    assert otherwise == [f"{context.rpartition(';')[0]};displaced"] * context.endswith((";evicted", ";resident"))


# What may be written over.


def fused_sum(*behind: Spec) -> LayerGraph:
    """A convolution, another one that adds the first one's result to its own, and what stands behind them."""
    shape: Shape = (1, 64, 8, 8)
    specs = [Spec("conv", DATA), Spec("conv", DATA), Spec("conv", after(0, 1))]
    graph = built([*specs, *behind])
    return convolving(graph, 2, shape, (64, 64, 3, 3), shape, parts="conv batch_norm add relu")


def test_a_fused_convolution_adds_to_what_nobody_needs_any_more() -> None:
    assert context(fused_sum(), 2) == "conv+conv"
    # What the convolution itself reads may live on.
    assert context(fused_sum(Spec("relu", after(0))), 2) == "conv+conv"


def test_it_keeps_what_is_needed_afterwards() -> None:
    assert context(fused_sum(Spec("relu", after(1))), 2) == "conv+conv:kept"


def test_a_plain_sum_may_write_over_any_of_its_inputs() -> None:
    specs = [Spec("relu", DATA), Spec("relu", DATA), Spec("add", after(0, 1)), Spec("relu", after(0))]
    assert context(built(specs), 2) == "plain:kept+plain"
    assert context(built(specs[:3]), 2) == "plain+plain"
    assert context(built([Spec("add", (Feed(None, 0), Feed(None, 1)))]), 0) == "plain:kept+plain:kept"


@pytest.mark.parametrize(("op", "expected"), [("exp", "conv:kept"), ("relu", "conv"), ("clip", "conv")])
def test_of_other_operators_it_counts_where_it_changes_how_often_the_layout_is_converted(
    op: str, expected: str
) -> None:
    graph = built([Spec("conv", DATA), Spec("relu", after(0)), Spec("relu", after(0))])
    assert context(named(graph, "conv", op, "relu"), 1) == expected
    assert context(named(graph, "relu", op, "relu"), 1) == "plain"


def test_inside_a_sequence_nothing_is_kept_for_others() -> None:
    graph = built([Spec("conv", DATA), Spec("relu", after(0)), Spec("add", after(0, 1))])
    layouts = output_layouts(graph)
    assert kept_feeds(graph, [2], layouts) == frozenset()
    assert kept_feeds(graph, [0, 1, 2], layouts) == frozenset()


# Whether it was written past the caches.


def test_what_a_batch_norm_has_written_in_a_layout_of_onednn_is_streamed() -> None:
    graph = named(chain("conv", "relu", "relu", "pool"), "conv", "batch_norm", "relu", "pool")
    assert [context(graph, layer) for layer in range(4)] == ["plain", "conv", "conv:streamed", "conv"]
    assert context(graph, 1, 2) == "conv"


def test_plain_arrays_are_not() -> None:
    graph = named(chain("pool", "relu", "relu"), "pool", "batch_norm", "relu")
    assert context(graph, 2) == "plain"


def test_a_batch_norm_that_other_layers_tell_how_is_nothing_to_copy_by() -> None:
    graph = built([Spec("conv", DATA), Spec("conv", DATA), Spec("add", after(0, 1)), Spec("relu", after(2))])
    assert context(named(graph, "conv", "conv", "batch_norm", "relu"), 3) == "conv"


def test_what_is_streamed_may_have_to_be_kept_too() -> None:
    graph = built([Spec("conv", DATA), Spec("relu", after(0)), Spec("add", after(0, 1)), Spec("relu", after(1))])
    assert context(named(graph, "conv", "batch_norm", "add", "relu"), 2) == "conv+conv:streamed:kept"


def test_what_streams_and_what_reads_it_is_timed_when_that_lies_in_the_caches_too() -> None:
    graph = named(chain("conv", "relu", "relu", "pool"), "conv", "batch_norm", "relu", "pool")
    layouts = output_layouts(graph)
    for layers in ([1], [2], [2, 3]):
        own = context(graph, *layers)
        assert twin_in(graph, layers, own) == f"{own};resident"
        assert caches_in(f"{own};resident") is Caches.RESIDENT
    assert resident_feeds(graph, [1], layouts) == frozenset(after(0))
    assert resident_feeds(graph, [2], layouts) == frozenset(after(1))
    # A sequence of several layers has memory of its own that lies in the caches, and reads what another one has made.
    assert resident_feeds(graph, [0, 1], layouts) == resident_feeds(graph, [3], layouts) == frozenset()
    # However much the model touches; but ONNX Runtime does not stream.
    large = weighing(graph, 0, 60)
    assert twin_in(large, [1], "conv") == "conv;resident"
    assert twin_in(replace(large, traits=ONNX_RUNTIME), [1], "conv") is None


# Whether weights are still in a cache.


def test_weights_that_the_whole_model_leaves_no_cache_for_are_cold() -> None:
    graph = weighing(weighing(chain("conv", "conv", "relu"), 0, 2), 1, 6)
    assert [context(graph, layer) for layer in range(3)] == ["plain;cold", "conv;cold", "conv"]


def test_each_repetition_of_a_layer_has_weights_of_its_own() -> None:
    graph = weighing(chain("conv", "conv"), 0, 1)
    assert context(graph, 0) == "plain"
    often = replace(graph, layers=(replace(graph.layers[0], times=7), graph.layers[1]))
    assert context(often, 0) == "plain;cold"
    # All layers together are the model, which reads nothing else in between.
    assert context(often, 0, 1) == "plain"


def test_weights_of_a_model_that_fit_into_a_cache_stay_there() -> None:
    assert context(weighing(chain("conv", "conv"), 0, 5), 0) == "plain"


def test_weights_that_are_more_than_a_cache_holds_are_cold_if_much_else_is_read_in_between() -> None:
    graph = of_weights(1, 9)
    assert [context(graph, 0), context(graph, 1), context(graph, 0, 1)] == ["plain;cold", "conv", "plain"]
    graph = of_weights(1, 9, 1)
    assert [context(graph, 0), context(graph, 1), context(graph, 0, 1)] == ["plain;cold", "conv;heavy", "plain"]
    # Where that is little all the same, it may stay, and nobody else takes the nearest caches.
    assert twin_in(graph, [1], "conv;heavy") == "conv"


def test_what_is_cold_where_all_may_stay_in_a_cache_is_timed_out_of_that_too() -> None:
    graph = weighing(weighing(chain("conv", "conv", "relu"), 0, 2), 1, 6)
    twins = [twin_in(graph, [0], it) for it in ("conv;cold", "conv|conv/8:kept;heavy")]
    assert twins == ["conv;evicted", "conv|conv/8:kept;evicted"]
    # What is most of a model has a core's own caches for itself.
    assert twin_in(graph, [1], "conv;cold") == "conv"
    # No cache holds what a larger model touches, and ONNX Runtime has no constant for it.
    assert twin_in(weighing(graph, 2, 35), [0], "conv;cold") is None
    assert twin_in(replace(graph, traits=ONNX_RUNTIME), [0], "conv;cold") is None


def test_what_is_warm_where_others_may_take_the_nearest_caches_is_timed_without_them_too() -> None:
    graph = weighing(weighing(chain("conv", "conv", "relu"), 0, 2), 1, 6)
    assert twin_in(graph, [0], "conv:kept") == "conv:kept;evicted"
    # What is most of a model has them for itself.
    assert twin_in(graph, [1], "conv") is None
    assert twin_in(graph, [0, 1, 2], "plain") is None
    assert twin_in(weighing(graph, 2, 35), [0], "conv") is None
    assert twin_in(replace(graph, traits=ONNX_RUNTIME), [0], "conv") is None
    assert twin_in(built([Spec("constant"), Spec("add", (*DATA, *after(0)))]), [0], "none") is None


def test_what_a_layer_shortly_before_has_read_is_primed() -> None:
    steps = of_weights(1, 1, 1, shared=(0, 1, 2))
    assert [context(steps, layer) for layer in range(3)] == ["plain;primed", "conv;primed", "conv;primed"]
    # It finds its weights where they are, whatever else the model touches.
    assert twin_in(steps, [1], "conv;primed") is None
    # What is known of it from before there was such a context stands for it.
    assert formers("conv:kept;primed") == ("conv:kept",)
    assert context(replace(steps, traits=ONNX_RUNTIME), 1) == "plain"
    # More than a cache holds is not in one.
    assert context(of_weights(7, 7, shared=(0, 1)), 1) == "conv"
    assert context(of_weights(1, 5, 5, shared=(0,)), 0) == "plain;cold"


def test_a_context_says_what_the_caches_hold_of_a_brick() -> None:
    said = {it: caches_in(it) for it in ("conv", "none", "conv:kept;evicted", "conv+plain;cold", "conv;heavy")}
    assert list(said.values()) == [Caches.WARM, Caches.WARM, Caches.EVICTED, Caches.COLD, Caches.COLD]
    graph = weighing(chain("conv", "conv"), 0, 2)
    layouts = output_layouts(graph)
    for caches in Caches:
        assert caches_in(context_key(graph, [0], layouts, caches=caches)) is caches
