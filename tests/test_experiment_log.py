"""docs/log answers one question per entry, in one form."""

from datetime import date
from pathlib import Path

import pytest

from docs.log_index import INDEX, MOST_LINES, anchor_of, entries, index, pages

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
