import re
from pathlib import Path

import pytest

from docs.keys import PAGE, page

DOCS = PAGE.parent
_SHOWS = re.compile(r"!\[[^\]]*\]\(([^)\s]+)\)")
PAGES = (DOCS.parent / "README.md", *sorted(DOCS.glob("*.md")))
SHOWN = [(text, picture) for text in PAGES for picture in sorted({*_SHOWS.findall(text.read_text(encoding="utf-8"))})]


def test_the_page_of_keys_matches_the_registry() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "python -m docs.keys writes it anew"


@pytest.mark.parametrize(("text", "picture"), SHOWN, ids=[f"{text.stem}-{Path(shown).stem}" for text, shown in SHOWN])
def test_every_picture_in_the_docs_exists(text: Path, picture: str) -> None:
    assert (text.parent / picture).is_file(), "make screenshots takes it"
