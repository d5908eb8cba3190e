"""`dlbricks runtimes`: the interpreters with a framework that can run bricks."""

import argparse
from collections.abc import Sequence
from typing import Any

from dlbricks_tui.cli.output import narrate, write_json
from dlbricks_tui.cli.parser import Parser, Status, Typed, UsageError, add_action, add_listing, add_repeatable
from dlbricks_tui.runtime.errors import WorkerError
from dlbricks_tui.runtime.registry import Registry
from dlbricks_tui.runtime.runtime import Runtime, Settings
from dlbricks_tui.runtime.traits import TRAITS
from dlbricks_tui.scenarios.loadgen import require_loadgen
from dlbricks_tui.scenarios.scenario import ScenarioError
from dlbricks_tui.settings.variant import THREADS


def register(parser: Parser) -> None:
    """Add the actions of `runtimes`; without one it lists."""
    actions = add_listing(parser, "list the runtimes", list_runtimes)
    adding = add_action(actions, "add", "register an interpreter after a check that it works", add_runtime)
    adding.add_argument("python", metavar="PATH", help="a Python interpreter, or the virtual environment that holds it")
    adding.add_argument("--name", help="its name (default: its framework, version and Python)")
    adding.add_argument(
        "--threads",
        metavar="N",
        type=Typed(THREADS.kind),
        help="number of threads that it computes with (default: its own)",
    )
    adding.add_argument(
        "--at-once",
        metavar="K",
        type=Typed(THREADS.kind),
        default=1,
        help="number of operators of a model that it runs at the same time, end to end (default: one after another)",
    )
    variable = "an environment variable that it starts with, such as MXNET_SUBGRAPH_BACKEND=NONE"
    add_repeatable(adding, "--env", "NAME=VALUE", variable)
    adding.add_argument(
        "--framework",
        choices=list(TRAITS),
        help=f"the framework to use if it has several (default: the first of {', '.join(TRAITS)} that it has)",
    )
    checking = add_action(actions, "check", "start a runtime and list its framework and settings", check_runtimes)
    checking.add_argument("name", metavar="NAME", nargs="?", help="the runtime (default: all)")
    removing = add_action(actions, "remove", "forget a runtime; its results stay", remove_runtime, json=False)
    removing.add_argument("name", metavar="NAME")


def list_runtimes(args: argparse.Namespace) -> int:
    """List the runtimes without starting any, and say if scenarios cannot be measured."""
    _write(Registry(args.data.path).all(), as_json=args.json)
    try:
        require_loadgen()
    except ScenarioError as missing:
        narrate(str(missing))
    return Status.DONE


def add_runtime(args: argparse.Namespace) -> int:
    """Register a runtime."""
    settings = _settings(args.threads, args.env)
    runtime = Registry(args.data.path).add(args.python, args.name, settings, args.framework, args.at_once)
    _write([runtime], as_json=args.json)
    narrate(f"use it with --runtime {runtime.name}")
    return Status.DONE


def check_runtimes(args: argparse.Namespace) -> int:
    """Start one runtime, or all, and name those that do not work."""
    registry = Registry(args.data.path)
    # A name that no runtime has is an error.
    names = [registry.find(args.name).name] if args.name else [runtime.name for runtime in registry.all()]
    working: list[Runtime] = []
    for name in names:
        try:
            working.append(registry.check(name))
        except WorkerError as error:
            narrate(f"{name} does not work: {error}")
    _write(working, as_json=args.json)
    return Status.DONE if len(working) == len(names) else Status.DONE_WITH_FAILURES


def remove_runtime(args: argparse.Namespace) -> int:
    """Forget a runtime."""
    Registry(args.data.path).remove(args.name)
    narrate(f"{args.name} is forgotten")
    return Status.DONE


def _settings(threads: int | None, environment: Sequence[str]) -> Settings:
    variables = [text.partition("=") for text in environment]
    for name, equals, _ in variables:
        if not name or not equals:
            raise UsageError(f"--env {name}: write NAME=VALUE")
    return Settings(threads, tuple((name, value) for name, _, value in variables))


def _write(runtimes: Sequence[Runtime], *, as_json: bool) -> None:
    if as_json:
        write_json([_document(runtime) for runtime in runtimes])
    elif runtimes:
        _show(runtimes)


def _document(runtime: Runtime) -> dict[str, Any]:
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
    from dlbricks_tui.cli.rendering import show_parts
    from dlbricks_tui.documents.parts import Column, Table, name_column

    columns: tuple[Column[Runtime], ...] = (
        name_column("interpreter", lambda it: it.python),
        Column("name", lambda it: it.name),
        Column("framework", lambda it: f"{it.framework} {it.version}"),
        Column("Python", lambda it: it.python_version),
        Column("threads", lambda it: it.settings.threads),
        Column("settings", lambda it: " ".join(f"{name}={value}" for name, value in it.settings.environment)),
    )
    show_parts([Table(columns, runtimes)])
