"""`dlbricks results compare`: two selections of results, brick by brick and model by model."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from dlbricks_tui.cli.options import share
from dlbricks_tui.cli.output import data_console, narrate, write_json, write_lines
from dlbricks_tui.cli.parser import (
    MOST_SHOWN,
    Actions,
    Status,
    Whole,
    add_action,
    add_repeatable,
    add_schema_option,
)
from dlbricks_tui.cli.store import open_store
from dlbricks_tui.printable import printable
from dlbricks_tui.wording.numbers import counted, milliseconds, percent, signed_percent

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dlbricks_tui.answers.comparisons.contrasts import ComparedPair, ComparedResults
    from dlbricks_tui.answers.comparisons.selecting import NamedSelection
    from dlbricks_tui.store.contrast import Contrast

SELECTIONS = """\
A and B each name a system (id, name or instance type), a runtime (name, framework or identity), a day (2026-11-26), a
run (id or its beginning), or filters of `dlbricks results list`. Several in one argument, with blanks between them, all
have to hold: 'onnxruntime threads=1'. The newest good result of each brick and model counts.
"""
_SHOWN = 20
_NARROWEST_NAME = 24
_FIGURES = (("A MS", 10), ("B MS", 10), ("CHANGE", 9), ("P", 7))
_MARKDOWN = "| brick or model | A ms | B ms | change | p | B is |\n|:---|---:|---:|---:|---:|:---|"


def add_compare(actions: Actions) -> None:
    """Add `compare` to the actions of `results`."""
    about = "compare the bricks and models of two systems, runtimes, days or runs"
    parser = add_action(actions, "compare", about, compare_results, json=False, epilog=SELECTIONS)
    for metavar, what in (("A", "the earlier results, or those to compare with"), ("B", "the results to judge")):
        parser.add_argument(metavar.lower(), metavar=metavar, help=what)
    add_repeatable(parser, "--where", "FILTER", "a filter that the results of both have to pass")
    parser.add_argument(
        "--limit", metavar="N", type=Whole(1, MOST_SHOWN), default=_SHOWN, help=f"show N pairs (default: {_SHOWN})"
    )
    parser.add_argument(
        "--fail-above",
        metavar="SHARE",
        type=share,
        help="exit with status 1 if all pairs together, or a whole model, are significantly slower by more than this",
    )
    formats = parser.add_mutually_exclusive_group()
    formats.add_argument("--json", action="store_true", help="print one JSON document with all pairs")
    formats.add_argument("--markdown", action="store_true", help="print Markdown, for a pull request")
    add_schema_option(parser, "ComparedResults", module="comparisons.contrasts")


def compare_results(args: argparse.Namespace) -> int:
    """Print the comparison of two selections."""
    # Loaded here: `--help` needs none of it.
    from dlbricks_tui.answers.comparisons.contrasts import compared_results
    from dlbricks_tui.answers.comparisons.selecting import select_named
    from dlbricks_tui.store.contrast import contrast
    from dlbricks_tui.wording.contrasts import NOTHING_IN_COMMON

    with open_store(args.data) as store:
        first, second = (select_named(store, text, args.where) for text in (args.a, args.b))
        found = contrast(first.selection, second.selection)
        document = compared_results(first, second, found, args.fail_above)
    if args.json:
        write_json(document)
    else:
        head = list(_head((first, second), found))
        write_lines(_markdown(head, document, args.limit) if args.markdown else _text(head, document, args.limit))
        if (more := len(document.pairs) - args.limit) > 0:
            narrate(f"{counted(more, 'more pair')}: --limit N shows N of them, --json all")
    if not document.pairs:
        narrate(NOTHING_IN_COMMON)
        return Status.DONE_WITH_FAILURES
    if document.failures:
        narrate(f"slower by more than {percent(args.fail_above, 1)}: {', '.join(document.failures)}")
    return Status.DONE_WITH_FAILURES if document.failures else Status.DONE


def _head(sides: Sequence[NamedSelection], found: Contrast) -> Iterator[str]:
    """Yield what is compared, the ratio of all pairs, and how many have which verdict."""
    from dlbricks_tui.wording.contrasts import left_out_in_words, ratio_words, verdicts_in_words

    for letter, side in zip("AB", sides, strict=True):
        yield f"{letter}: {side.name}, {counted(len(side.selection), 'result')}"
    if found.ratio is not None:
        yield "".join(ratio_words(found))
        yield f"{', '.join(words for _, words in verdicts_in_words(found))}; {left_out_in_words(found)}"


def _text(head: Sequence[str], document: ComparedResults, limit: int) -> Iterator[str]:
    """Yield the comparison as a table that fits the terminal."""
    from dlbricks_tui.wording.contrasts import SIGNS

    yield from head
    pairs = document.pairs[:limit]
    if not pairs:
        return
    longest = max(len(printable(_name_of(pair))) for pair in pairs)
    beside = sum(width + 2 for _, width in _FIGURES) + 2 + max(len(it.value) + 2 for it in SIGNS)
    width = max(_NARROWEST_NAME, min(longest, data_console().width - beside))
    yield ""
    titles = "  ".join(f"{title:>{size}}" for title, size in _FIGURES)
    yield f"{'BRICK OR MODEL':<{width}}  {titles}  B IS"
    for pair in pairs:
        figures = "  ".join(f"{text:>{size}}" for text, (_, size) in zip(_figures(pair), _FIGURES, strict=True))
        name = _cut(printable(_name_of(pair)), width)
        yield f"{name:<{width}}  {figures}  {SIGNS[pair.verdict]} {pair.verdict.value}"


def _markdown(head: Sequence[str], document: ComparedResults, limit: int) -> Iterator[str]:
    """Yield the comparison as Markdown: a list and a table."""
    for line in head:
        yield f"- {_escaped(line)}"
    if document.pairs:
        yield ""
        yield _MARKDOWN
    for pair in document.pairs[:limit]:
        yield f"| {' | '.join(map(_escaped, (_name_of(pair), *_figures(pair), pair.verdict.value)))} |"


def _figures(pair: ComparedPair) -> tuple[str, ...]:
    from dlbricks_tui.wording.contrasts import p_words

    return milliseconds(pair.a_ms), milliseconds(pair.b_ms), signed_percent(pair.change), p_words(pair.p_value)


def _name_of(pair: ComparedPair) -> str:
    return f"{pair.name} [{pair.context}]" if pair.context else pair.name


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: width - 1]}…"


def _escaped(text: str) -> str:
    """Return a text that Markdown shows as it is."""
    return "".join(f"\\{char}" if char in r"\`*_[]<>|#" else char for char in printable(text))
