"""`dlbricks doctor`, `runtimes` and `config`: this host, its interpreters with a framework, and the settings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from dlbricks_tui.cli.output import narrate, narrate_waiting, show_parts, write, write_json
from dlbricks_tui.cli.parser import Arguments, Parser, Status, Typed, UsageError, path_in
from dlbricks_tui.errors import UserError
from dlbricks_tui.settings.variant import RUNTIME, THREADS

if TYPE_CHECKING:
    from dlbricks_tui.config.config import Config
    from dlbricks_tui.runtime.runtime import Runtime


def register(parser: Parser) -> None:
    """Add the options of `doctor`."""
    parser.add_repeatable("--params", "FILE", "look for denormal numbers in a *.params or *.onnx file", type=path_in)
    about = "measure for about four seconds how fast this host computes and reads memory, and store it"
    parser.add_flag("--peaks", about=about)
    about = "number of threads for --peaks (default: one for each usable core)"
    parser.add_argument("--threads", metavar="N", type=Typed(THREADS.kind), help=about)
    peaks = "is the number of threads for --peaks: add --peaks, or leave --threads out"
    parser.only("--threads", where=lambda it: it.peaks, why=peaks)
    parser.end(examine)


def register_runtimes(parser: Parser) -> None:
    """Add the actions of `runtimes`; without one it lists."""
    # Loaded here: other commands need no names of frameworks.
    from dlbricks_tui.api.doctor import FRAMEWORKS

    parser.add_listing("list the runtimes", list_runtimes)
    adding = parser.add_action("add", "register an interpreter after a check that it works", add_runtime)
    adding.add_argument(
        "python", metavar="PATH", help="a Python interpreter, its virtual environment, or a llama-bench"
    )
    adding.add_argument("--name", help="its name (default: its framework, version and Python)")
    about = "number of threads that it computes with (default: its own)"
    adding.add_argument("--threads", metavar="N", type=Typed(THREADS.kind), help=about)
    about = "number of operators of a model that it runs at the same time, end to end (default: one after another)"
    adding.add_argument("--at-once", metavar="K", type=Typed(THREADS.kind), default=1, help=about)
    about = "an environment variable that it starts with, such as MXNET_SUBGRAPH_BACKEND=NONE"
    adding.add_repeatable("--env", "NAME=VALUE", about)
    about = f"the framework to use if it has several (default: the first of {', '.join(FRAMEWORKS)} that it has)"
    adding.add_argument("--framework", choices=list(FRAMEWORKS), help=about)
    checking = parser.add_action("check", "start a runtime and list its framework and settings", check_runtimes)
    checking.add_argument("name", metavar="NAME", nargs="?", help="the runtime (default: all)")
    removing = parser.add_action("remove", "forget a runtime; its results stay", remove_runtime, json=False)
    removing.add_argument("name", metavar="NAME")


def register_config(parser: Parser) -> None:
    """Add the actions of `config`; without one it lists."""
    parser.add_listing("list the settings and where each one comes from", list_settings)
    for name, about, handler in (
        ("locate", "print the path of the config file", locate),
        ("validate", "name all faults of the settings", validate),
    ):
        parser.add_action(name, about, handler).set_defaults(reads_config=False)


def examine(args: Arguments) -> int:
    """Examine the host, and the named files of weights."""
    # Loaded here: the other commands of this module measure nothing.
    from dlbricks_tui.api.doctor import denormals_in, examination_document, examined_host
    from dlbricks_tui.documents.systems import host_parts, weights_parts

    # Weights first, so that a mistyped path is refused at once.
    weights = {path: denormals_in(path) for path in args.params}
    found = examined_host(args.session.data, narrate_waiting, measures=args.peaks, threads=args.threads)
    if args.json:
        write_json(examination_document(found, weights))
        return Status.DONE
    show_parts(host_parts(found))
    narrate(f"noisy: {', '.join(found.noisy)}" if found.noisy else "no disturbance of this host was found")
    for path, counts in weights.items():
        show_parts(weights_parts(path, counts))
        if any(it.denormals for it in counts):
            narrate("cure: set what is smaller than 1e-30 to zero before the model is saved; results do not change")
    return Status.DONE


def list_runtimes(args: Arguments) -> int:
    """List the runtimes without starting any, and say if scenarios cannot be measured."""
    from dlbricks_tui.api.doctor import missing_loadgen, runtimes_of

    _write_runtimes(runtimes_of(args.session.data), as_json=args.json)
    if missing := missing_loadgen():
        narrate(missing)
    return Status.DONE


def add_runtime(args: Arguments) -> int:
    """Register a runtime."""
    from dlbricks_tui.api.doctor import added_runtime

    variables = [text.partition("=") for text in args.env]
    for name, equals, _ in variables:
        if not name or not equals:
            raise UsageError(f"--env {name}: write NAME=VALUE")
    runtime = added_runtime(
        args.session.data,
        args.python,
        name=args.name,
        threads=args.threads,
        environment=tuple((name, value) for name, _, value in variables),
        framework=args.framework,
        at_once=args.at_once,
    )
    _write_runtimes([runtime], as_json=args.json)
    narrate(f"use it with --runtime {runtime.name}")
    return Status.DONE


def check_runtimes(args: Arguments) -> int:
    """Start one runtime, or all, and name those that do not work."""
    from dlbricks_tui.api.doctor import checked_runtimes

    working, broken = checked_runtimes(args.session.data, args.name)
    narrate(*broken)
    _write_runtimes(working, as_json=args.json)
    return Status.of(broken)


def remove_runtime(args: Arguments) -> int:
    """Forget a runtime."""
    from dlbricks_tui.api.doctor import forget_runtime

    forget_runtime(args.name, args.session.data)
    narrate(f"{args.name} is forgotten")
    return Status.DONE


def _write_runtimes(runtimes: Sequence[Runtime], *, as_json: bool) -> None:
    if as_json:
        from dlbricks_tui.api.doctor import runtime_document

        write_json([runtime_document(runtime) for runtime in runtimes])
    elif runtimes:
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


def list_settings(args: Arguments) -> int:
    """List every setting, its value, and where the value comes from."""
    config: Config = args.config
    narrate(*_unknown_theme(args, config))
    if args.json:
        settings = {name: {"value": given.value, "from": given.where} for name, given in config.given.items()}
        keys = {action: {"keys": given.value, "from": given.where} for action, given in config.keys.items()}
        write_json({"settings": settings, "keys": keys})
        return Status.DONE
    from dlbricks_tui.config.config import BY_NAME, KEYS, in_file
    from dlbricks_tui.documents.parts import CellKind, Column, Table, name_column

    columns: tuple[Column[tuple[str, str, str, str]], ...] = (
        name_column("setting", lambda it: it[0]),
        name_column("value", lambda it: it[1]),
        name_column("from", lambda it: it[2]),
        Column("meaning", lambda it: it[3], CellKind.SENTENCE),
    )
    rows = [(name, in_file(it.value), it.where, BY_NAME[name].about) for name, it in config.given.items()]
    rows += [(f"{KEYS}.{action}", " ".join(it.value), it.where, "") for action, it in config.keys.items()]
    show_parts([Table(columns, rows)])
    return Status.DONE


def locate(args: Arguments) -> int:
    """Print the path of the config file."""
    exists = args.session.data.config.exists()
    if args.json:
        write_json({"config": args.session.data.config, "exists": exists, "themes": args.session.data.themes})
        return Status.DONE
    write(f"{args.session.data.config}\n")
    if not exists:
        narrate("there is no such file yet, so all settings have their defaults; `dlbricks config` lists them")
    return Status.DONE


def validate(args: Arguments) -> int:
    """Name all faults of the settings."""
    file, problems = args.session.data.config, _problems(args)
    if args.json:
        write_json({"config": file, "valid": not problems, "problems": problems})
    elif not problems and file.exists():
        narrate(f"{file} is valid")
    elif not problems:
        narrate(f"there is no {file}, so all settings have their defaults")
    for problem in problems:
        narrate(f"dlbricks: error: {problem}")
    return Status.BAD_INPUT if problems else Status.DONE


def _problems(args: Arguments) -> list[str]:
    if problems := [str(problem) for problem in args.sources.problems()]:
        return problems
    # Loaded here: `locate` needs no runtimes.
    from dlbricks_tui.api.opening import runtime_here

    # What settings name is looked up only where they can be read.
    config = args.sources.read()
    found = _unknown_theme(args, config)
    try:
        runtime_here(config.runtime, args.session.data)
    except UserError as error:
        found.append(f"{config.given[RUNTIME.config].where}: {error}")
    return found if args.workbench_faults is None else found + args.workbench_faults(config, args.session.data)


def _unknown_theme(args: Arguments, config: Config) -> list[str]:
    """Return the complaint of a theme that does not exist, if the settings name one."""
    from dlbricks_tui.config.config import unknown_theme
    from dlbricks_tui.folders import THEMES

    files = [file for folder in (THEMES, args.session.data.themes) for file in sorted(folder.glob("*.toml"))]
    return [*filter(None, [unknown_theme(config, dict.fromkeys(it.stem for it in files))])]
