"""The document about users of a language model."""

import pytest

from dlbricks_tui.documents.token_loads import token_load_line, token_load_parts, token_load_plots
from tests.api.token_load_answers import token_load_answer
from tests.documents.snapshots import check


@pytest.mark.parametrize("width", [80, 120])
def test_an_answer_says_who_is_served_in_which_way(width: int) -> None:
    cases = {
        "driven": token_load_answer(),
        "predicted, with pauses": token_load_answer((), is_driven=False, coverage=0.0, think_s=20.0),
        "bounds that nothing meets": token_load_answer((1,), first_token_ms=100.0),
    }
    check(f"token_loads_{width}", {name: [*token_load_parts(it)] for name, it in cases.items()}, width)


def test_the_line_names_the_way_that_serves_most() -> None:
    assert token_load_line(token_load_answer()) == "~4 users (4 to 4) by static batches; ~2 one after another"
    alone = token_load_answer(per_token_ms=21.0)
    assert token_load_line(alone) == "~2 users (0 to 2) one after another"
    assert token_load_line(token_load_answer(first_token_ms=1.0)) == (
        "no user is served within both bounds: ~500 ms to the first token, ~20 ms for later ones"
    )
    loose = token_load_line(token_load_answer(first_token_ms=1e7, per_token_ms=1e6))
    assert loose.startswith("~256 or more users (256 or more to 256 or more) by ")


def test_the_pictures_show_both_bounds_and_every_way() -> None:
    first, later = token_load_plots(token_load_answer())
    assert [it.value for it in (*first.levels, *later.levels)] == [4.0, 60.0]
    for plot in (first, later):
        assert [it.name for it in plot.series] == ["single", "static", "continuous"]
        assert all(plot.up.low <= y <= plot.up.high for it in plot.series for _, y in it.points)
