from dataclasses import replace

from dlbricks_tui.analysis.bounds import best_measured, gap_of
from dlbricks_tui.estimate.knowledge import Latency
from tests.analysis.executions import as_conversion, executed, with_nodes
from tests.bricks.graphs import chain


def test_each_cause_has_its_part() -> None:
    graph = with_nodes(chain("conv", "relu", "pool"))
    converting = replace(graph, layers=tuple(as_conversion(it) if it.index == 1 else it for it in graph.layers))
    baseline = executed(converting, {0: 3.0, 1: 0.5, 2: 1.0}, end_to_end=Latency(5.0, 4.9, 5.1))
    gap = gap_of(baseline, best_measured([baseline, executed(converting, {0: 2.0, 1: 1.0, 2: 2.0})]))
    assert gap.slower_layers_ms == 1.0
    assert gap.conversions_ms == 0.5
    assert gap.unexplained_ms == 0.5
