"""Pages of the documentation are short; the log and generated pages are looked up, and may be long."""

from pathlib import Path

import pytest

from docs.generators.markdown import MARK

ROOT = Path(__file__).parents[1]
MOST_WORDS = 2000
PAGES = [
    it
    for it in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
    if it.parent.name != "log" and not it.read_text(encoding="utf-8").startswith(MARK)
]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_has_at_most_two_thousand_words(page: Path) -> None:
    assert len(page.read_text(encoding="utf-8").split()) <= MOST_WORDS
