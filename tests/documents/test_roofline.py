from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlbricks_tui.analysis.roofline import LayerPoint, Roof, Work
from dlbricks_tui.documents.pictures import Plot
from dlbricks_tui.documents.what_ifs import roofline_plot
from dlbricks_tui.models.kinds import Kind
from tests.bricks.graphs import chain
from tests.documents.snapshots import check
from tests.documents.test_drawing import text_of

ROOF = Roof(2, {"avx512": 230.0, "avx2": 130.0}, 16.5, 22.7, 32 << 20, 4 << 20)
GRAPH = chain("conv", "relu", "pool", "add")
AMOUNTS = st.floats(0.0, 1e12)


def point(layer: int, operations: float, moved: float, latency_ms: float, kind: Kind | None = None) -> LayerPoint:
    kind = GRAPH.layers[layer].kind if kind is None else kind
    work = Work(operations, moved, 0.0)
    return LayerPoint((layer,), (kind,), 1, work, latency_ms, ROOF.least_ms(work, 0.0))


def letters(plot: Plot) -> dict[str, tuple[tuple[float, float], ...]]:
    """The places of the layers by their letters."""
    return {it.mark: it.points for it in plot.series if it.mark.isalpha()}


CONVOLUTION, RELU = point(0, 2e9, 8e6, 10.0), point(1, 2e6, 64e6, 5.0)


@given(st.lists(st.builds(point, st.integers(0, 3), AMOUNTS, AMOUNTS, st.floats(1e-6, 1e6)), max_size=30))
def test_any_layers_fit_on_a_screen_of_80_columns_and_24_lines(points: list[LayerPoint]) -> None:
    lines = text_of(roofline_plot(points, ROOF), 80, 21)
    assert len(lines) == 21
    assert max(map(len, lines)) <= 80


def test_layers_stand_by_their_intensity_and_speed_under_the_roofs() -> None:
    small, slow, intense = replace(RELU, latency_ms=0.2), point(2, 2e2, 64e6, 500.0), point(3, 2e12, 8.0, 9.0)
    check(
        "roofline",
        {
            "two layers": roofline_plot([CONVOLUTION, RELU], ROOF),
            "a small one": roofline_plot([CONVOLUTION, small], ROOF),
            "beyond the edges": roofline_plot([CONVOLUTION, slow, intense], ROOF),
            "without a shared cache": roofline_plot([replace(RELU, times=2)], replace(ROOF, shared_cache=None)),
            "nothing": roofline_plot([], ROOF),
        },
    )


def test_views_are_left_out() -> None:
    assert letters(roofline_plot([CONVOLUTION, point(2, 5.0, 0.0, 0.1)], ROOF)).keys() == {"C"}


def test_all_kinds_of_layers_are_explained_at_80_columns() -> None:
    plot = roofline_plot([point(0, 2e9, 8e6, 10.0, kind) for kind in Kind], ROOF)
    text = " ".join(text_of(plot, 80, 21))
    assert len(plot.legend) > 10 and all(name in text for name in plot.legend)


@pytest.mark.parametrize("kind", Kind)
def test_each_kind_of_layer_has_a_letter_that_is_explained(kind: Kind) -> None:
    plot = roofline_plot([replace(CONVOLUTION, kinds=(kind,))], ROOF)
    (letter,) = letters(plot)
    assert any(name.startswith(f"{letter.lower()} ") for name in plot.legend)
