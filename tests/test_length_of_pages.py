"""Pages of the documentation are short; the log, the reference and generated pages are looked up, and may be long."""

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MOST_WORDS = 2000
GENERATED = {"keys.md"}
# To be shortened: take a page out of this list once it is.
LONG = {"glossary.md", "results.md", "workbench.md"}
PAGES = [it for it in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))) if it.name not in GENERATED | LONG]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_has_at_most_two_thousand_words(page: Path) -> None:
    assert len(page.read_text(encoding="utf-8").split()) <= MOST_WORDS
