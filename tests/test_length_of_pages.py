"""Pages of the documentation are short; the log and generated pages are looked up, and may be long."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from docs.generators.markdown import MARK

ROOT = Path(__file__).parents[1]
MOST_WORDS = 2000
MOST_WORDS_IN_ALL = 27_000
PAGES = [
    it
    for it in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
    if it.parent.name != "log" and not it.read_text(encoding="utf-8").startswith(MARK)
]
_FENCE = re.compile(r" *(`{3,}|~{3,})")
_LETTER_OR_DIGIT = re.compile(r"[^\W_]")


def prose(page: str) -> Iterator[str]:
    """Yield the lines of a page outside of fenced and indented blocks of code."""
    fence = ""
    after_blank, in_block = True, False
    for line in page.splitlines():
        found = _FENCE.match(line)
        if fence:
            if found and found[1].startswith(fence) and not line.strip(" `~"):
                fence = ""
        elif found:
            fence = found[1]
        else:
            in_block = line.startswith("    ") and (after_blank or in_block)
            if not in_block:
                yield line
        after_blank = not line.strip()


def words(page: str) -> int:
    """Return how many words with a letter or a digit the prose of a page has; cells of tables are prose."""
    return sum(bool(_LETTER_OR_DIGIT.search(word)) for line in prose(page) for word in line.split())


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_has_at_most_two_thousand_words(page: Path) -> None:
    assert len(page.read_text(encoding="utf-8").split()) <= MOST_WORDS


def test_all_pages_together_have_at_most_27_thousand_words() -> None:
    """Counts README.md and docs/**/*.md: words with a letter or a digit, in text and tables.

    Code blocks, the log, and pages whose first line is the mark of a generated page do not count.
    """
    found = {str(page.relative_to(ROOT)): words(page.read_text(encoding="utf-8")) for page in PAGES}
    longest = sorted(found, key=lambda name: -found[name])[:5]
    assert sum(found.values()) <= MOST_WORDS_IN_ALL, f"the longest: {', '.join(longest)}"


def test_code_and_signs_are_no_words() -> None:
    text = "# One two\n\n| three | - |\n|---|---|\n- four\n    five _ 6\n"
    code = "\n    no code\n\n    nor this\n\n````text\n```\nno\n````\n"
    assert words(text + code) == 6
