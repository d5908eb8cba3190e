"""`dlbricks report`: the paper's tables and figures, from the store, or a comparison of results, as one page."""

import argparse
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dlbricks_tui.answers.analyses import ModelRow, model_row
from dlbricks_tui.answers.analysing import Analyser
from dlbricks_tui.answers.estimating import Remarks, measured_models, open_estimator
from dlbricks_tui.answers.opening import library
from dlbricks_tui.answers.reported import ReportContents, find_contents, load_tests_of, origins_of
from dlbricks_tui.answers.scope import named_runtime
from dlbricks_tui.answers.sides import named_sides
from dlbricks_tui.cli.options import add_input_options, estimate_options_of, given_options, shapes_of, values_given
from dlbricks_tui.cli.output import narrate, worded, write, write_json
from dlbricks_tui.cli.parser import Parser, Status, UsageError, add_json_option, add_repeatable
from dlbricks_tui.cli.store import narrate_state, open_loader
from dlbricks_tui.estimate.errors import EstimateError
from dlbricks_tui.estimate.system_estimate import find_system
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.host.fingerprint import fingerprint
from dlbricks_tui.models.library import TABLE1_PREFIX, ModelSource
from dlbricks_tui.models.loading import UNLOADABLE, Loader
from dlbricks_tui.report.report import make_report
from dlbricks_tui.runtime.registry import Registry
from dlbricks_tui.runtime.runtime import Runtime
from dlbricks_tui.runtime.variant import stated_kernels, stated_precision
from dlbricks_tui.settings.variant import RUNTIME
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.selections import by_id
from dlbricks_tui.wording.numbers import counted, names_of

if TYPE_CHECKING:
    from dlbricks_tui.report.page import Report

_SECONDS_PER_LINE = 2.0


def register(parser: Parser) -> None:
    """Add the options of `report`."""
    parser.add_argument(
        "-o",
        "--output",
        metavar="DIR",
        type=_folder,
        required=True,
        help="the folder for index.html and its figures, created if missing",
    )
    parser.add_argument(
        "--models",
        metavar="MODEL",
        nargs="+",
        help="models to report on: files, names that `dlbricks models` lists, table1:ID; `table1` stands for all fifty "
        "(default: the models of the library with results)",
    )
    add_input_options(parser)
    about = "only this system of the store, by its id, name or instance type (default: all)"
    add_repeatable(parser, "--system", "S", about, dest="systems")
    parser.add_argument(
        "--runtime",
        metavar="R",
        help="only results of this runtime, or of all runtimes with this framework, and the files that it reads "
        "(default: all)",
    )
    parser.add_argument(
        "--compare",
        metavar="A",
        nargs="+",
        help="instead, compare the first with each other one: files of `results export` (.json, .json.gz), or "
        "selections of the store as `results compare` takes them, such as a system, a day or a run",
    )
    add_json_option(parser)
    parser.set_defaults(handler=_report)


def _report(args: argparse.Namespace) -> int:
    if args.compare is None:
        return report_models(args)
    # Loaded here: a report of models needs none of it.

    return report_comparison(args)


def report_models(args: argparse.Namespace) -> int:
    """Look up the models, draw the figures, and print the path of the page."""
    shapes, values = shapes_of(args), values_given(args)
    if args.models is None:
        args.models = _with_results(args.data)
    with ResultsDatabase(args.data.store) as store, open_loaders(args.data) as loader_of:
        named = None if args.runtime is None else named_runtime(args.runtime, args.data, store)
        sources = library(args.data, named and named.format).find_all(args.models)
        wanted, runtimes = _wanted(args.systems, store), named and named.all_in(store)
        # Bad input is one line, so it is known by now.
        progress = _Progress(f"reporting on {names_of(args.models)}")
        asked = [*args.models, *given_options(args), *(("--runtime", args.runtime) if args.runtime else ())]
        host, tell = fingerprint().id, progress.tell
        contents = find_contents(store, loader_of, sources, asked, host, wanted, runtimes, shapes, values, tell)
        load_tests = load_tests_of(store, contents, wanted, runtimes)
        origins = origins_of(store, contents)
        narrate_state(store)
    systems = dict.fromkeys(series.way.system for series in contents.series)
    analysed = _analysed(args, sources, systems, progress)
    for left_out in contents.left_out:
        narrate(f"left out: {left_out}")

    progress.tell("drawing the figures")
    report = make_report(contents, args.output, analysed, load_tests, origins)
    for section in report.sections:
        for missing in section.missing:
            narrate(f"{section.heading.partition(':')[0]}: {missing}")
    if args.json:
        write_json(_document(report, contents))
    else:
        write(f"{report.page}\n")
    return Status.DONE_WITH_FAILURES if contents.left_out else Status.DONE


