"""`dlbricks results`: list, show, export, delete, verify and compact stored results."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from dlbricks_tui.cli import results_import
from dlbricks_tui.cli.output import narrate, write, write_json
from dlbricks_tui.cli.parser import Groups, Parser, Status, UsageError, add_json_option
from dlbricks_tui.cli.store import open_store
from dlbricks_tui.wording.numbers import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dlbricks_tui.store.conditions import Condition

_MOST_NAMED = 20
FILTERS = """\
A FILTER is a column, a comparison and a value: system=c5.xlarge, 'ms>5', name~conv, when>=2026-11-01, good=no,
'of=model', models~resnet50. = takes several values divided by commas, and the beginning of an id or key; ~ finds a part
of a text, and so does a word by itself in any column. ms stands for trimmed_mean_ms; models holds the models of the run
that measured the result. A result has to pass all filters.
"""


def register(groups: Groups) -> None:
    """Add `results` with its actions."""
    parser = groups.add_parser("results", help="list, show, export, import, delete, verify and compact stored results")
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)

    listing = actions.add_parser("list", help="list results, newest first", epilog=FILTERS)
    _add_filters(listing)
    listing.add_argument(
        "--sort", metavar="COLUMN", action="append", help="sort by this column, -COLUMN in descending order; repeatable"
    )
    listing.add_argument("--columns", metavar="A,B,...", help="show these columns")
    listing.add_argument("--limit", metavar="N", type=int, help="show the first N only")
    shape = listing.add_mutually_exclusive_group()
    shape.add_argument("--json", action="store_true", help="print one JSON document")
    shape.add_argument("--jsonl", action="store_true", help="print a JSON document per result")
    shape.add_argument("--csv", action="store_true", help="print comma-separated values")
    listing.set_defaults(handler=list_results)

    showing = actions.add_parser("show", help="show one result with its samples, or all of one brick")
    showing.add_argument(
        "result", metavar="RESULT", help="the first characters of the id of a result or of a brick key"
    )
    add_json_option(showing)
    showing.set_defaults(handler=show_result)

    exporting = actions.add_parser("export", help="write results to a file that `import` reads", epilog=FILTERS)
    exporting.add_argument(
        "file",
        metavar="FILE",
        type=Path,
        help="the ending says the format: .json or .json.gz, which `import` reads; .csv or .jsonl, a row per result",
    )
    _add_filters(exporting)
    exporting.add_argument("--force", action="store_true", help="replace FILE if it is there")
    add_json_option(exporting)
    exporting.set_defaults(handler=export_results)

    results_import.register(actions)

    deleting = actions.add_parser("delete", help="delete the results that pass the filters", epilog=FILTERS)
    _add_filters(deleting)
    deleting.add_argument("--all", action="store_true", help="delete every result")
    deleting.add_argument("--yes", action="store_true", help="do not ask")
    add_json_option(deleting)
    deleting.set_defaults(handler=delete_results)

    verifying = actions.add_parser("verify", help="read all results and name the damaged ones")
    add_json_option(verifying)
    verifying.set_defaults(handler=verify_store)

    compacting = actions.add_parser("compact", help="write all results into one file that plain TinyDB opens")
    add_json_option(compacting)
    compacting.set_defaults(handler=compact_store)


def list_results(args: argparse.Namespace) -> int:
    """List the results that pass the filters."""
    from dlbricks_tui.cli import results_output as output
    from dlbricks_tui.store.columns import COLUMNS
    from dlbricks_tui.store.queries import checked_columns, parse_order, select

    human = not (args.json or args.jsonl or args.csv)
    columns = checked_columns(args.columns.split(",") if args.columns else output.SHORT if human else COLUMNS)
    orders = [parse_order(text) for text in args.sort or ["-when"]]
    if args.limit is not None and args.limit < 1:
        raise UsageError("--limit takes a number from 1 on")
    with open_store(args.data) as store:
        found = select(store.generation, _conditions(args.filters), orders)
        shown = found.part(0, args.limit or len(found))
        if args.json:
            output.write_as_json(shown, columns)
        elif args.jsonl:
            output.write_as_json_lines(shown, columns)
        elif args.csv:
            output.write_as_csv(shown, columns)
        else:
            output.write_as_table(shown, columns, () if args.columns else output.SHORT_GIVES_WAY)
            narrate(
                f"{len(shown)} of {len(found)} results shown"
                if len(shown) < len(found)
                else counted(len(found), "result")
            )
    return Status.DONE


def show_result(args: argparse.Namespace) -> int:
    """Show one result in full, or all results of a brick."""
    from dlbricks_tui.cli import results_output as output
    from dlbricks_tui.store.conditions import parse_condition
    from dlbricks_tui.store.errors import QueryError
    from dlbricks_tui.store.queries import brick_form, history, select

    if not set(args.result) <= set("0123456789abcdef") or not args.result:
        raise QueryError(f"{args.result!r} is no id or brick key; `dlbricks results list --columns id,brick` has them")
    with open_store(args.data) as store:
        found = select(store.generation, [parse_condition(f"id={args.result}")])
        bricks = set(select(store.generation, [parse_condition(f"brick={args.result}")]).values("brick"))
        if len(found) + len(bricks) > 1:
            raise QueryError(
                f"{args.result} begins {counted(len(found), 'result id')} and {counted(len(bricks), 'brick key')}: "
                "give more of it"
            )
        if len(found):
            output.show_result(found, args.json)
        elif bricks:
            brick = bricks.pop()
            output.show_brick(brick, brick_form(store.generation, brick), history(store.generation, brick), args.json)
        else:
            raise QueryError(f"no result id and no brick key begins with {args.result}")
    return Status.DONE


def export_results(args: argparse.Namespace) -> int:
    """Write the results that pass the filters to a file in the format of its ending."""
    from dlbricks_tui.store.errors import ExchangeError
    from dlbricks_tui.store.exporting import export_file, export_format

    export_format(args.file)
    if args.file.is_file() and not args.force:
        raise ExchangeError(f"{args.file} is there already: name another file, or replace it with --force")
    with open_store(args.data) as store:
        results = export_file(store.generation, _conditions(args.filters), args.file)
    if args.json:
        write_json({"path": str(args.file.absolute()), "results": results})
    else:
        narrate(f"{counted(results, 'result')} written to {args.file}")
    return Status.DONE


def delete_results(args: argparse.Namespace) -> int:
    """Delete the results that pass the filters, after a question."""
    from dlbricks_tui.store.queries import select

    if not args.filters and not args.all:
        raise UsageError("say which results to delete: give filters, or --all")
    with open_store(args.data) as store:
        found = select(store.generation, _conditions(args.filters))
        everything = select(store.generation)
        deleted = 0
        if len(found) and (args.yes or _confirmed(f"Delete {len(found)} of {counted(len(everything), 'result')}?")):
            deleted = store.delete(found.values("id"))
    narrate(f"{counted(deleted, 'result')} deleted")
    if args.json:
        write_json({"deleted": deleted})
    return Status.DONE


def verify_store(args: argparse.Namespace) -> int:
    """Read everything and name what is damaged."""
    from dlbricks_tui.store.verification import verify

    found = verify(args.data.store)
    if args.json:
        write_json(
            {
                "files": found.files,
                "records": found.records,
                "damage": [str(each) for each in found.damage],
                "implausible": [
                    {"table": each.table, "id": each.uuid, "reason": each.reason} for each in found.implausible
                ],
                "recovered": found.recovered,
                "unfinished_bytes": found.unfinished_bytes,
            }
        )
    else:
        for name, size in found.files.items():
            write(f"{name}: {size} bytes\n")
        for table, count in found.records.items():
            write(f"{table.replace('_', ' ')}: {count}\n")
        write(f"damaged lines: {len(found.damage)}\n")
        write(f"implausible records: {len(found.implausible)}\n")
    for damage in found.damage:
        narrate(f"{damage} and is set aside")
    for record in found.implausible[:_MOST_NAMED]:
        narrate(f"{record}")
    if len(found.implausible) > _MOST_NAMED:
        narrate(f"and {len(found.implausible) - _MOST_NAMED} more implausible records, which --json lists")
    if found.implausible:
        narrate("no measurement gives such records; `dlbricks results delete id=ID` takes a result out")
    if found.recovered:
        recovered = counted(found.recovered, "record")
        narrate(f"{recovered} read from the previous generation in place of damaged ones")
    if found.unfinished_bytes:
        narrate(f"the last line is unfinished ({found.unfinished_bytes} bytes): its writer is at work, or was killed")
    if found.damage:
        narrate("`dlbricks results compact` writes a whole file, and the damaged lines to another one beside it")
    return Status.DONE_WITH_FAILURES if found.damage or found.implausible else Status.DONE


def compact_store(args: argparse.Namespace) -> int:
    """Write everything into one TinyDB file and print its path."""
    from dlbricks_tui.store.queries import select

    with open_store(args.data) as store:
        path = store.compact()
        results = len(select(store.generation))
    if args.json:
        write_json({"path": str(path), "results": results})
    else:
        write(f"{path}\n")
        narrate(f"{counted(results, 'result')}; the previous generation is kept until the next compaction")
    return Status.DONE


def _add_filters(parser: Parser) -> None:
    parser.add_argument("filters", metavar="FILTER", nargs="*", help="only results that pass all of them; see below")


def _conditions(filters: Sequence[str]) -> list[Condition]:
    from dlbricks_tui.store.conditions import parse_condition

    return [parse_condition(text) for text in filters]


def _confirmed(question: str) -> bool:
    if sys.stdin is None or not sys.stdin.isatty():
        raise UsageError("there is no terminal to ask on: --yes deletes without a question")
    narrate(f"{question} [y/N]")
    return sys.stdin.readline().strip().lower() in ("y", "yes")
