"""The command line: find the command, and turn every failure into one line and an exit status."""

from __future__ import annotations

import argparse
import gc
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from dlbricks_tui import __version__
from dlbricks_tui.cli.output import ReaderGoneError, forget_remarks, narrate, narrate_once, write
from dlbricks_tui.cli.parser import Arguments, FromConfig, Handler, Parser, Status, UsageError, with_hyphens_joined
from dlbricks_tui.errors import UserError
from dlbricks_tui.folders import DATA_FOLDER_VARIABLE, DataFolder, NoHomeFolderError, data_folder
from dlbricks_tui.printable import shell_words
from dlbricks_tui.wording.commands import repeat_in_commands

if TYPE_CHECKING:
    from dlbricks_tui.api.demonstration import Demonstration
    from dlbricks_tui.config.config import Config, Sources
    from dlbricks_tui.models.library import ModelSource


class Command(NamedTuple):
    """A command, its line in the help, and the function that adds its options and its handler."""

    name: str
    about: str
    register: Callable[[Parser], None]


def _command(name: str, about: str, module: str = "") -> Command:
    """Return the command of a module, which is imported when the command is given: `--help` needs none of them.

    A module with several commands has a function `register_NAME` for each but the one of its own name.
    """
    register = f"register_{name}" if module else "register"
    return Command(name, about, lambda parser: getattr(_loaded(module or name), register)(parser))


def _loaded(name: str) -> Any:
    """Return the module of a command.

    All that loads with it stays until the end: to look for garbage there takes a sixth of an estimate.
    """
    module = f"dlbricks_tui.cli.{name}"
    if module not in sys.modules:
        gc.disable()
        try:
            import_module(module)
        finally:
            gc.freeze()
            gc.enable()
    return sys.modules[module]


# The new objects after which Python looks for garbage among them.
_FOR_A_COLLECTION = 100_000
# True since SIGINT has arrived.
_interrupted = False
# The options before a command that take the next word.
_WITH_A_VALUE = ("--data-dir", "--set")

# In the order in which `--help` lists them.
COMMANDS = (
    _command("demo", "look around in recorded results: needs no framework, and measures nothing", "jobs"),
    _command("models", "list the models of the library, add or remove files and folders"),
    _command("tree", "show the layer sequences of a model, and which of them repeat", "models"),
    _command("corpus", "show how much of one model, or of several, is the same", "models"),
    _command("run", "measure the bricks of models on this host, and estimate the models"),
    _command(
        "probe", "estimate models on this host in seconds, from other systems and a few bricks measured here", "run"
    ),
    _command("jobs", "list runs, proofs, load tests, traces and other long work, watch, replay, cancel or resume one"),
    _command("runs", "list the runs, watch, replay, pause, cancel or resume one", "jobs"),
    _command("estimate", "compose models' latencies from the results of their bricks"),
    _command("analyze", "show how fast models could be, where their time goes, and what changes would gain"),
    _command("scenario", "predict or measure how much load a model can serve: latencies of requests, highest rate"),
    _command("llm", "tell how fast language models are on this host before they are downloaded, and which of them fit"),
    _command("trace", "run a model at rising levels of detail, and write a timeline for Perfetto or chrome://tracing"),
    _command("compare", "compare the runtimes and variants of a model, or two models, systems, runtimes, days or runs"),
    _command("evaluate", "carry out an evaluation file, compare with its results, or write one from a run"),
    _command("check", "measure models again, and say which are slower than a file says: for nightly jobs", "evaluate"),
    _command("results", "list, show, compare, export, import, delete, verify and compact stored results"),
    _command("suite", "have the bricks of private models measured where the models are not"),
    _command("systems", "list the systems of the store, or compare them for some models", "compare"),
    _command("fleet", "measure on many hosts, find the best one, and set hosts up"),
    _command("report", "draw the paper's figures from stored results, or compare results, as one page"),
    _command("runtimes", "list, add, check or remove interpreters that have a framework", "doctor"),
    _command("doctor", "name what disturbs measurements on this host, and what helps"),
    _command("config", "list the settings, locate or validate the config file", "doctor"),
)


