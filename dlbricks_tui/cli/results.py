"""`dlbricks results`: list, show, compare, export, delete, verify and compact stored results."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from dlbricks_tui.answers.documents import document
from dlbricks_tui.cli import results_compare, results_import
from dlbricks_tui.cli import results_output as output
from dlbricks_tui.cli.output import narrate, narrate_some, write, write_csv, write_json, write_json_lines
from dlbricks_tui.cli.parser import (
    MOST_SHOWN,
    Parser,
    Status,
    Typed,
    UsageError,
    add_action,
    add_actions,
    add_format_options,
)
from dlbricks_tui.cli.store import open_store
from dlbricks_tui.runtime.variant import remarks_on, stated_precision
from dlbricks_tui.settings.setting import whole
from dlbricks_tui.store.columns import COLUMNS
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.documents import TABLES
from dlbricks_tui.store.errors import ExchangeError, QueryError
from dlbricks_tui.store.exporting import export_all, export_format, export_selection
from dlbricks_tui.store.index import RESULT_TABLES
from dlbricks_tui.store.records import BrickForm, LoadTest
from dlbricks_tui.store.selections import OLDEST_FIRST, Selection, checked_columns, equal, parse_order
from dlbricks_tui.store.verification import verify
from dlbricks_tui.wording.numbers import counted

_BY_ID = "id="
FILTERS = """\
A FILTER is a column, a comparison and a value: system=c5.xlarge, 'ms>5', name~conv, when>=2026-11-01, good=no,
'of=model', models~resnet50. = takes several values divided by commas, and the beginning of an id or key; ~ finds a part
of a text, and so does a word by itself in any column. ms stands for trimmed_mean_ms; models holds the model, or for a
brick the models of its run. A result has to pass all filters.
"""


def register(parser: Parser) -> None:
    """Add the actions of `results`."""
    actions = add_actions(parser, required=True)

    listing = add_action(actions, "list", "list results, newest first", list_results, json=False, epilog=FILTERS)
    _add_filters(listing)
    listing.add_argument(
        "--sort", metavar="COLUMN", action="append", help="sort by this column, -COLUMN in descending order; repeatable"
    )
    listing.add_argument("--columns", metavar="A,B,...", help="show these columns")
    listing.add_argument("--limit", metavar="N", type=Typed(whole(1, MOST_SHOWN)), help="show the first N only")
    add_format_options(listing, lines=True)

    about = "show one result or load test with its samples, or all results of one brick"
    showing = add_action(actions, "show", about, show_result)
    showing.add_argument("result", metavar="RESULT", help="the first characters of an id or of a brick key")

    results_compare.add_compare(actions)

    about = "write results to a file that `import` reads"
    exporting = add_action(actions, "export", about, export_results, epilog=FILTERS)
    exporting.add_argument(
        "file",
        metavar="FILE",
        type=Path,
        help="the ending says the format: .json or .json.gz, which `import` reads; .csv or .jsonl, a row per result",
    )
    _add_filters(exporting)
    exporting.add_argument("--force", action="store_true", help="replace FILE if it is there")
    exporting.add_argument(
        "--sign",
        metavar="KEY",
        type=Path,
        help="sign FILE by ssh-keygen or minisign with this private key, or with the key of an agent by its .pub file",
    )

    results_import.add_import(actions)

    about = "delete the results that pass the filters"
    deleting = add_action(actions, "delete", about, delete_results, epilog=FILTERS)
    _add_filters(deleting)
    deleting.add_argument("--all", action="store_true", help="delete every result, proof and load test")
    deleting.add_argument("--yes", action="store_true", help="do not ask")

    verifying = add_action(actions, "verify", "read all results and name the damaged ones", verify_store)
    about = "date records from the future, which a clock that was ahead gave, like those stored before them"
    verifying.add_argument("--correct-dates", action="store_true", help=about)
    add_action(actions, "compact", "write all results into one file that plain TinyDB opens", compact_store)


def list_results(args: argparse.Namespace) -> int:
    """List the results that pass the filters."""
    human = not (args.json or args.jsonl or args.csv)
    columns = checked_columns(args.columns.split(",") if args.columns else output.SHORT if human else COLUMNS)
    orders = [parse_order(text) for text in args.sort or ["-when"]]
    with open_store(args.data) as store:
        found = store.results(*args.filters, order=orders)
        shown = found[: args.limit]
        if args.json:
            write_json(list(output.objects_of(shown, columns)))
        elif args.jsonl:
            write_json_lines(output.objects_of(shown, columns))
        elif args.csv:
            write_csv([columns, *output.rows_of(shown, columns)])
        else:
            if args.columns:
                output.write_as_table(shown, columns)
            else:
                output.write_short_table(shown)
            _tell_unchecked(shown)
            narrate(
                f"{len(shown)} of {len(found)} results shown"
                if len(shown) < len(found)
                else counted(len(found), "result")
            )
    return Status.DONE


def show_result(args: argparse.Namespace) -> int:
    """Show one result in full, or all results of a brick."""
    if not set(args.result) <= set("0123456789abcdef") or not args.result:
        raise QueryError(f"{args.result!r} is no id or brick key; `dlbricks results list --columns id,brick` has them")
    with open_store(args.data) as store:
        found = store.select(f"id={args.result}")
        bricks = store.select(f"brick={args.result}").distinct("brick")
        if len(found) + len(bricks) > 1:
            raise QueryError(
                f"{counted(len(found), 'result id')} and {counted(len(bricks), 'brick key')} begin with {args.result}: "
                "give more characters"
            )
        if len(found):
            output.show_result(store, store.result_of(found[0]), args.json)
            _tell_unchecked(found)
        elif bricks:
            brick = bricks.pop()
            form = next(iter(store.records(BrickForm, equal(key=brick))), None)
            history = store.results(equal(brick=brick), order=OLDEST_FIRST)
            output.show_brick(brick, form, history, args.json)
            _tell_unchecked(history)
        else:
            tests = [it for it in store.records(LoadTest) if it.uuid.startswith(args.result)]
            if len(tests) != 1:
                raise QueryError(
                    f"{len(tests)} load tests begin with {args.result}: give more characters"
                    if tests
                    else f"no id of a result or load test and no brick key begins with {args.result}"
                )
            output.show_load_test(store, tests[0], args.json)
    return Status.DONE


def _tell_unchecked(results: Selection) -> None:
    for remark in remarks_on(stated_precision(it) for it in sorted(results.distinct("runtime"))):
        narrate(remark)


def export_results(args: argparse.Namespace) -> int:
    """Write the results that pass the filters to a file in the format of its ending."""
    export_format(args.file)
    if args.file.is_file() and not args.force:
        raise ExchangeError(f"{args.file} is there already: name another file, or replace it with --force")
    # Loaded here: other actions need no signatures.
    from dlbricks_tui.share.signatures import export_signed, remove_signatures

    signature = None
    with open_store(args.data) as store:

        def export(path: Path) -> int:
            if args.filters:
                return export_selection(store.results(*args.filters, order=OLDEST_FIRST), path)
            return export_all(store, path)

        if args.sign is not None:
            results, signature = export_signed(args.file, args.sign, export)
        else:
            results = export(args.file)
            if args.file.is_file():
                remove_signatures(args.file)
    if args.json:
        signed = None if signature is None else signature.absolute()
        write_json({"path": args.file.absolute(), "results": results, "signature": signed})
    else:
        signed_in = "" if signature is None else f", with the signature {signature}"
        narrate(f"{counted(results, 'result')} written to {args.file}{signed_in}")
    return Status.DONE


def delete_results(args: argparse.Namespace) -> int:
    """Delete the results that pass the filters, after a question."""
    if not args.filters and not args.all:
        raise UsageError("say which results to delete: give filters, or --all")
    with open_store(args.data) as store:
        found, apart = store.results(*args.filters), _apart(store, args.filters)
        everything = len(store.results()) + len(_apart(store, ()))
        deleted, wanted = 0, len(found) + len(apart)
        if wanted and (args.yes or _confirmed(f"Delete {wanted} of {counted(everything, 'result')}?")):
            store.delete([*found.records.values("id"), *apart])
            deleted = wanted
    narrate(f"{counted(deleted, 'result')} deleted")
    if args.json:
        write_json({"deleted": deleted})
    named = any(text.startswith(_BY_ID) for text in args.filters)
    return Status.DONE_WITH_FAILURES if named and not wanted else Status.DONE


def _apart(store: ResultsDatabase, filters: Sequence[str]) -> list[str]:
    """Return the ids of load tests and proofs, which are listed by other commands.

    Filters find them by their id, and by that also records of any other kind, which `verify` may name.
    """
    by_id = any(text.startswith(_BY_ID) for text in filters)
    known = store.ids(*([it for it in TABLES if it not in RESULT_TABLES] if by_id else ("proofs", "load_tests")))
    for text in filters:
        wanted = tuple(text.removeprefix(_BY_ID).split(",")) if text.startswith(_BY_ID) else ()
        known = [uuid for uuid in known if any(each and uuid.startswith(each) for each in wanted)]
    return known


def verify_store(args: argparse.Namespace) -> int:
    """Read everything and name what is damaged."""
    if args.correct_dates:
        with ResultsDatabase(args.data.store) as store:
            corrected = store.correct_dates()
        narrate(f"{counted(corrected, 'date')} corrected")
    found = verify(args.data.store)
    if args.json:
        implausible = [{"table": it.table, "id": it.uuid, "reason": it.reason} for it in found.implausible]
        damage = [str(each) for each in found.damage]
        write_json({**document(found), "damage": damage, "implausible": implausible})
    else:
        for name, size in found.files.items():
            write(f"{name}: {size} bytes\n")
        for table, count in found.records.items():
            write(f"{table.replace('_', ' ')}: {count}\n")
        write(f"damaged lines: {len(found.damage)}\n")
        write(f"implausible records: {len(found.implausible)}\n")
    for line in found.damage:
        narrate(f"{line} and is set aside")
    narrate_some([str(record) for record in found.implausible], "implausible records")
    if found.future:
        narrate("a clock was ahead, or this one is behind: `dlbricks results verify --correct-dates` corrects dates")
    if len(found.implausible) > found.future:
        narrate("no measurement gives such records; `dlbricks results delete id=ID` takes one out")
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
    with open_store(args.data) as store:
        path = store.compact()
        results = len(store.results())
    if args.json:
        write_json({"path": path, "results": results})
    else:
        write(f"{path}\n")
        narrate(f"{counted(results, 'result')}; the previous generation is kept until the next compaction")
    return Status.DONE


def _add_filters(parser: Parser) -> None:
    parser.add_argument("filters", metavar="FILTER", nargs="*", help="only results that pass all of them; see below")


def _confirmed(question: str) -> bool:
    if sys.stdin is None or not sys.stdin.isatty():
        raise UsageError("there is no terminal to ask on: --yes deletes without a question")
    narrate(f"{question} [y/N]")
    return sys.stdin.readline().strip().lower() in ("y", "yes")
