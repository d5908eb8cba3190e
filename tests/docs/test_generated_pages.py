"""Generated pages of the documentation are what their generators write."""

import pytest

from docs.generators.__main__ import PAGES
from docs.generators.markdown import MARK, REFERENCE, table


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_what_its_generator_writes(name: str) -> None:
    text = (REFERENCE / f"{name}.md").read_text(encoding="utf-8")
    assert text == PAGES[name](), "make reference writes it anew"
    assert text.startswith(MARK)


def test_cells_keep_bars_and_stay_on_one_line() -> None:
    assert table(("key", "action"), [("`|`", "open\n  it")]) == "| key | action |\n|---|---|\n| `\\|` | open it |\n"
