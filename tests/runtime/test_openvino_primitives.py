"""The nodes of OpenVINO behind lines of oneDNN, which do not name them."""

from collections.abc import Sequence

import pytest

from dlbricks_tui.runtime.inside.backend import RefusalError
from dlbricks_tui.runtime.inside.openvino_primitives import with_owners
from dlbricks_tui.runtime.protocol import Said


def owners(kinds: str, ran: str) -> Sequence[int | None]:
    """Return the numbers of the nodes of each line; nodes of these kinds have the numbers 100, 101, ..."""
    lines = [Said(f"onednn_verbose,v1,17.5,primitive,exec,cpu,{it},jit:any,,,,x,0.1", None) for it in ran.split()]
    names = kinds.split()
    found = with_owners(lines, names, list(range(100, 100 + len(names))))
    assert [it.line for it in found] == [it.line for it in lines]
    return [it.node for it in found]


def test_lines_belong_to_the_nodes_of_their_kind_in_order() -> None:
    kinds = "Convolution Pooling Convolution Eltwise FullyConnected"
    assert owners(kinds, "convolution pooling convolution inner_product") == [100, 101, 102, 104]


def test_kinds_that_run_the_same_primitive_are_counted_together() -> None:
    assert owners("FullyConnected MatMul FullyConnected", "matmul matmul inner_product") == [100, 101, 102]


def test_nodes_that_run_without_onednn_leave_the_lines_of_their_kind_without_an_owner() -> None:
    assert owners("Convolution Pooling Pooling", "convolution pooling") == [100, None]


def test_a_conversion_is_the_node_between_the_nodes_of_the_lines_around_it() -> None:
    kinds = "Reorder Convolution Reorder Convolution Reorder"
    assert owners(kinds, "reorder convolution reorder convolution reorder") == [100, 101, 102, 103, 104]
    assert owners(kinds, "reorder convolution convolution reorder") == [100, 101, 103, 104]


def test_a_conversion_inside_of_a_node_belongs_to_it() -> None:
    assert owners("Convolution Convolution", "convolution reorder convolution") == [100, 101, 101]
    assert owners("Reorder Convolution", "reorder reorder convolution") == [100, 101, 101]


def test_a_conversion_that_fits_nowhere_and_other_lines_have_no_owner() -> None:
    assert owners("Convolution", "convolution reorder") == [100, None]
    said = Said("onednn_verbose,v1,info,oneDNN v3.10", None)
    assert with_owners([said], ["Pooling"], [100]) == (said,)
    assert with_owners([], ["Pooling"], [100]) == ()


def test_a_run_that_left_out_convolutions_is_refused() -> None:
    with pytest.raises(RefusalError, match="nothing about 1 convolutions"):
        owners("Convolution Convolution", "reorder convolution")