def _with_results(data: DataFolder) -> list[str]:
    """Return the names of the models of the library that have results."""
    found = [f"{TABLE1_PREFIX}:{it.table1_id}" if it.table1_id else it.name for it in measured_models(data)]
    if not found:
        raise UsageError(
            "no model of the library has results: measure some with `dlbricks run`, or name models with --models, "
            "such as table1 for the paper's fifty"
        )
    return list(dict.fromkeys(found))


class _Progress:
    """Progress of a report: a line every few seconds, as its work may take minutes."""

    def __init__(self, first: str) -> None:
        narrate(first)
        self._told = time.monotonic()

    def tell(self, doing: str) -> None:
        """Narrate it, unless another line was narrated just before."""
        if (now := time.monotonic()) - self._told >= _SECONDS_PER_LINE:
            narrate(doing)
            self._told = now


def _analysed(
    args: argparse.Namespace, sources: Sequence[ModelSource], systems: Iterable[str], progress: _Progress
) -> list[ModelRow]:
    """Return the models as analysed on each system, in the runtime that the options name, or that counts there."""
    usual = estimate_options_of(args, RUNTIME)
    # Models left out of the contents were narrated before.
    silent = Remarks(lambda _: None, str, lambda *_: None)
    found = []
    for system in systems:
        try:
            with open_estimator(replace(usual, system=system), args.data, silent) as estimator:
                for number, analysis in enumerate(Analyser(estimator, args.models).analyses(sources), start=1):
                    progress.tell(f"analysed {number} of {counted(len(sources), 'model')} on {system}")
                    found.append(model_row(analysis))
        except (EstimateError, *UNLOADABLE) as error:
            narrate(f"no analysis on {system}: {worded(error)}")
    return found


@contextmanager
def open_loaders(data: DataFolder) -> Iterator[Callable[[str], Loader]]:
    """Open a loader for each runtime; one that is not of this host gets one of its framework and variant."""
    runtimes = Registry(data.path).known()
    known: dict[Runtime | None, Loader] = {}
    with ExitStack() as opened:

        def loader_of(identity: str) -> Loader:
            runtime = _graphs_of(identity, runtimes)
            if runtime not in known:
                known[runtime] = opened.enter_context(open_loader(data, runtime))
            return known[runtime]

        yield loader_of


def _graphs_of(identity: str, runtimes: Sequence[Runtime]) -> Runtime | None:
    """Return the first runtime that has the graphs of the one of this identity, or is like it; None without any."""
    here = next((it for it in runtimes if it.identity == identity), None)
    if here is not None:
        return here
    precision, kernels = stated_precision(identity), stated_kernels(identity)
    for it in runtimes:
        if it.framework == identity.partition("-")[0] and it.computes_in(precision) and it.traits.has_kernels(kernels):
            return it.with_precision(precision).with_kernels(kernels)
    return None


def _folder(text: str) -> Path:
    if not text:
        # An unset variable of a script; the files would go to its working folder.
        raise argparse.ArgumentTypeError("the folder has no name")
    return Path(text)


def _wanted(names: Sequence[str], store: ResultsDatabase) -> frozenset[str] | None:
    known = by_id(store.systems())
    return frozenset(find_system(name, known) for name in names) if names else None


def _document(report: "Report", contents: ReportContents) -> dict[str, Any]:
    return {
        "page": report.page,
        "models": [reported.name for reported in contents.reported_models],
        "series": [
            {
                "title": series.title,
                "system": series.way.system,
                "runtime": series.way.runtime,
                "level": series.way.level,
                "protocol": series.way.protocol,
                "granularities": series.granularities,
            }
            for series in contents.series
        ],
        "sections": [
            {
                "heading": section.heading,
                "exhibits": [exhibit.name for exhibit in section.exhibits],
                "missing": section.missing,
            }
            for section in report.sections
        ],
        "files": report.files,
    }


_FEWEST = 2


def report_comparison(args: argparse.Namespace) -> int:
    """Compare the sides, draw the figures, and print the path of the page."""
    if len(args.compare) < _FEWEST:
        raise UsageError("--compare needs two sides or more: files of results, or selections of the store")
    # `--models` has a default, which a comparison does not use.
    if args.systems or args.runtime or args.input or args.value:
        raise UsageError("--compare takes all results of its sides: leave --system, --runtime, --input and --value out")
    sides = named_sides(args.compare, args.data)
    # Loaded here: other reports need none of it.
    from dlbricks_tui.answers.changes import compare_sides, comparison_document, estimates_of
    from dlbricks_tui.report.comparison import make_comparison

    sources = {it.name: it for it in library(args.data).sources()}
    with open_loaders(args.data) as loader_of:
        estimate = estimates_of(sides, sources, loader_of)
        compared = compare_sides(sides, estimate)
    report = make_comparison(compared, args.output)
    for section in report.sections:
        if section.answer:
            narrate(section.answer)
        for line in section.missing:
            narrate(line)
    if args.json:
        missing = {it.heading: it.missing for it in report.sections if it.missing}
        write_json(comparison_document(compared, report.page, report.files, missing))
    else:
        write(f"{report.page}\n")
    return Status.DONE
