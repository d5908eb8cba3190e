"""`dlbricks report`: the paper's tables and figures from the store, as one page."""

from __future__ import annotations

import argparse
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from dlbricks_tui.cli.choices import add_input_option, given_shapes, library, open_loader
from dlbricks_tui.cli.output import Json, narrate, write, write_json
from dlbricks_tui.cli.parser import Groups, add_json_option
from dlbricks_tui.cli.status import Status

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from dlbricks_tui.models.loading import Loader
    from dlbricks_tui.report.evaluation import Evaluation
    from dlbricks_tui.report.report import Report
    from dlbricks_tui.settings import DataFolder
    from dlbricks_tui.store.generation import Generation


def register(groups: Groups) -> None:
    """Adds `report`."""
    parser = groups.add_parser("report", help="draw the paper's figures from what was measured, as one page")
    parser.add_argument(
        "-o",
        "--output",
        metavar="DIR",
        type=_folder,
        required=True,
        help="the folder to write index.html and its figures to; it is made where it is not there",
    )
    parser.add_argument(
        "--models",
        metavar="MODEL",
        nargs="+",
        default=["table1"],
        help="what to report on: files, names that `dlbricks models` lists, table1:ID (default: table1, all fifty)",
    )
    add_input_option(parser)
    parser.add_argument(
        "--system",
        dest="systems",
        metavar="S",
        action="append",
        default=[],
        help="only this system of the store, by its id, name or instance type; repeatable (default: all)",
    )
    add_json_option(parser)
    parser.set_defaults(handler=report_models)


def report_models(args: argparse.Namespace) -> int:
    """Evaluates the models, draws the figures, and says where the page is."""
    from dlbricks_tui.store.store import Store

    sources, shapes = library(args).find_all(args.models), given_shapes(args)
    _keep_matplotlib_to_itself(args.data)
    with Store(args.data.store) as store, _loaders(args) as loader_of:
        from dlbricks_tui.host.fingerprint import fingerprint
        from dlbricks_tui.report.evaluation import evaluate

        systems = _systems(args, store.generation)
        asked = [*args.models, *(word for shape in args.input for word in ("--input", shape))]
        evaluation = evaluate(store.generation, loader_of, sources, asked, fingerprint().id, systems, shapes)
        damaged = len(store.damage)
    for left_out in evaluation.left_out:
        narrate(f"left out: {left_out}")
    if damaged:
        narrate(f"{damaged} damaged lines of the store are set aside: see `dlbricks results verify`")

    from dlbricks_tui.report.report import make_report

    report = make_report(evaluation, args.output)
    for section in report.sections:
        for missing in section.missing:
            narrate(f"{section.heading.partition(':')[0]}: {missing}")
    if args.json:
        write_json(_document(report, evaluation))
    else:
        write(f"{report.page}\n")
    return Status.DONE_WITH_FAILURES if evaluation.left_out else Status.DONE


@contextmanager
def _loaders(args: argparse.Namespace) -> Iterator[Callable[[str], Loader]]:
    """Who loads models as a runtime has them: that runtime where it is on this host, else the one that works."""
    from dlbricks_tui.runtime.registry import Registry

    with ExitStack() as opened:
        anybody = opened.enter_context(open_loader(args))
        known = {it.identity: opened.enter_context(open_loader(args, it)) for it in Registry(args.data.path).all()}
        yield lambda identity: known.get(identity, anybody)


def _folder(text: str) -> Path:
    if not text:
        # A variable of a script that was never set: its files would lie about wherever it was called.
        raise argparse.ArgumentTypeError("the folder has no name")
    return Path(text)


def _systems(args: argparse.Namespace, generation: Generation) -> frozenset[str] | None:
    from dlbricks_tui.estimate.selection import find_system
    from dlbricks_tui.store.queries import systems

    known = systems(generation)
    return frozenset(find_system(name, known) for name in args.systems) if args.systems else None


def _document(report: Report, evaluation: Evaluation) -> Json:
    return {
        "page": str(report.page),
        "models": [subject.name for subject in evaluation.subjects],
        "series": [
            {
                "title": series.title,
                "system": series.way.system,
                "runtime": series.way.runtime,
                "level": series.way.level.value,
                "protocol": series.way.protocol,
                "granularities": series.granularities,
            }
            for series in evaluation.series
        ],
        "sections": [
            {
                "heading": section.heading,
                "exhibits": [exhibit.name for exhibit in section.exhibits],
                "missing": section.missing,
            }
            for section in report.sections
        ],
        "files": [str(path) for path in report.files],
    }


def _keep_matplotlib_to_itself(data: DataFolder) -> None:
    """Lets matplotlib keep its cache where everything of the user is, and say nothing while it makes it."""
    import logging
    import os

    os.environ.setdefault("MPLCONFIGDIR", str(data.cache / "matplotlib"))
    logging.getLogger("matplotlib").setLevel(logging.ERROR)
