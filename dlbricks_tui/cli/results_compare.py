"""`dlbricks results compare`: two selections of results, brick by brick and model by model."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from dlbricks_tui.cli.output import narrate, write_json, write_lines
from dlbricks_tui.cli.parser import (
    MOST_SHOWN,
    Actions,
    Status,
    Typed,
    add_action,
    add_repeatable,
    add_schema_option,
)
from dlbricks_tui.cli.store import open_store
from dlbricks_tui.printable import printable
from dlbricks_tui.settings.setting import share, whole
from dlbricks_tui.wording.numbers import counted, percent

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dlbricks_tui.answers.changes import ComparedPair
    from dlbricks_tui.documents.parts import Sentence, Table

SELECTIONS = """\
A and B each name a system (id, name or instance type), a runtime (name, framework or identity), a day (2026-11-26), a
run (id or its beginning), or filters of `dlbricks results list`. Several in one argument, with blanks between them, all
have to hold: 'onnxruntime threads=1'. The newest good result of each brick and model counts.
"""
_SHOWN = 20


def add_compare(actions: Actions) -> None:
    """Add `compare` to the actions of `results`."""
    about = "compare the bricks and models of two systems, runtimes, days or runs"
    parser = add_action(actions, "compare", about, compare_results, json=False, epilog=SELECTIONS)
    for metavar, what in (("A", "the earlier results, or those to compare with"), ("B", "the results to judge")):
        parser.add_argument(metavar.lower(), metavar=metavar, help=what)
    add_repeatable(parser, "--where", "FILTER", "a filter that the results of both have to pass")
    parser.add_argument(
        "--limit",
        metavar="N",
        type=Typed(whole(1, MOST_SHOWN)),
        default=_SHOWN,
        help=f"show N pairs (default: {_SHOWN})",
    )
    parser.add_argument(
        "--fail-above",
        metavar="SHARE",
        type=Typed(share()),
        help="exit with status 1 if all pairs together, or a whole model, are significantly slower by more than this",
    )
    formats = parser.add_mutually_exclusive_group()
    formats.add_argument("--json", action="store_true", help="print one JSON document with all pairs")
    formats.add_argument("--markdown", action="store_true", help="print Markdown, for a pull request")
    add_schema_option(parser, "ComparedResults", module="changes")


def compare_results(args: argparse.Namespace) -> int:
    """Print the comparison of two selections."""
    # Loaded here: `--help` needs none of it.
    from dlbricks_tui.answers.changes import compared_results
    from dlbricks_tui.answers.sides import select_named
    from dlbricks_tui.cli.rendering import show_parts
    from dlbricks_tui.documents.comparison import NOTHING_IN_COMMON, pair_columns, ratio_parts, selection_parts
    from dlbricks_tui.documents.parts import BLANK_LINE, Table

    with open_store(args.data) as store:
        first, second = (select_named(store, text, args.where) for text in (args.a, args.b))
        document = compared_results(store, first, second, args.fail_above)
    shown = Table(pair_columns(document.pairs), document.pairs[: args.limit])
    head = [*selection_parts((first, second)), *ratio_parts(document)]
    if args.json:
        write_json(document)
    elif args.markdown:
        write_lines(_markdown(head, shown))
    else:
        show_parts([*head, BLANK_LINE, shown] if document.pairs else head)
    if not args.json and (more := len(document.pairs) - args.limit) > 0:
        narrate(f"{counted(more, 'more pair')}: --limit N shows N of them, --json all")
    if not document.pairs:
        narrate(NOTHING_IN_COMMON)
        return Status.DONE_WITH_FAILURES
    if document.failures:
        narrate(f"slower by more than {percent(args.fail_above, 1)}: {', '.join(document.failures)}")
    return Status.DONE_WITH_FAILURES if document.failures else Status.DONE


def _markdown(head: Sequence[Sentence], table: Table[ComparedPair]) -> Iterator[str]:
    """Yield the comparison as Markdown: a list and a table."""
    from dlbricks_tui.documents.parts import CellKind

    for sentence in head:
        yield f"- {_escaped(sentence.text)}"
    if table.rows:
        yield ""
        yield f"| {' | '.join(it.title for it in table.columns)} |"
        yield f"|{'|'.join(':---' if it.kind is CellKind.NAME else '---:' for it in table.columns)}|"
    for pair in table.rows:
        figures = [str(it.cell(pair)) for it in table.columns[:-1]]
        yield f"| {' | '.join(map(_escaped, (*figures, pair.verdict.value)))} |"


def _escaped(text: str) -> str:
    """Return a text that Markdown shows as it is."""
    return "".join(f"\\{char}" if char in r"\`*_[]<>|#" else char for char in printable(text))