def main(
    arguments: Sequence[str],
    commands: Sequence[Command] = COMMANDS,
    without_command: Callable[[DataFolder, Sources, ModelSource | Path | None], int] | None = None,
    workbench_faults: Callable[[Config, DataFolder], list[str]] | None = None,
    demonstrate: Callable[[Demonstration, Sources, float], int] | None = None,
) -> int:
    """Run one command and return its exit status; without a command, call `without_command` or print the help.

    `without_command` opens the workbench; it gets the model, or the path, that stands in place of a command.

    `workbench_faults` returns the faults of keys and themes. `demonstrate` opens a demonstration
    in the terminal.
    """
    began = time.monotonic()
    # Most objects of a command stay until its end: to look for garbage more often takes a twentieth of an estimate.
    gc.set_threshold(_FOR_A_COLLECTION, *gc.get_threshold()[1:])
    forget_remarks()
    try:
        parser, names = command_parser(commands), [command.name for command in commands]
        args, word = _parsed(parser, arguments, names)
        if args.handler is None and word is None and without_command is None:
            parser.print_help()
            return Status.DONE
        # Loaded here: the help needs none.
        from dlbricks_tui.api.session import Remarks, Session

        args.session = Session(_data_folder(args.data_dir))
        args.session.remarks = Remarks(narrate, lambda error: error.in_command, _narrate_inputs, narrate_once)
        model = None if word is None else _model_called(word, args.session.data, names)
        if model is not None and without_command is None:
            shown = str(model) if isinstance(model, Path) else f"{word}"
            hint = f"`dlbricks tree {shell_words([shown])}` prints its layer sequences"
            raise UsageError(f"{shown}: the workbench opens a model in a terminal only; {hint}")
        args.workbench_faults = workbench_faults
        args.demonstrate = demonstrate
        args.began = began
        _take_config(args)
        if args.handler is None and without_command is not None:
            return _run(lambda args: without_command(args.session.data, args.sources, model), args)
        return _run(args.handler, args)
    except ReaderGoneError:
        return Status.DONE
    except UserError as error:
        if not was_interrupted():
            narrate(f"dlbricks: error: {error.in_command}")
            return Status.BAD_INPUT
    except KeyboardInterrupt:
        pass
    except Exception:
        # Modules whose import is interrupted raise errors of their own.
        if not was_interrupted():
            raise
    finally:
        repeat_in_commands((), ())
    narrate("dlbricks: interrupted")
    return Status.INTERRUPTED


def _parsed(parser: Parser, arguments: Sequence[str], commands: Sequence[str]) -> tuple[Arguments, str | None]:
    """Return the parsed arguments, which commands in texts repeat, and the word that stands in place of a command."""
    words, word = _without_model(arguments, commands)
    args = Arguments()
    try:
        parser.parse_args(with_hyphens_joined(words), args)
    except UsageError:
        # The word before the options of a command may be the error.
        if word is not None:
            _model_called(word, _data_folder(vars(args).get("data_dir")), commands)
        raise
    finally:
        # A complaint about the options of a command names others.
        folder, settings = vars(args).get("data_dir"), vars(args).get("settings", ())
        given = [("--data-dir", folder)] if folder is not None else []
        given += (("--set", it) for it in settings)
        repeat_in_commands([each for pair in given for each in pair], commands)
    return args, word


def _without_model(arguments: Sequence[str], commands: Sequence[str]) -> tuple[list[str], str | None]:
    """Return the arguments without the word that stands in place of a command, and that word."""
    words = list(arguments)
    at = 0
    while at < len(words) and words[at].startswith("-"):
        at += 2 if words[at] in _WITH_A_VALUE else 1
    word = words.pop(at) if at < len(words) and words[at] not in commands else None
    return words, word


def _model_called(word: str, data: DataFolder, commands: Sequence[str]) -> ModelSource | Path:
    """Return the path or the model that a word names; raise UserError if there is none."""
    from difflib import get_close_matches

    from dlbricks_tui.api.opening import model_or_path

    def refusal(reason: str) -> UsageError:
        # Names of models are seldom so close to a command.
        for command in get_close_matches(word[:120], commands, 1, 0.8) if reason.startswith("no model ") else ():
            return UsageError(f"no command {word!r}: did you mean `dlbricks {command}`?")
        is_unlike_any = reason.startswith("no model ") and "did you mean" not in reason
        told = "; `dlbricks --help` lists the commands" if is_unlike_any else ""
        return UsageError(reason.replace("no model ", "no command or model ", 1) + told)

    return model_or_path(word, data, refusal)


