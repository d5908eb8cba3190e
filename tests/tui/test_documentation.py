import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
_SHOWS = re.compile(r"!\[[^\]]*\]\(([^)\s]+)\)")
PAGES = (DOCS.parent / "README.md", *sorted(DOCS.rglob("*.md")))
SHOWN = [(text, picture) for text in PAGES for picture in sorted({*_SHOWS.findall(text.read_text(encoding="utf-8"))})]


@pytest.mark.parametrize(("text", "picture"), SHOWN, ids=[f"{text.stem}-{Path(shown).stem}" for text, shown in SHOWN])
def test_every_picture_in_the_docs_exists(text: Path, picture: str) -> None:
    assert (text.parent / picture).is_file(), "make screenshots takes it"
