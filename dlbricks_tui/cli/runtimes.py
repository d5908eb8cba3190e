"""`dlbricks runtimes`: which interpreters with a framework can run bricks."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from dlbricks_tui.cli.output import Json, narrate, show, write_json
from dlbricks_tui.cli.parser import Groups, UsageError, add_json_option
from dlbricks_tui.cli.status import Status

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dlbricks_tui.runtime.registry import Registry
    from dlbricks_tui.runtime.runtime import Runtime, Settings


def register(groups: Groups) -> None:
    """Adds `runtimes` with its actions; without one it lists."""
    parser = groups.add_parser("runtimes", help="list, add, check or remove interpreters that have a framework")
    add_json_option(parser)
    parser.set_defaults(handler=list_runtimes)
    actions = parser.add_subparsers(title="actions", metavar="ACTION")
    listing = actions.add_parser("list", help="list the runtimes (what `runtimes` does by itself)")
    add_json_option(listing)
    listing.set_defaults(handler=list_runtimes)
    adding = actions.add_parser("add", help="register an interpreter after it has shown that it works")
    adding.add_argument("python", metavar="PATH", help="a Python interpreter, or the virtual environment that holds it")
    adding.add_argument("--name", help="what to call it (default: its framework, version and Python)")
    adding.add_argument("--threads", metavar="N", type=int, help="how many threads it computes with (default: its own)")
    adding.add_argument(
        "--at-once",
        metavar="K",
        type=int,
        default=1,
        help="how many operators of a model it runs at the same time, end to end (default: one after another)",
    )
    adding.add_argument(
        "--env",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help="a variable that it starts with, such as MXNET_SUBGRAPH_BACKEND=NONE; repeatable",
    )
    adding.add_argument(
        "--framework",
        choices=["mxnet", "onnxruntime"],
        help="which of its frameworks is meant, where it has both (default: mxnet)",
    )
    add_json_option(adding)
    adding.set_defaults(handler=add_runtime)
    checking = actions.add_parser("check", help="start a runtime and say what it has")
    checking.add_argument("name", metavar="NAME", nargs="?", help="which one (default: all)")
    add_json_option(checking)
    checking.set_defaults(handler=check_runtimes)
    removing = actions.add_parser("remove", help="forget a runtime; what it has measured stays")
    removing.add_argument("name", metavar="NAME")
    removing.set_defaults(handler=remove_runtime)


def list_runtimes(args: argparse.Namespace) -> int:
    """Lists the runtimes without starting any."""
    _tell(args, _registry(args).all())
    return Status.DONE


def add_runtime(args: argparse.Namespace) -> int:
    """Registers one more runtime."""
    if args.at_once < 1:
        raise UsageError(f"--at-once {args.at_once}: a framework runs 1 operator at a time or more")
    runtime = _registry(args).add(args.python, args.name, _settings(args), args.framework, args.at_once)
    _tell(args, [runtime])
    narrate(f"use it with --runtime {runtime.name}")
    return Status.DONE


def check_runtimes(args: argparse.Namespace) -> int:
    """Starts one runtime, or all; each that does not work is named."""
    from dlbricks_tui.runtime.errors import WorkerError

    registry = _registry(args)
    # Who asks for one by name wants to hear that there is none.
    names = [registry.find(args.name).name] if args.name else [runtime.name for runtime in registry.all()]
    working: list[Runtime] = []
    for name in names:
        try:
            working.append(registry.check(name))
        except WorkerError as error:
            narrate(f"{name} does not work: {error}")
    _tell(args, working)
    return Status.DONE if len(working) == len(names) else Status.DONE_WITH_FAILURES


def remove_runtime(args: argparse.Namespace) -> int:
    """Forgets a runtime."""
    _registry(args).remove(args.name)
    narrate(f"{args.name} is forgotten")
    return Status.DONE


def _registry(args: argparse.Namespace) -> Registry:
    from dlbricks_tui.runtime.registry import Registry

    return Registry(args.data.path)


def _settings(args: argparse.Namespace) -> Settings:
    from dlbricks_tui.runtime.runtime import MOST_THREADS, Settings

    if args.threads is not None and args.threads < 1:
        raise UsageError(f"--threads {args.threads}: a framework computes with 1 thread or more")
    if args.threads is not None and args.threads > MOST_THREADS:
        raise UsageError(f"--threads {args.threads}: give {MOST_THREADS} threads or fewer, such as one for each core")
    variables = [text.partition("=") for text in args.env]
    for name, equals, _ in variables:
        if not name or not equals:
            raise UsageError(f"--env {name}: write NAME=VALUE")
    return Settings(args.threads, tuple((name, value) for name, _, value in variables))


def _tell(args: argparse.Namespace, runtimes: Sequence[Runtime]) -> None:
    if args.json:
        write_json([_document(runtime) for runtime in runtimes])
    elif runtimes:
        _show(runtimes)


def _document(runtime: Runtime) -> Json:
    return {
        "name": runtime.name,
        "runtime": runtime.identity,
        "framework": runtime.framework,
        "version": runtime.version,
        "python": runtime.python,
        "python_version": runtime.python_version,
        "threads": runtime.settings.threads,
        "environment": dict(runtime.settings.environment),
    }


def _show(runtimes: Sequence[Runtime]) -> None:
    from dlbricks_tui.cli.tables import name_cell, plain_table

    table = plain_table("INTERPRETER", "NAME", "FRAMEWORK", "PYTHON", "THREADS", "SETTINGS")
    for it in runtimes:
        threads = "its own" if it.settings.threads is None else str(it.settings.threads)
        settings = " ".join(f"{name}={value}" for name, value in it.settings.environment)
        table.add_row(
            name_cell(it.python), it.name, f"{it.framework} {it.version}", it.python_version, threads, settings
        )
    show(table)
