"""Pages are short, their links resolve, the log has one form, and the page on accuracy shows its figures."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from functools import cache
from pathlib import Path

import pytest

from benchmarks.accuracy import FIGURES, PICTURE, PUBLISHED, together
from benchmarks.accuracy import PAGE as ACCURACY
from benchmarks.accuracy_picture import picture
from benchmarks.accuracy_report import accuracy_table, read_figures, with_table, write_figures
from docs.generators.markdown import MARK
from docs.log_index import INDEX, MOST_LINES, anchor_of, entries, index, pages

ROOT = Path(__file__).parents[2]
MOST_WORDS = 2000
MOST_WORDS_IN_ALL = 27_000
SHORT = [
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


@pytest.mark.parametrize("page", SHORT, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_has_at_most_two_thousand_words(page: Path) -> None:
    assert len(page.read_text(encoding="utf-8").split()) <= MOST_WORDS


def test_all_pages_together_have_at_most_27_thousand_words() -> None:
    """Counts README.md and docs/**/*.md: words with a letter or a digit, in text and tables.

    Code blocks, the log, and pages whose first line is the mark of a generated page do not count.
    """
    found = {str(page.relative_to(ROOT)): words(page.read_text(encoding="utf-8")) for page in SHORT}
    longest = sorted(found, key=lambda name: -found[name])[:5]
    assert sum(found.values()) <= MOST_WORDS_IN_ALL, f"the longest: {', '.join(longest)}"


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


def links_in(text: str) -> list[str]:
    """Return the targets of links_in inside the project; those in code do not count."""
    found = _LINK.findall(_CODE.sub("", _FENCED.sub("", text)))
    return [it for it in found if not re.match(r"\w+:", it)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_of_a_page_resolve(page: Path) -> None:
    found = links_in(page.read_text(encoding="utf-8"))
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
    assert links_in("[a](b.md) `[c](d.md)` [e](https://f.org)") == ["b.md"]


ENTRY = """# Log: a subject

## Is it so?

2026-11-27 · Intel · `python -m benchmarks.loads` (busy)

It took 3 ms.

Verdict: Yes. It was.
"""


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.stem))
def test_entries_are_short_and_the_newest_come_first(page: Path) -> None:
    found = entries(page.read_text(encoding="utf-8"))
    assert [it.question for it in found if it.lines > MOST_LINES] == []
    dates = [date.fromisoformat(it.date) for it in found]
    assert dates == sorted(dates, reverse=True)


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.stem))
def test_a_page_of_the_log_has_at_most_two_thousand_words(page: Path) -> None:
    assert len(page.read_text(encoding="utf-8").split()) <= 2000


def test_each_question_is_asked_once() -> None:
    asked = [it.question for page in pages() for it in entries(page.read_text(encoding="utf-8"))]
    assert len(asked) == len(set(asked))


def test_the_list_of_questions_matches_the_entries() -> None:
    assert INDEX.read_text(encoding="utf-8") == index(), "python -m docs.log_index writes it anew"


def test_an_entry_has_its_date_hosts_command_figures_and_verdict() -> None:
    (found,) = entries(ENTRY)
    assert (found.date, found.hosts, found.command) == ("2026-11-27", ("Intel",), "`python -m benchmarks.loads` (busy)")
    assert (found.figures, found.verdict, found.answer) == (("It took 3 ms.",), "Yes. It was.", "Yes")
    assert found.lines == 4


@pytest.mark.parametrize(
    ("was", "now", "complaint"),
    [
        ("Is it so?", "It is so", "is no question"),
        ("2026-11-27 · ", "", "lacks a line"),
        ("`python -m benchmarks.loads`", "somehow", "lacks a line"),
        ("Intel", "my laptop", "unknown host my laptop"),
        ("It took 3 ms.", "It was fast.", "no figures"),
        ("Verdict: ", "", "needs one verdict, and has 0"),
    ],
)
def test_an_entry_of_another_form_is_named(was: str, now: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        entries(ENTRY.replace(was, now))


def test_an_answer_goes_on_after_a_colon_until_it_says_enough() -> None:
    (found,) = entries(ENTRY.replace("Yes. It was.", "No: it took 1.5 ms (see 3; 4) on all hosts; they agree. More."))
    assert found.answer == "No: it took 1.5 ms (see 3; 4) on all hosts"


def test_anchors_are_those_of_github() -> None:
    assert anchor_of("Which constants of `alone` are needed?") == "which-constants-of-alone-are-needed"
    assert anchor_of("[Noisy hosts](hosts.md): 3 % more?") == "noisy-hosts-3--more"


PUBLISHED_FIGURES = read_figures(PUBLISHED / FIGURES)
FIGURE = replace(PUBLISHED_FIGURES[0], estimate_ms=103.0, low_ms=95.0, high_ms=110.0, measured_ms=100.0)


def test_the_table_and_the_picture_are_of_the_published_figures() -> None:
    text = ACCURACY.read_text(encoding="utf-8")
    assert with_table(text, PUBLISHED_FIGURES) == text, "python -m benchmarks.accuracy --publish writes it anew"
    assert (PUBLISHED / PICTURE).read_text(encoding="utf-8") == picture(PUBLISHED_FIGURES)


def test_the_figures_of_the_readme_are_those_of_the_page() -> None:
    page = ACCURACY.read_text(encoding="utf-8").replace("*", "")
    section = (ROOT / "README.md").read_text(encoding="utf-8").partition("## Accuracy")[2].partition("##")[0]
    rows = re.findall(r"^\| (.+) \| (.+) \| (\d+) \| (.+) % \| (.+) % \|$", section, re.MULTILINE)
    assert len(rows) == 4
    for networks, runtime, number, error, share in rows:
        framework = runtime.lower().replace(" ", "")
        alone = rf"{networks} \| {framework}-\S+, 1 thread \| 1 \| .* \| {number} \| {error}% .* \| {share}% \|"
        in_one_run = rf"{runtime}: .* \| {error} % \| .* \| {share} % \|"
        assert re.search(in_one_run if "in one run" in networks else alone, page), (networks, runtime)


def test_figures_are_read_as_they_were_written(tmp_path: Path) -> None:
    write_figures(tmp_path / "inside.csv", PUBLISHED_FIGURES)
    assert read_figures(tmp_path / "inside.csv") == PUBLISHED_FIGURES
    assert read_figures(tmp_path / "none.csv") == []


def test_a_row_has_the_mean_and_worst_error_of_its_models() -> None:
    *_, row = accuracy_table([FIGURE, replace(FIGURE, asked="vgg11", estimate_ms=98.0, high_ms=99.0)])
    assert "| 2 | 2.5% |" in row and row.endswith("| +3.0% | 100% | **50%** |")


def test_a_figure_that_misses_what_is_promised_is_bold() -> None:
    *_, row = accuracy_table([replace(FIGURE, estimate_ms=108.0, high_ms=108.0)])
    assert "| 1 | **8.0%** |" in row and row.endswith("| +8.0% | **0%** | 100% |")


def test_a_new_figure_replaces_that_of_the_same_network_and_execution() -> None:
    newer = replace(PUBLISHED_FIGURES[0], measured_ms=1.0)
    assert [it for it in together(PUBLISHED_FIGURES, [newer]) if it.place == newer.place] == [newer]
    assert len(together(PUBLISHED_FIGURES, [newer])) == len(PUBLISHED_FIGURES)