def _run(handler: Handler, args: Arguments) -> int:
    try:
        return handler(args)
    except (UserError, ReaderGoneError):
        raise
    except Exception as error:
        if was_interrupted():
            raise
        from dlbricks_tui.errors import keep_traceback

        file = keep_traceback(error, args.session.data.log)
        if isinstance(error, OSError) and error.filename is not None:
            # Such as a name that is too long, or a folder that may not be read: no fault of dlbricks.
            raise UsageError(f"{os.fsdecode(error.filename)}: {error.strerror}") from error
        details = f"the details are in {file}" if file else "no file could be written with the details"
        narrate(f"dlbricks: error: unexpected {type(error).__name__}: {error}; this is a fault of dlbricks, {details}")
        return Status.DONE_WITH_FAILURES


def _narrate_inputs(line: str) -> None:
    """Narrate that a model has inputs as given before."""
    narrate_once(f"{line}; --input or --value gives others")


def _take_config(args: Arguments) -> None:
    from dlbricks_tui.config.config import Sources

    args.sources = Sources(args.session.data.config, os.environ, args.settings)
    if args.reads_config:
        args.config = args.sources.read()
        # The options that the command line leaves to the settings.
        args.from_config = {name: value.setting for name, value in vars(args).items() if isinstance(value, FromConfig)}
        for name, setting in args.from_config.items():
            setattr(args, name, args.config.given[setting].value)


def _data_folder(chosen: str | None) -> DataFolder:
    cure = f"name another with --data-dir or {DATA_FOLDER_VARIABLE}"
    try:
        folder = data_folder(chosen)
        standing = _nearest_existing(folder.path)
        if standing.is_symlink() and not standing.exists():
            raise UsageError(
                f"the data folder cannot be {folder.path}: {standing} is a link to {standing.readlink()}, which does "
                f"not exist: make that folder, or {cure}"
            )
        if not standing.is_dir():
            raise UsageError(f"the data folder cannot be {folder.path}: {standing} is a file; {cure}")
    except NoHomeFolderError as error:
        raise UsageError(f"there is no home folder for the path {error}, so no place for data; {cure}") from error
    except OSError as error:
        raise UsageError(f"the data folder cannot be reached: {error}; {cure}") from error
    return folder


def _nearest_existing(path: Path) -> Path:
    """Return the path or its nearest parent that exists or is a link; raise OSError where that cannot be found out."""
    for each in (path, *path.parents):
        # Path.exists() hides other errors from Python 3.14 on.
        with suppress(FileNotFoundError, NotADirectoryError):
            each.lstat()
            if not each.is_symlink():
                return each
            with suppress(FileNotFoundError):
                each.stat()
            return each
    return Path(path.anchor)


def command_parser(commands: Sequence[Command] = COMMANDS) -> Parser:
    """Return the parser of all commands; each command adds its options when it is given."""
    parser = Parser(
        prog="dlbricks",
        description="Benchmark deep-learning models by their unique layer sequences: "
        "run each brick once, compose every model's latency. Without a command, the workbench opens in the terminal; "
        "with the name or the path of a model in its place, on that model.",
    )
    parser.add_argument("--version", action=_Version)
    about = "a setting that counts over the config file, such as workbench.theme=light"
    parser.add_repeatable("--set", "NAME=VALUE", about, dest="settings")
    parser.set_defaults(data_dir=None, handler=None, reads_config=True, json=False)
    added = parser.add_subparsers(title="commands", metavar="COMMAND")
    for command in commands:
        added.add_parser(command.name, help=command.about, register=command.register)
    return parser


class _Version(argparse.Action):
    def __init__(self, option_strings: Sequence[str], dest: str) -> None:
        super().__init__(option_strings, dest=argparse.SUPPRESS, nargs=0, help="print the version and exit")

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        write(f"dlbricks {__version__}\n")
        parser.exit()


@contextmanager
def interrupts_raise(leave: Callable[[], None]) -> Iterator[None]:
    """Let SIGINT raise KeyboardInterrupt in the block, and be remembered; `leave` ends the program at once."""

    def interrupt(*_: object) -> None:
        global _interrupted
        _interrupted = True
        raise KeyboardInterrupt

    def unraisable(told: sys.UnraisableHookArgs) -> None:
        # Python would print a traceback, and go on as if nothing had happened.
        if issubclass(told.exc_type, KeyboardInterrupt):
            leave()
        hook(told)

    before, hook = signal.signal(signal.SIGINT, interrupt), sys.unraisablehook
    sys.unraisablehook = unraisable
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        sys.unraisablehook = hook


def was_interrupted() -> bool:
    """Return whether SIGINT has arrived: modules that are imported then may raise something else in its place."""
    return _interrupted
