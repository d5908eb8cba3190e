"""The page on results names every column."""

from dlbricks_tui.store.columns import COLUMNS
from docs.generators.markdown import REFERENCE


def test_the_page_names_every_column() -> None:
    page = (REFERENCE / "results.md").read_text(encoding="utf-8")
    assert [it for it in COLUMNS if f"`{it}`" not in page] == []
