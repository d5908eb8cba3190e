"""`dlbricks results`: list, show, compare, export, import, delete, verify and compact stored results."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from dlbricks_tui.cli.output import (
    data_console,
    narrate,
    narrate_some,
    show_parts,
    write,
    write_csv,
    write_json,
    write_json_lines,
    write_lines,
)
from dlbricks_tui.cli.parser import Arguments, Parser, Status, Typed, UsageError, path_in
from dlbricks_tui.printable import printable
from dlbricks_tui.settings.setting import share
from dlbricks_tui.wording.numbers import counted, percent

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dlbricks_tui.api.changes import ComparedPair
    from dlbricks_tui.api.stored_results import ShownResult
    from dlbricks_tui.documents.parts import Sentence, Table

FILTERS = """\
A FILTER is a column, a comparison and a value: system=c5.xlarge, 'ms>5', name~conv, when>=2026-11-01, good=no,
'of=model', models~resnet50. = takes several values divided by commas, and the beginning of an id or key; ~ finds a part
of a text, and so does a word by itself in any column. ms stands for trimmed_mean_ms; models holds the model, or for a
brick the models of its run. A result has to pass all filters.
"""
SELECTIONS = """\
A and B each name a system (id, name or instance type), a runtime (name, framework or identity), a day (2026-11-26), a
run (id or its beginning), or filters of `dlbricks results list`. Several in one argument, with blanks between them, all
have to hold: 'onnxruntime threads=1'. The newest good result of each brick and model counts.
"""
_SHOWN_PAIRS = 20
_OWN, _PUBLISHED = "dlbricks", "dlbricks-2019"


def register(parser: Parser) -> None:
    """Add the actions of `results`."""
    parser.add_actions()
    listing = parser.add_action("list", "list results, newest first", list_results, json=False, epilog=FILTERS)
    _add_filters(listing)
    about = "sort by this column, -COLUMN in descending order; repeatable"
    listing.add_argument("--sort", metavar="COLUMN", action="append", help=about)
    listing.add_argument("--columns", metavar="A,B,...", help="show these columns")
    listing.add_count("--limit", "show the first N only")
    listing.add_formats(lines=True)

    about = "show one result or load test with its samples, or all results of one brick"
    showing = parser.add_action("show", about, show_result)
    showing.add_argument("result", metavar="RESULT", help="the first characters of an id or of a brick key")

    _add_compare(parser)

    about = "write results to a file that `import` reads"
    exporting = parser.add_action("export", about, export_results, epilog=FILTERS)
    about = "the ending says the format: .json or .json.gz, which `import` reads; .csv or .jsonl, a row per result"
    exporting.add_file("file", about=about)
    _add_filters(exporting)
    exporting.add_flag("--force", about="replace FILE if it is there")
    about = "sign FILE by ssh-keygen or minisign with this private key, or with the key of an agent by its .pub file"
    exporting.add_file("--sign", metavar="KEY", about=about)

    _add_import(parser)

    about = "delete the results that pass the filters"
    deleting = parser.add_action("delete", about, delete_results, epilog=FILTERS)
    _add_filters(deleting)
    deleting.add_flag("--all", about="delete every result, proof and load test")
    deleting.add_flag("--yes", about="do not ask")
    some = "deletes everything, and a FILTER some of it: leave one of them out"
    deleting.only("--all", where=lambda it: not it.filters, why=some)

    verifying = parser.add_action("verify", "read all results and name the damaged ones", verify_store)
    about = "date records from the future, which a clock that was ahead gave, like those stored before them"
    verifying.add_flag("--correct-dates", about=about)
    parser.add_action("compact", "write all results into one file that plain TinyDB opens", compact_store)


def _add_filters(parser: Parser) -> None:
    parser.add_argument("filters", metavar="FILTER", nargs="*", help="only results that pass all of them; see below")


def _add_compare(parser: Parser) -> None:
    about = "compare the bricks and models of two systems, runtimes, days or runs"
    comparing = parser.add_action("compare", about, compare_results, json=False, epilog=SELECTIONS)
    for metavar, what in (("A", "the earlier results, or those to compare with"), ("B", "the results to judge")):
        comparing.add_argument(metavar.lower(), metavar=metavar, help=what)
    comparing.add_repeatable("--where", "FILTER", "a filter that the results of both have to pass")
    comparing.add_count("--limit", f"show N pairs (default: {_SHOWN_PAIRS})", default=_SHOWN_PAIRS)
    about = "exit with status 1 if all models (without any: all bricks), or one model, are slower by more than this"
    comparing.add_argument("--fail-above", metavar="SHARE", type=Typed(share()), help=about)
    formats = comparing.add_mutually_exclusive_group()
    comparing.add_flag("--json", about="print one JSON document with all pairs", to=formats)
    comparing.add_flag("--markdown", about="print Markdown, for a pull request", to=formats)
    comparing.add_schema("changes.ComparedResults")


def _add_import(parser: Parser) -> None:
    about = "import exported results, or the published measurements of the paper"
    importing = parser.add_action("import", about, run_import)
    about = "a file of `results export`, a folder of such files, or a checkout (see --format)"
    importing.add_file("paths", about=about, nargs="+")
    importing.add_flag("--require-signature", about="refuse files without a signature")
    about = "more trusted signers: an allowed_signers file of OpenSSH, or a public key of minisign"
    importing.add_repeatable("--signers", "FILE", about, type=path_in)
    importing.add_flag("--ignore-signatures", about="import signed files as unsigned, without verifying them")
    importing.add_schema("store_contents.ImportResult", many=True)
    unsigned = "is for exported files, and checkouts have no signatures: leave it out"
    signing = ("--require-signature", "--signers", "--ignore-signatures")
    importing.only(*signing, where=lambda it: it.format == _OWN, why=unsigned)
    importing.add_argument(
        "--format",
        choices=(_OWN, _PUBLISHED),
        default=_OWN,
        help=f"{_PUBLISHED}: each FILE is a checkout of github.com/rai-project/synthetic_benchmark, the measurements "
        f"of the DLBricks paper (default: {_OWN}, what `results export` writes)",
    )


def list_results(args: Arguments) -> int:
    """List the results that pass the filters."""
    # Loaded here, as below: the help needs no store.
    from dlbricks_tui.api.stored_results import (
        columns_named,
        listed_results,
        objects_of,
        precision_remarks,
        rows_of,
    )

    columns = columns_named(args.columns.split(",") if args.columns else ())
    with args.session.open_store() as store:
        found = listed_results(store, args.filters, args.sort or ["-when"])
        shown = found[: args.limit]
        if args.json:
            write_json(list(objects_of(shown, columns)))
        elif args.jsonl:
            write_json_lines(objects_of(shown, columns))
        elif args.csv:
            write_csv([columns, *rows_of(shown, columns)])
        elif not found and not args.filters:
            narrate("no result yet: `dlbricks run MODEL` makes the first")
        else:
            from dlbricks_tui.documents.results import list_lines, short_lines

            width = data_console().width
            write_lines(list_lines(shown, columns, width) if args.columns else short_lines(shown, width))
            narrate(*precision_remarks(shown))
            every = counted(len(found), "result")
            narrate(f"{len(shown)} of {len(found)} results shown" if len(shown) < len(found) else every)
    return Status.DONE


def show_result(args: Arguments) -> int:
    """Show one result in full, or all results of a brick."""
    from dlbricks_tui.api.stored_results import found_result, precision_remarks

    with args.session.open_store() as store:
        found = found_result(store, args.result)
        if args.json:
            write_json(found.document())
        else:
            _show(found)
        if found.selection is not None:
            narrate(*precision_remarks(found.selection))
    return Status.DONE


def _show(found: ShownResult) -> None:
    # Loaded here: JSON needs no rich.
    from dlbricks_tui.documents.parts import BLANK_LINE, Heading
    from dlbricks_tui.documents.results import (
        OF_A_BRICK,
        OF_A_BRICK_GIVES_WAY,
        list_lines,
        origin_parts,
        result_parts,
        sample_parts,
        title_of,
    )

    if found.test is not None:
        from dlbricks_tui.documents.scenario import latency_parts, load_test_parts

        show_parts([*load_test_parts(found.test), *latency_parts(found.test)])
        if found.origin is not None:
            show_parts([BLANK_LINE, *origin_parts(found.origin, found.test.model)])
    elif found.selection is not None and found.brick:
        newest = len(found.selection) - 1
        show_parts([Heading(title_of(found.selection[newest]))])
        # Lines that are copied are not wrapped.
        form = [] if found.canonical is None else [f"canonical form  {printable(found.canonical)}"]
        write_lines([f"brick           {found.brick}", *form, ""])
        write_lines(list_lines(found.selection, OF_A_BRICK, data_console().width, OF_A_BRICK_GIVES_WAY))
        show_parts([BLANK_LINE, *sample_parts(found.selection.result(newest))])
    elif found.selection is not None:
        result = found.selection.result(0)
        show_parts(result_parts(found.selection[0], result, found.origin, file=found.file))


def compare_results(args: Arguments) -> int:
    """Print the comparison of two selections."""
    from dlbricks_tui.api.changes import compared_results
    from dlbricks_tui.api.sides import select_named
    from dlbricks_tui.documents.comparison import NOTHING_IN_COMMON, pair_columns, ratio_parts, selection_parts
    from dlbricks_tui.documents.parts import BLANK_LINE, Table

    with args.session.open_store() as store:
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
    elif document.failures:
        narrate(f"slower by more than {percent(args.fail_above, 1)}: {', '.join(document.failures)}")
    return Status.of(not document.pairs or document.failures)


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


def export_results(args: Arguments) -> int:
    """Write the results that pass the filters to a file in the format of its ending."""
    from dlbricks_tui.api import stored_results

    stored_results.require_new_export(args.file, replace=args.force)
    with args.session.open_store() as store:
        results, signature = stored_results.export_results(store, args.file, args.filters, args.sign)
    if args.json:
        signed = None if signature is None else signature.absolute()
        write_json({"path": args.file.absolute(), "results": results, "signature": signed})
    else:
        signed_in = "" if signature is None else f", with the signature {signature}"
        narrate(f"{counted(results, 'result')} written to {args.file}{signed_in}")
    return Status.DONE


def run_import(args: Arguments) -> int:
    """Import results, and say which were known, which could not be used and which cannot be read."""
    if args.require_signature and args.ignore_signatures:
        raise UsageError("--require-signature and --ignore-signatures exclude each other")
    documents, complete = _import_published(args) if args.format == _PUBLISHED else _import_files(args)
    if args.json:
        write_json(documents)
    return Status.of(not complete)


def _import_files(args: Arguments) -> tuple[Sequence[Any], bool]:
    """Import exported files and folders; return a document for each, and True if all of each could be read."""
    from dlbricks_tui.api.store_contents import import_lines, import_results, imported

    with args.session.open_store() as store:
        done = imported(
            store,
            args.paths,
            args.session.data,
            signers=args.signers,
            require_signature=args.require_signature,
            ignore_signatures=args.ignore_signatures,
        )
    narrate(*import_lines(done))
    return import_results(done), done.complete


def _import_published(args: Arguments) -> tuple[Sequence[Any], bool]:
    """Import checkouts like `_import_files` imports files."""
    from dlbricks_tui.api.store_contents import ImportedCheckout, checkout_reports, system_lines

    found: list[ImportedCheckout] = []
    with args.session.open_store() as store, args.session.open_loader() as loader:
        for checkout in args.paths:
            reports = []
            for report in checkout_reports(store, checkout, args.session.data, loader):
                narrate(*system_lines(report))
                narrate_some([str(row) for row in report.unmatched], "rows")
                narrate_some([f"{file}; it was skipped" for file in report.broken], "broken files")
                reports.append(report)
            found.append(ImportedCheckout(checkout, tuple(reports)))
            narrate(*found[-1].lines)
    return [it.document() for it in found], not any(it.is_broken for it in found)


def delete_results(args: Arguments) -> int:
    """Delete the results that pass the filters, after a question."""
    from dlbricks_tui.api.stored_results import names_ids, to_delete

    if not args.filters and not args.all:
        raise UsageError("say which results to delete: give filters, or --all")
    with args.session.open_store() as store:
        wanted, everything = to_delete(store, args.filters), counted(to_delete(store, ()).number, "result")
        deleted = 0
        if wanted.number and (args.yes or _confirmed(f"Delete {wanted.number} of {everything}?")):
            store.delete(wanted.ids)
            deleted = wanted.number
    narrate(f"{counted(deleted, 'result')} deleted")
    if args.json:
        write_json({"deleted": deleted})
    return Status.of(names_ids(args.filters) and not wanted.number)


def _confirmed(question: str) -> bool:
    if sys.stdin is None or not sys.stdin.isatty():
        raise UsageError("there is no terminal to ask on: --yes deletes without a question")
    narrate(f"{question} [y/N]")
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def verify_store(args: Arguments) -> int:
    """Read everything and name what is damaged."""
    from dlbricks_tui.api.stored_results import correct_dates, verification_document, verify

    if args.correct_dates:
        narrate(f"{counted(correct_dates(args.session.data), 'date')} corrected")
    found = verify(args.session.data.store)
    if args.json:
        write_json(verification_document(found))
    else:
        write_lines(f"{name}: {size} bytes" for name, size in found.files.items())
        write_lines(f"{table.replace('_', ' ')}: {count}" for table, count in found.records.items())
        write(f"damaged lines: {len(found.damage)}\nimplausible records: {len(found.implausible)}\n")
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
    return Status.of(found.damage or found.implausible)


def compact_store(args: Arguments) -> int:
    """Write everything into one TinyDB file and print its path."""

    with args.session.open_store() as store:
        path = store.compact()
        results = len(store.results())
    if args.json:
        write_json({"path": path, "results": results})
    else:
        write(f"{path}\n")
        narrate(f"{counted(results, 'result')}; the previous generation is kept until the next compaction")
    # Opened again, the store has no damage to tell of.
    aside = path.with_name(f"set-aside-{int(path.stem.rpartition('-')[2]) - 1}.txt")
    if aside.is_file():
        narrate(f"damaged lines were left out: {aside} has them, with the reasons")
    return Status.DONE
