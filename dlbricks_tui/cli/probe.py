"""`dlbricks probe`: measure the few bricks that tell most about this host, and estimate models from other systems."""

import argparse
import time
from collections.abc import Sequence

from dlbricks_tui.answers.estimates import model_estimate
from dlbricks_tui.answers.measuring import (
    ProbeOptions,
    known_systems,
    probe_request,
    probe_result,
)
from dlbricks_tui.answers.opening import library
from dlbricks_tui.cli.options import (
    add_measuring_runtime_options,
    add_models_argument,
    add_variant_options,
    inputs_of,
    runtime_given,
    values_of,
)
from dlbricks_tui.cli.output import narrate, write_json
from dlbricks_tui.cli.parser import (
    Parser,
    add_json_option,
    add_quiet_option,
    add_schema_option,
    add_setting,
    add_settings,
)
from dlbricks_tui.cli.run import tell_end, tell_variants
from dlbricks_tui.cli.run_progress import shown
from dlbricks_tui.estimate.system_estimate import SystemEstimate
from dlbricks_tui.host.fingerprint import fingerprint
from dlbricks_tui.host.queue import host_queue
from dlbricks_tui.runs.control import create_run
from dlbricks_tui.runs.run import execute
from dlbricks_tui.runs.work import Workplace
from dlbricks_tui.settings.cutting import LEVEL
from dlbricks_tui.settings.measuring import METHOD, PROBE_BRICKS, PROBE_SECONDS
from dlbricks_tui.settings.variant import EXECUTION
from dlbricks_tui.wording.numbers import names_of


def register(parser: Parser) -> None:
    """Add the options of `probe`."""
    add_models_argument(parser, many=True, needed=False)
    add_settings(parser, PROBE_SECONDS, PROBE_BRICKS)
    add_measuring_runtime_options(parser, many=False)
    add_variant_options(parser, many=False)
    for setting in (LEVEL, METHOD):
        add_setting(parser, setting, default=None, usual="that by which other systems have measured most")
    add_quiet_option(parser)
    add_json_option(parser)
    add_schema_option(parser, "ProbeResult", module="measuring")
    parser.set_defaults(handler=probe)


def probe(args: argparse.Namespace) -> int:
    """Measure the most informative bricks, and print the estimates of the models."""
    options = ProbeOptions(
        **runtime_given(args),
        **values_of(args, (*EXECUTION, PROBE_SECONDS, PROBE_BRICKS, LEVEL, METHOD)),
        **inputs_of(args),
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
