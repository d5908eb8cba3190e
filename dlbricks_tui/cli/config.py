"""`dlbricks config`: list the settings, locate the config file, and validate it."""

import argparse
from collections.abc import Callable

from dlbricks_tui.cli.output import narrate, write, write_json
from dlbricks_tui.cli.parser import Parser, Status, add_action, add_listing
from dlbricks_tui.config.config import BY_NAME, KEYS, Config, Sources, in_file


def register(parser: Parser) -> None:
    """Add the actions of `config`; without one it lists."""
    actions = add_listing(parser, "list the settings and where each one comes from", list_settings)
    add_action(actions, "locate", "print the path of the config file", locate).set_defaults(reads_config=False)
    add_action(actions, "validate", "name all faults of the settings", validate).set_defaults(reads_config=False)


def list_settings(args: argparse.Namespace) -> int:
    """List every setting, its value, and where the value comes from."""
    config: Config = args.config
    if args.json:
        settings = {name: {"value": given.value, "from": given.where} for name, given in config.given.items()}
        keys = {action: {"keys": given.keys, "from": given.where} for action, given in config.keys.items()}
        write_json({"settings": settings, "keys": keys})
    else:
        _show(config)
    return Status.DONE


def locate(args: argparse.Namespace) -> int:
    """Print the path of the config file."""
    exists = args.data.config.exists()
    if args.json:
        write_json({"config": args.data.config, "exists": exists, "themes": args.data.themes})
        return Status.DONE
    write(f"{args.data.config}\n")
    if not exists:
        narrate("there is no such file yet, so all settings have their defaults; `dlbricks config` lists them")
    return Status.DONE


def validate(args: argparse.Namespace) -> int:
    """Name all faults of the settings."""
    file, problems = args.data.config, _problems(args.sources, args.wrong_keys)
    if args.json:
        write_json({"config": file, "valid": not problems, "problems": problems})
    elif not problems and file.exists():
        narrate(f"{file} is valid")
    elif not problems:
        narrate(f"there is no {file}, so all settings have their defaults")
    for problem in problems:
        narrate(f"dlbricks: error: {problem}")
    return Status.BAD_INPUT if problems else Status.DONE


def _problems(sources: Sources, wrong_keys: Callable[[Config], str] | None) -> list[str]:
    problems = [str(problem) for problem in sources.problems()]
    # Keys are checked only where the settings can be read.
    if not problems and wrong_keys is not None:
        problems += filter(None, [wrong_keys(sources.read())])
    return problems


def _show(config: Config) -> None:
    from dlbricks_tui.cli.rendering import show_parts
    from dlbricks_tui.documents.parts import CellKind, Column, Table, name_column

    columns: tuple[Column[tuple[str, str, str, str]], ...] = (
        name_column("setting", lambda it: it[0]),
        name_column("value", lambda it: it[1]),
        name_column("from", lambda it: it[2]),
        Column("meaning", lambda it: it[3], CellKind.SENTENCE),
    )
    settings = [(name, in_file(it.value), it.where, BY_NAME[name].about) for name, it in config.given.items()]
    keys = [(f"{KEYS}.{action}", " ".join(it.keys), it.where, "") for action, it in config.keys.items()]
    show_parts([Table(columns, settings + keys)])
