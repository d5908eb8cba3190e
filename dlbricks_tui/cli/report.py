"""`dlbricks report`: the paper's tables and figures, from the store, or a comparison of results, as one page."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any

from dlbricks_tui.cli.options import add_input_options, estimate_options_of, given_options, inputs_of
from dlbricks_tui.cli.output import narrate, write, write_json
from dlbricks_tui.cli.parser import Arguments, Parser, Status, UsageError
from dlbricks_tui.settings.variant import RUNTIME
from dlbricks_tui.wording.numbers import names_of

if TYPE_CHECKING:
    from dlbricks_tui.api.reported import ReportContents
    from dlbricks_tui.report.page import Report

_SECONDS_PER_LINE = 2.0
_FEWEST = 2


def register(parser: Parser) -> None:
    """Add the options of `report`."""
    about = "the folder for index.html and its figures, created if missing"
    parser.add_file("-o", "--output", metavar="DIR", required=True, about=about)
    parser.add_argument(
        "--models",
        metavar="MODEL",
        nargs="+",
        help="models to report on: files, names that `dlbricks models` lists, table1:ID; `table1` stands for all fifty "
        "(default: the models of the library with results)",
    )
    add_input_options(parser)
    about = "only this system of the store, by its id, name or instance type (default: all)"
    parser.add_repeatable("--system", "S", about, dest="systems")
    about = "only results of this runtime, or of all runtimes with this framework, and the files that it reads "
    parser.add_argument("--runtime", metavar="R", help=f"{about}(default: all)")
    parser.add_argument(
        "--compare",
        metavar="A",
        nargs="+",
        help="instead, compare the first with each other one: files of `results export` (.json, .json.gz), or "
        "selections of the store as `results compare` takes them, such as a system, a day or a run",
    )
    parser.end(report)


def report(args: Arguments) -> int:
    """Report on models, or compare sides, and print the path of the page."""
    # `Path.exists` raises an error for a name that is too long, or in a folder that may not be read.
    standing = next(it for it in (args.output, *args.output.absolute().parents) if os.path.exists(it))  # noqa: PTH110
    if not (standing.is_dir() and os.access(standing, os.W_OK)):
        # Told before work that may take minutes.
        raise UsageError(
            f"the report cannot be written to {args.output}: {standing} is no folder that can be written to; "
            "name another folder with -o"
        )
    return report_models(args) if args.compare is None else report_comparison(args)


class _Progress:
    """Progress of a report: a line every few seconds, as its work may take minutes."""

    def __init__(self, first: str = "") -> None:
        self._first, self._told = first, time.monotonic()

    def tell(self, doing: str) -> None:
        """Narrate a step, unless a line was just narrated; the first call narrates what the whole work is, if known."""
        now = time.monotonic()
        if self._first:
            narrate(self._first)
            self._first, self._told = "", now
        if now - self._told >= _SECONDS_PER_LINE:
            narrate(doing)
            self._told = now


def report_models(args: Arguments) -> int:
    """Look up the models, draw the figures, and print the path of the page."""
    # Loaded here, as below: the help needs no store.
    from dlbricks_tui.api.reported import ReportOptions, analysed_on, models_with_results, open_loaders, reported
    from dlbricks_tui.report.report import make_report

    models = models_with_results(args.session.data) if args.models is None else args.models
    if not models:
        raise UsageError(
            "no model of the library has results: measure some with `dlbricks run`, or name models with --models, "
            "such as table1 for the paper's fifty"
        )
    options = ReportOptions(models=models, systems=args.systems, runtime=args.runtime, **inputs_of(args))
    asked = [*models, *given_options(args), *(("--runtime", args.runtime) if args.runtime else ())]
    with args.session.open_store() as store, open_loaders(args.session.data, args.session.remarks) as loader_of:
        progress = _Progress(f"reporting on {names_of(models)}")
        contents, sources = reported(options, asked, args.session.data, loader_of, store, progress.tell)
    usual = estimate_options_of(args, RUNTIME)
    systems = dict.fromkeys(series.way.system for series in contents.series)
    analysed = analysed_on(systems, usual, options, sources, args.session.data, progress.tell, narrate)
    for left_out in contents.left_out:
        narrate(f"left out: {left_out}")
    progress.tell("drawing the figures")
    page = make_report(contents, args.output, analysed)
    for section in page.sections:
        for missing in section.missing:
            narrate(f"{section.heading.partition(':')[0]}: {missing}")
    if args.json:
        write_json(_document(page, contents))
    else:
        write(f"{page.page}\n")
    return Status.of(contents.left_out)


def _document(page: Report, contents: ReportContents) -> dict[str, Any]:
    from dlbricks_tui.api.reported import series_documents

    return {
        "page": page.page,
        "models": [reported.name for reported in contents.reported_models],
        "series": series_documents(contents),
        "sections": [
            {
                "heading": section.heading,
                "exhibits": [exhibit.name for exhibit in section.exhibits],
                "missing": section.missing,
            }
            for section in page.sections
        ],
        "files": page.files,
    }


def report_comparison(args: Arguments) -> int:
    """Compare the sides, draw the figures, and print the path of the page."""
    if len(args.compare) < _FEWEST:
        raise UsageError("--compare needs two sides or more: files of results, or selections of the store")
    if args.models or args.systems or args.runtime or args.input or args.value:
        raise UsageError(
            "--compare takes all results of its sides: leave --models, --system, --runtime, --input and --value out"
        )
    from dlbricks_tui.api.changes import compare_sides, comparison_document
    from dlbricks_tui.api.reported import open_loaders
    from dlbricks_tui.api.side_estimates import estimates_of
    from dlbricks_tui.api.sides import named_sides
    from dlbricks_tui.report.comparison import make_comparison

    progress = _Progress()
    sides = named_sides(args.compare, args.session.data, progress.tell)
    sources = {it.name: it for it in args.session.library.sources()}
    with open_loaders(args.session.data, args.session.remarks) as loader_of:
        progress.tell("comparing the results")
        compared = compare_sides(sides, estimates_of(sides, sources, loader_of))
    progress.tell("drawing the figures")
    page = make_comparison(compared, args.output)
    for section in page.sections:
        narrate(*filter(None, [section.answer]), *section.missing)
    if args.json:
        missing = {it.heading: it.missing for it in page.sections if it.missing}
        write_json(comparison_document(compared, page.page, page.files, missing))
    else:
        write(f"{page.page}\n")
    return Status.DONE
