"""The documentation's page on Table 1 says what the samples are."""

import re
from collections.abc import Callable

import pytest

from dlbricks_tui.bricks.decomposition import Corpus, Decomposition, corpus_of_bricks, model_bricks
from dlbricks_tui.models.library import ModelSource
from sample_models.builders.__main__ import SAMPLES

PAGE = SAMPLES.parent / "docs" / "reference" / "table1.md"


@pytest.fixture(scope="module")
def sources(samples: tuple[ModelSource, ...]) -> tuple[ModelSource, ...]:
    return tuple(source for source in samples if source.table1_id)


@pytest.fixture(scope="module")
def corpus(sources: tuple[ModelSource, ...], decomposed: Callable[[ModelSource], Decomposition]) -> Corpus:
    return corpus_of_bricks([model_bricks(decomposed(source)) for source in sources])


def rows(first: str) -> list[list[str]]:
    """The cells of the table lines that begin with what the pattern matches."""
    lines = (line for line in PAGE.read_text(encoding="utf-8").splitlines() if re.match(rf"\| {first} \|", line))
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_every_row_has_the_papers_number_of_layers() -> None:
    assert all(paper == here for _, _, _, paper, here, _, _, _ in rows(r"\d+"))


def test_only_capsnet_has_more_unique_layers_than_the_published_files() -> None:
    assert [number for number, *_, published, unique, _ in rows(r"\d+") if published != unique] == ["4"]


def test_the_page_has_the_totals(corpus: Corpus) -> None:
    share = f"{100 * corpus.unique_layers / corpus.layers:.1f} %"
    assert rows("layers of the fifty models")[0][1:] == ["10,815", f"{corpus.layers:,}"]
    assert rows("unique layers among them")[0][2] == f"{corpus.unique_layers:,}"
    assert rows(r"\.\.\. in percent")[0][2] == share
    assert rows("`written`") == [["`written`", f"{corpus.layers:,}", f"{corpus.unique_layers:,}", share]]
    steps = [cells[1] for cells in rows(r"(published, by|a sum|convolutions that|CapsNet:).*?")]
    assert sum(int(step.replace(",", "").replace(" ", "")) for step in steps) == corpus.unique_layers


def test_the_page_says_which_kinds_repeat_most(corpus: Corpus) -> None:
    repeated = sum(found.repeated for found in corpus.repeated_types)
    text = " ".join(PAGE.read_text(encoding="utf-8").split())
    assert f"{repeated:,} occur more than once in their own model" in text
    said = re.search(r"\(([\d.]+) %\), then .*?\(([\d.]+) %\), .*?\(([\d.]+) %\) and .*?\(([\d.]+) %\)", text)
    assert said is not None
    assert list(said.groups()) == [f"{100 * found.repeated / repeated:.1f}" for found in corpus.repeated_types[:4]]


def test_the_page_groups_the_models_that_consist_of_the_same_layers(corpus: Corpus) -> None:
    groups = {tuple(number for number, one in enumerate(row, 1) if one == 1.0) for row in corpus.jaccard}
    text = " ".join(PAGE.read_text(encoding="utf-8").split())
    said = re.search(r"consist of the same unique layers: (.*?)\. All", text)
    assert said is not None
    assert {_numbers(group) for group in said[1].split(";")} == {group for group in groups if len(group) > 1}


def _numbers(text: str) -> tuple[int, ...]:
    """`2, 30 and 33 to 35` as numbers."""
    found: list[int] = []
    for part in re.split(r",| and ", text):
        first, *last = map(int, re.findall(r"\d+", part))
        found += range(first, (last or [first])[0] + 1)
    return tuple(found)
