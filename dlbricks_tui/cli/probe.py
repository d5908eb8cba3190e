"""`dlbricks probe`: measure the few bricks that tell most about this host, and estimate models from other systems."""

import argparse
import time
from collections.abc import Sequence

from dlbricks_tui.answers.opening import library
from dlbricks_tui.answers.probing import (
    MOST_PROBE_BRICKS,
    MOST_PROBE_SECONDS,
    ProbeOptions,
    known_systems,
    probe_request,
)
from dlbricks_tui.answers.results import model_estimate
from dlbricks_tui.answers.run_results import probe_result
from dlbricks_tui.cli.options import (
    add_measuring_runtime_options,
    add_models_argument,
    add_variant_options,
    given_runtime,
    shapes_of,
    values_given,
    values_of,
)
from dlbricks_tui.cli.output import narrate, write_json
from dlbricks_tui.cli.parser import Number, Parser, Whole, add_json_option, add_quiet_option, add_schema_option
from dlbricks_tui.cli.run import tell_end, tell_variants
from dlbricks_tui.cli.run_progress import shown
from dlbricks_tui.estimate.system_estimate import SystemEstimate
from dlbricks_tui.host.fingerprint import fingerprint
from dlbricks_tui.host.queue import host_queue
from dlbricks_tui.measure.method import Method
from dlbricks_tui.models.graph import Level
from dlbricks_tui.runs.launch import create_run
from dlbricks_tui.runs.run import execute
from dlbricks_tui.runs.work import Workplace
from dlbricks_tui.wording.numbers import names_of


def register(parser: Parser) -> None:
    """Add the options of `probe`."""
    add_models_argument(parser, many=True, needed=False)
    defaults = ProbeOptions()
    parser.add_argument(
        "--seconds",
        metavar="S",
        type=Number(MOST_PROBE_SECONDS),
        default=defaults.seconds,
        help="the time to take (default: 20)",
    )
    parser.add_argument(
        "--bricks",
        metavar="N",
        type=Whole(1, MOST_PROBE_BRICKS),
        default=defaults.bricks,
        help="the most bricks to time one by one, with --method alone (default: 30)",
    )
    add_measuring_runtime_options(parser, many=False)
    add_variant_options(parser, many=False)
    for option, kind in (("--level", Level), ("--method", Method)):
        parser.add_argument(
            option, choices=values_of(kind), help="(default: the one by which other systems have measured most)"
        )
    add_quiet_option(parser)
    add_json_option(parser)
    add_schema_option(parser, "ProbeResult", module="run_results")
    parser.set_defaults(handler=probe)


def probe(args: argparse.Namespace) -> int:
    """Measure the most informative bricks, and print the estimates of the models."""
    runtime = given_runtime(args)
    options = ProbeOptions(
        seconds=args.seconds,
        bricks=args.bricks,
        level=None if args.level is None else Level(args.level),
        method=None if args.method is None else Method(args.method),
        inputs=shapes_of(args),
        values=values_given(args),
        runtime=runtime.named,
        usual_runtime=runtime.usual,
        threads=args.threads,
        batch=args.batch,
        precision=args.precision,
        instructions=args.instructions,
        optimisation=args.optimisation,
    )
    request = probe_request(options, library(args.data).find_all(args.models) if args.models else (), args.data)
    others = known_systems(request, args.data)
    folder = create_run(request, args.data)
    tell_variants(request)
    place = Workplace(args.data, spent_seconds=time.monotonic() - args.began)
    with shown(quiet=args.quiet, few_samples=True) as progress:
        outcome = execute(folder, request, place, host_queue(), progress.take)
    estimates = outcome.estimates or ()
    if args.json:
        models = (model_estimate(decomposition, one) for decomposition, one in estimates)
        write_json(probe_result(outcome.state, fingerprint().id, request.runtime.identity, others, models))
    else:
        _show([one for _, one in estimates])
    if not args.quiet:
        narrate(f"compared with {names_of(others)}")
    return tell_end(outcome, quiet=args.quiet, left_out=len(progress.progress.left_out))


def _show(estimates: Sequence[SystemEstimate]) -> None:
    # Loaded here: the JSON document needs no tables.
    from dlbricks_tui.cli.rendering import show_parts
    from dlbricks_tui.documents.estimates import intervals_parts

    known = [one for one in estimates if one.estimate.composed is not None]
    if known:
        show_parts(intervals_parts(known))
