"""`dlbricks report --compare`: files of results, or selections of the store, side by side as one page."""

import argparse

from dlbricks_tui.answers.comparisons.named_sides import named_sides
from dlbricks_tui.answers.opening import library
from dlbricks_tui.cli.output import narrate, write, write_json
from dlbricks_tui.cli.parser import Status, UsageError
from dlbricks_tui.cli.report import open_loaders

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
    from dlbricks_tui.answers.comparisons.compared_sides import compare_sides, comparison_document
    from dlbricks_tui.answers.comparisons.estimates import Estimates
    from dlbricks_tui.report.comparing.comparison import make_comparison

    sources = {it.name: it for it in library(args.data).sources()}
    with open_loaders(args.data) as loader_of:
        estimates = Estimates(sides, sources, loader_of)
        compared = compare_sides(sides, estimates.of)
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
