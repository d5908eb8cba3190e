import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlbricks_tui.analysis.roofline import LayerPoint, Roof, Work
from dlbricks_tui.models.kinds import Kind
from dlbricks_tui.wording.roofline import roofline_lines
from tests.bricks.graphs import chain

ROOF = Roof(2, {"avx512": 230.0, "avx2": 130.0}, 16.5, 22.7, 32 << 20, 4 << 20)
GRAPH = chain("conv", "relu", "pool", "add")
AMOUNTS = st.floats(0.0, 1e12)


def point(layer: int, operations: float, moved: float, latency_ms: float) -> LayerPoint:
    work = Work(operations, moved, 0.0)
    return LayerPoint((layer,), 1, work, latency_ms, ROOF.least_ms(work, 0.0))


def at(lines: list[str], sign: str) -> tuple[int, int]:
    """The row and the column of a sign in the picture."""
    return next((row, line.index(sign)) for row, line in enumerate(lines[1:]) if sign in line.partition("|")[2])


CONVOLUTION, RELU = point(0, 2e9, 8e6, 10.0), point(1, 2e6, 64e6, 5.0)


@given(st.lists(st.builds(point, st.integers(0, 3), AMOUNTS, AMOUNTS, st.floats(1e-6, 1e6)), max_size=30))
def test_any_layers_fit_on_a_screen_of_80_columns_and_24_lines(points: list[LayerPoint]) -> None:
    lines = roofline_lines(points, GRAPH, ROOF, 80, 23)
    assert len(lines) <= 23
    assert max(map(len, lines)) <= 80


def test_layers_stand_by_their_intensity_and_speed() -> None:
    lines = roofline_lines([CONVOLUTION, RELU], GRAPH, ROOF, 80, 23)
    (conv_row, conv_column), (relu_row, relu_column) = at(lines, "C"), at(lines, "E")
    assert conv_row < relu_row
    assert conv_column > relu_column


def test_a_small_letter_takes_little_of_the_time() -> None:
    lines = roofline_lines([CONVOLUTION, replace(RELU, latency_ms=0.2)], GRAPH, ROOF, 80, 23)
    assert at(lines, "e")


def test_the_signs_are_explained() -> None:
    text = "\n".join(roofline_lines([CONVOLUTION, RELU], GRAPH, ROOF, 80, 23))
    for words in (
        "c convolution",
        "e elementwise",
        "230 avx512",
        "130 avx2",
        "memory (16 GB/s)",
        "shared cache (23 GB/s)",
    ):
        assert words in text
    assert "p pooling" not in text


def test_the_summary_tells_which_layers_traffic_bounds() -> None:
    text = "\n".join(roofline_lines([CONVOLUTION, RELU], GRAPH, ROOF, 80, 23))
    assert "33 % of the time is in layers bound by memory" in text
    assert "100 % in layers that take at most twice their bound" in text


def test_views_are_left_out() -> None:
    assert math.isinf(point(2, 5.0, 0.0, 0.1).work.intensity)
    assert roofline_lines([CONVOLUTION, point(2, 5.0, 0.0, 0.1)], GRAPH, ROOF, 80, 23)[0].split()[1] == "1"


@pytest.mark.parametrize("kind", Kind)
def test_each_kind_of_layer_has_a_sign_that_is_explained(kind: Kind) -> None:
    graph = replace(GRAPH, layers=(replace(GRAPH.layers[0], kind=kind), *GRAPH.layers[1:]))
    lines = roofline_lines([CONVOLUTION], graph, ROOF, 80, 23)
    (sign,) = {letter for line in lines for letter in line.partition("|")[2] if letter.isupper() and "FLOP" not in line}
    assert any(f"{sign.lower()} " in line for line in lines)
