"""`dlbricks run`: measure what the store lacks of some models, here or in a process apart."""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import TYPE_CHECKING

from dlbricks_tui.cli.choices import (
    METHODS,
    MOST_MODELS_END_TO_END,
    add_cutting_options,
    add_models_argument,
    cutting,
    given_shapes,
    library,
)
from dlbricks_tui.cli.output import narrate
from dlbricks_tui.cli.parser import FromConfig, Groups, Parser, UsageError, add_json_option, add_quiet_option
from dlbricks_tui.wording.numbers import counted

if TYPE_CHECKING:
    from collections.abc import Collection

    from dlbricks_tui.measure.method import Method
    from dlbricks_tui.measure.stopping import StoppingRule
    from dlbricks_tui.runs.request import Patience, RunRequest
    from dlbricks_tui.runtime.runtime import Runtime
    from dlbricks_tui.runtime.traits import Format

_MEBIBYTE = 1 << 20


def register(groups: Groups) -> None:
    """Adds `run`."""
    parser = groups.add_parser("run", help="measure the bricks of models on this host, and estimate the models")
    add_models_argument(parser, many=True)
    add_cutting_options(parser, level="fused")
    parser.add_argument(
        "--end-to-end",
        action=argparse.BooleanOptionalAction,
        help="time the whole models too (default: with --method inside, in a run of up to "
        f"{MOST_MODELS_END_TO_END} models)",
    )
    parser.add_argument(
        "--method",
        choices=METHODS,
        help="time bricks inside of networks by the runtime's profiler, or each brick alone, as the paper does "
        "(default: inside, where the bricks are single layers that run one after another)",
    )
    add_measuring_options(parser)
    parser.set_defaults(handler=run_models)


def add_measuring_options(parser: Parser) -> None:
    """Takes what executes, when it is enough, and how the run is shown."""
    parser.add_argument(
        "--runtime",
        metavar="R",
        default=FromConfig("run.runtime"),
        help="a runtime that `dlbricks runtimes` lists (default: ours)",
    )
    parser.add_argument(
        "--threads",
        metavar="N",
        type=int,
        default=FromConfig("run.threads"),
        help="how many threads the framework computes with",
    )
    enough = parser.add_mutually_exclusive_group()
    enough.add_argument(
        "--target-ci",
        metavar="SHARE",
        type=float,
        default=FromConfig("run.target_ci"),
        help="sample until half of the 95 %% interval is at most this share of the latency (default: 0.01)",
    )
    enough.add_argument("--fixed-runs", metavar="N", type=int, help="take N samples of everything, as the paper does")
    parser.add_argument(
        "--time-budget",
        metavar="S",
        type=float,
        default=FromConfig("run.time_budget"),
        help="stop after so many seconds with what is known by then; start-up, calibration and waiting for another "
        "run count, pauses do not",
    )
    parser.add_argument("--retry-failed", action="store_true", help="try again what failed in an earlier run")
    parser.add_argument("--again", action="store_true", help="measure again what is known, as hosts change")
    parser.add_argument(
        "--calibrate",
        choices=["once", "anew", "never"],
        default="once",
        help="find out what the method misses on this system: where nobody knows it yet, in any case, or not at all",
    )
    parser.add_argument(
        "--brick-timeout",
        metavar="S",
        type=float,
        help="how long a brick may hang before it fails (default: 60 while it is loaded, 30 afterwards)",
    )
    parser.add_argument(
        "--memory-limit", metavar="MIB", type=int, help="what a brick may take before it fails (default: all there is)"
    )
    add_quiet_option(parser)
    parser.add_argument("--detach", action="store_true", help="run in a process apart; `dlbricks runs watch` shows it")
    add_json_option(parser)


def run_models(args: argparse.Namespace) -> int:
    """Starts a run, and unless it is to be detached carries it out."""
    from dlbricks_tui.cli.carrying_out import carry_out
    from dlbricks_tui.runs.launch import create_run

    request = _request(args)
    folder = create_run(request, args.data)
    _warn_of_many_threads(request.runtime)
    return carry_out(args, folder, request)


