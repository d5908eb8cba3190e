from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlbricks_tui.bricks import decomposition as decomposition_module
from dlbricks_tui.bricks.cutting import Cut
from dlbricks_tui.bricks.decomposition import Cutting, Decomposition, decompose
from dlbricks_tui.bricks.ordering import LayerOrder
from dlbricks_tui.bricks.regions import RegionTree, rows_of, tree_of
from dlbricks_tui.models.cache import Cache
from dlbricks_tui.models.graph import LayerGraph
from tests.bricks.graphs import DATA, Spec, after, built, chain, graphs

CUTTINGS = st.builds(Cutting, st.integers(1, 4), st.sampled_from(Cut), st.sampled_from(LayerOrder))


@given(graph=graphs(), cutting=CUTTINGS)
def test_a_decomposition_from_the_cache_is_the_computed_one(
    graph: LayerGraph, cutting: Cutting, tmp_path_factory: pytest.TempPathFactory
) -> None:
    cache, graph = Cache(tmp_path_factory.mktemp("cache")), graph.with_key("a file")
    computed = decompose(graph, cutting)
    assert decompose(graph, cutting, cache) == computed
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(decomposition_module, "_decomposed", no_cutting)
        known = decompose(graph, cutting, cache)
    assert known == computed
    assert rows_of(known.regions) == rows_of(computed.regions)
    assert known.regions.occurrences == computed.regions.occurrences


def no_cutting(graph: LayerGraph, cutting: Cutting) -> Decomposition:
    raise AssertionError("a known model is cut again")


def test_each_cutting_of_each_model_has_its_own_entry(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    for key in ("one", "other"):
        for cutting in (Cutting(), Cutting(2), Cutting(2, Cut.OVERLAP), Cutting(2, order=LayerOrder.PAPER)):
            decompose(chain("conv", "relu").with_key(key), cutting, cache)
    assert len(list((tmp_path / "models").iterdir())) == 8


def test_a_graph_that_was_changed_after_reading_is_cut_anew(tmp_path: Path) -> None:
    cache, graph = Cache(tmp_path), chain("conv", "relu").with_key("a file")
    decompose(graph, cache=cache)
    changed = replace(graph, layers=graph.layers[:1], heads=())
    assert changed.key == ""
    assert len(decompose(changed, cache=cache).occurrences) == 1
    assert graph.named("other").key == "a file"


def test_regions_nested_deeper_than_python_recurses_become_rows_and_back() -> None:
    # Each join ends a module that holds all of the modules before it.
    specs = [Spec("conv", DATA)]
    for index in range(1, 1_600, 2):
        specs += [Spec("relu", after(index - 1)), Spec("add", (*after(index), *DATA))]
    tree: RegionTree = decompose(built(specs)).regions
    assert rows_of(tree_of(rows_of(tree))) == rows_of(tree)
