import pytest

from dlbricks_tui.documents.layout import ASCII, laid_out
from dlbricks_tui.documents.lines import width_of
from dlbricks_tui.documents.parts import Grid

FIFTY = Grid(
    tuple(f"model {at}" for at in range(50)), [[float(one == other) for other in range(50)] for one in range(50)]
)


@pytest.mark.parametrize("width", [60, 80, 120])
def test_columns_without_room_follow_below_and_every_two_names_have_a_shade(width: int) -> None:
    lines = list(laid_out([FIFTY], width))
    assert max(map(width_of, lines)) <= width
    for number in range(1, 51):
        rows = ["".join(span.text for span in line) for line in lines]
        shades = "".join(row.split()[-1] for row in rows if row.startswith(f"{number:>2} model"))
        assert len(shades) == 50 and shades[number - 1] == "█" and shades.count("·") == 49


def test_few_names_have_numbers_and_only_nothing_is_none_and_only_all_is_all() -> None:
    grid = Grid(("one", "a much longer name"), [[1.0, 0.004], [0.996, 0.0]])
    lines = ["".join(span.text for span in line).rstrip() for line in laid_out([grid], 60, ASCII)]
    assert lines == [
        ". none  : below 25 %  + below 50 %  * below 100 %  # all",
        "                        1     2",
        "1 one                 100 #  <1 :",
        "2 a much longer name   99 *   0 .",
    ]