def measuring(args: argparse.Namespace, formats: Collection[Format]) -> RunRequest:
    """How to measure models of these formats, with nothing to be measured yet."""
    from dlbricks_tui.runs.request import CalibrationPolicy, RunRequest

    if args.time_budget is not None and args.time_budget <= 0:
        raise UsageError(f"--time-budget {args.time_budget:g}: give more than 0 seconds")
    if args.memory_limit is not None and args.memory_limit < 1:
        raise UsageError(f"--memory-limit {args.memory_limit}: give 1 MiB or more")
    return RunRequest(
        models=(),
        runtime=_runtime(args, formats),
        rule=_rule(args),
        time_budget_seconds=args.time_budget,
        retry_failed=args.retry_failed,
        again=args.again,
        calibration=CalibrationPolicy(args.calibrate),
        patience=_patience(args),
        memory_limit_bytes=None if args.memory_limit is None else args.memory_limit * _MEBIBYTE,
    )


def _request(args: argparse.Namespace) -> RunRequest:
    from dlbricks_tui.measure.method import Method
    from dlbricks_tui.models.graph import Level
    from dlbricks_tui.runs.request import InputShape, chosen

    sources = library(args).find_all(args.models)
    if args.granularity < 1:
        raise UsageError(f"--granularity {args.granularity}: a sequence has 1 layer or more")
    asked = measuring(args, {source.format for source in sources})
    method = _method(args, asked)
    end_to_end = args.end_to_end
    if end_to_end is None:
        end_to_end = method is Method.INSIDE and len(sources) <= MOST_MODELS_END_TO_END
    return replace(
        asked,
        models=chosen(sources),
        inputs=tuple(InputShape(name, shape) for name, shape in given_shapes(args).items()),
        level=Level(args.level),
        cutting=cutting(args),
        end_to_end=end_to_end,
        method=method,
    )


def _method(args: argparse.Namespace, asked: RunRequest) -> Method:
    from dlbricks_tui.measure.method import Method
    from dlbricks_tui.runs.request import can_be_inside, usual_method

    if args.method is None:
        return usual_method(cutting(args), asked.rule, asked.runtime)
    wanted = Method(args.method)
    if wanted is Method.INSIDE and not can_be_inside(cutting(args), asked.rule, asked.runtime):
        raise UsageError(
            "--method inside times single layers that run one after another: leave out --granularity, --cut and "
            "--fixed-runs, and choose a runtime that runs one operator at a time, or use --method alone"
        )
    return wanted


def _runtime(args: argparse.Namespace, formats: Collection[Format]) -> Runtime:
    from dlbricks_tui.runtime.registry import Registry

    if args.threads is not None and args.threads < 1:
        raise UsageError(f"--threads {args.threads}: a framework computes with 1 thread or more")
    registry = Registry(args.data.path)
    found = registry.find(args.runtime) if args.runtime else None
    # Who names it in the command means it, whatever the models are; a setting is for those that it runs.
    if found is None or ("runtime" in args.from_config and set(formats) != {found.traits.format}):
        found = registry.suited(formats)
    return found.with_threads(args.threads)


def _warn_of_many_threads(runtime: Runtime) -> None:
    from dlbricks_tui.host.fingerprint import fingerprint

    threads, cores = runtime.settings.threads, fingerprint().cores
    if threads is not None and threads > cores:
        narrate(f"{threads} threads on {counted(cores, 'core')}: they wait for one another, and latencies vary more")


def _rule(args: argparse.Namespace) -> StoppingRule:
    from dlbricks_tui.measure.stopping import Adaptive, FixedRuns

    if args.fixed_runs is not None:
        return FixedRuns(args.fixed_runs)
    return Adaptive() if args.target_ci is None else Adaptive(target=args.target_ci)


def _patience(args: argparse.Namespace) -> Patience:
    from dlbricks_tui.runs.request import Patience

    if args.brick_timeout is None:
        return Patience()
    if args.brick_timeout <= 0:
        raise UsageError(f"--brick-timeout {args.brick_timeout:g}: give more than 0 seconds")
    return Patience(args.brick_timeout, args.brick_timeout)
