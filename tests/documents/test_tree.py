import re
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from dlbricks_tui.bricks.cutting import Cut
from dlbricks_tui.bricks.decomposition import Cutting, decompose
from dlbricks_tui.bricks.ordering import LayerOrder
from dlbricks_tui.documents.layout import TEXT, laid_out
from dlbricks_tui.documents.lines import Line
from dlbricks_tui.documents.tree import SequenceTime, tree, tree_lines
from dlbricks_tui.models.graph import LayerGraph
from tests.bricks.graphs import DATA, Branch, Spec, after, built, chain, random_graphs
from tests.bricks.graphs import laid_out as model_of
from tests.documents.outlines import outline_of, unable
from tests.documents.snapshots import check

cuttings = st.builds(Cutting, st.integers(1, 4), st.sampled_from(Cut))


def lines_of(
    graph: LayerGraph, how: Cutting | None = None, width: int = 80, times: Sequence[SequenceTime] = ()
) -> list[Line]:
    return list(laid_out(tree(decompose(graph, how), width, times), width, TEXT))


def drawn(
    graph: LayerGraph, how: Cutting | None = None, width: int = 80, times: Sequence[SequenceTime] = ()
) -> list[str]:
    """Return the lines of a model in some width."""
    return ["".join(span.text for span in line).rstrip() for line in lines_of(graph, how, width, times)]


def times_of(lines: list[str], title: str) -> list[str]:
    """Return the times of the lines with a title."""
    return [found[1] for line in lines if (found := re.search(rf"─ {title} +(~?[\d.]+) ", line))]


def test_names_from_files_cannot_steer_the_terminal() -> None:
    graph = chain("conv")
    named = replace(graph, name="a\x1b[2Jb", layers=(replace(graph.layers[0], name="x\x1b]0;y\ny"),))
    text = "\n".join(drawn(named, width=120))
    assert "\x1b" not in text
    assert "a\\x1b[2Jb" in text
    assert "x\\x1b]0;y\\ny" in text


def test_a_very_long_model_is_cut_off_with_a_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dlbricks_tui.documents.tree.MOST_LINES", 40)
    specs = [Spec("conv", after(index - 1) if index else DATA, width=index + 1) for index in range(90)]
    lines = drawn(built(specs))
    assert len(lines) < 40 + 20
    assert "... and 50 more lines; `--json` has everything" in lines


def test_a_very_deep_model_continues_under_headings() -> None:
    branch: Branch = ("conv",)
    for _ in range(60):
        branch = ("pool", ("add", (branch, ())), "relu", "conv")
    graph = model_of(branch)
    lines = tree_lines(outline_of(graph), deepest=5)
    assert sum(line.sequence is not None for line in lines) == len(graph.layers)
    assert max(len(line.guides) for line in lines) <= 7 * 3
    headings = [line.text for line in lines if line.text and not line.guides]
    references = [line.text for line in lines if line.text.endswith(", below")]
    assert len(headings) == len(references) > 8
    assert max(map(cell_len, drawn(graph))) <= 80


@given(random_graphs(), cuttings, st.integers(1, 6))
def test_every_brick_is_drawn_at_least_once(graph: LayerGraph, how: Cutting, deepest: int) -> None:
    outline = outline_of(graph, how)
    shown = {line.sequence.occurrence for line in tree_lines(outline, deepest) if line.sequence is not None}
    assert {it.brick.key for it in shown if it is not None} == outline.decomposition.bricks


def test_a_line_has_the_time_of_all_copies_in_a_row() -> None:
    graph = chain("conv", *["relu"] * 3, "pool")
    times = [SequenceTime(it, by_roofline=it == 2.0) for it in (5.0, 1.0, 2.0, 1.0, 1.0)]
    lines = drawn(graph, times=times)
    assert times_of(lines, "relu, 3 in a row") == ["~4.000"] and times_of(lines, "pool") == ["1.000"]
    assert [line for line in lines if "40.0 %" in line]
    assert "~ a share of a fused layer by roofline, and not by measured times" in lines


def test_equal_modules_in_a_row_may_have_their_branches_in_another_order() -> None:
    one = [Spec("relu", after(0)), Spec("conv", after(1)), Spec("pool", after(0)), Spec("add", after(2, 3))]
    other = [Spec("pool", after(4)), Spec("relu", after(4)), Spec("conv", after(6)), Spec("add", after(7, 5))]
    graph, how = built([Spec("conv", DATA), *one, *other]), Cutting(order=LayerOrder.PAPER)
    lines = drawn(graph, how, times=[SequenceTime(2.0**it) for it in range(9)])
    assert any("in a row" in line for line in lines)
    assert (times_of(lines, "relu"), times_of(lines, "branch 2: pool")) == (["66.00"], ["40.00"])


def test_a_tree_has_its_totals_its_parts_and_the_meaning_of_its_signs() -> None:
    branches: Branch = (("add", (("conv", "relu"), ())), "pool")
    graph = unable(model_of((*branches * 3, "relu", ("concat", (("conv",), ("pool", "pool"))))), 13)
    often = built([Spec("conv", DATA, times=2), Spec("relu", after(0))])
    times = [SequenceTime(float(it + 1), by_roofline=it == 3) for it in range(len(graph.layers))]
    check(
        "tree",
        {
            "a model": tree(decompose(graph), 80),
            "with times": tree(decompose(graph), 80, times),
            "in sequences": tree(decompose(graph, Cutting(3)), 80),
            "a layer that runs twice": tree(decompose(often), 80),
        },
        width=80,
    )
    check("tree-wide", {"with names": tree(decompose(graph), 120)}, width=120)
