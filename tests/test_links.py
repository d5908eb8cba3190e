"""Links between the pages of the documentation resolve."""

import re
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from docs.log_index import anchor_of

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
_FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"`[^`\n]*`")
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ +(.+?) *$", re.MULTILINE)
_IN_CODE = re.compile(r"docs/[\w/-]+\.md")


@cache
def anchors(page: Path) -> set[str]:
    """Return the anchors of a page; a heading that occurs again gets a number."""
    found: Counter[str] = Counter()
    names = set()
    for heading in _HEADING.findall(_FENCED.sub("", page.read_text(encoding="utf-8"))):
        name = anchor_of(heading)
        names.add(f"{name}-{found[name]}" if found[name] else name)
        found[name] += 1
    return names


def problem(page: Path, link: str) -> str | None:
    """Return what is wrong with a link of a page."""
    path, _, anchor = link.partition("#")
    target = (page.parent / path).resolve() if path else page
    if not target.exists():
        return f"{link}: no such file"
    if anchor and target.suffix == ".md" and anchor not in anchors(target):
        return f"{link}: no such heading"
    return None


def links(text: str) -> list[str]:
    """Return the targets of links inside the project; those in code do not count."""
    found = _LINK.findall(_CODE.sub("", _FENCED.sub("", text)))
    return [it for it in found if not re.match(r"\w+:", it)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_of_a_page_resolve(page: Path) -> None:
    found = links(page.read_text(encoding="utf-8"))
    assert [it for link in found if (it := problem(page, link))] == []


def test_pages_that_the_code_names_exist() -> None:
    sources = [it for folder in ("dlbricks_tui", "benchmarks") for it in (ROOT / folder).rglob("*.py")]
    named = {name for source in sources for name in _IN_CODE.findall(source.read_text(encoding="utf-8"))}
    assert sorted(it for it in named if not (ROOT / it).is_file()) == []


def test_a_wrong_link_is_found() -> None:
    readme = ROOT / "README.md"
    assert problem(readme, "docs/nothing.md") == "docs/nothing.md: no such file"
    glossary = "docs/reference/glossary.md"
    assert problem(readme, f"{glossary}#nothing") == f"{glossary}#nothing: no such heading"
    assert problem(readme, f"{glossary}#models") is None
    assert links("[a](b.md) `[c](d.md)` [e](https://f.org)") == ["b.md"]
