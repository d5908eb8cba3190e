"""`dlbricks config`: list the settings, locate the config file, and validate it."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from dlbricks_tui.cli.output import Json, narrate, show, write, write_json
from dlbricks_tui.cli.parser import Groups, Status, add_json_option

if TYPE_CHECKING:
    from collections.abc import Callable

    from dlbricks_tui.config.config import Config
    from dlbricks_tui.config.reading import Sources


def register(groups: Groups) -> None:
    """Add `config`."""
    parser = groups.add_parser("config", help="list the settings, locate or validate the config file")
    add_json_option(parser)
    parser.set_defaults(handler=list_settings)
    actions = parser.add_subparsers(title="actions", metavar="ACTION")
    listing = actions.add_parser(
        "list", help="list the settings and where each one comes from (as `config` does by itself)"
    )
    add_json_option(listing)
    listing.set_defaults(handler=list_settings)
    locating = actions.add_parser("locate", help="print the path of the config file")
    add_json_option(locating)
    locating.set_defaults(handler=locate, reads_config=False)
    validating = actions.add_parser("validate", help="name all faults of the settings")
    add_json_option(validating)
    validating.set_defaults(handler=validate, reads_config=False)


def list_settings(args: argparse.Namespace) -> int:
    """List every setting, its value, and where the value comes from."""
    config: Config = args.config
    if args.json:
        write_json({"settings": _settings(config), "keys": _keys(config)})
    else:
        _show(config)
    return Status.DONE


def locate(args: argparse.Namespace) -> int:
    """Print the path of the config file."""
    exists = args.data.config.exists()
    if args.json:
        write_json({"config": str(args.data.config), "exists": exists, "themes": str(args.data.themes)})
        return Status.DONE
    write(f"{args.data.config}\n")
    if not exists:
        narrate("there is no such file yet, so all settings have their defaults; `dlbricks config` lists them")
    return Status.DONE


def validate(args: argparse.Namespace) -> int:
    """Name all faults of the settings."""
    problems = _problems(args.sources, args.wrong_keys)
    if args.json:
        write_json({"config": str(args.data.config), "valid": not problems, "problems": problems})
    elif not problems:
        there = args.data.config.exists()
        narrate(
            f"{args.data.config} is valid"
            if there
            else f"there is no {args.data.config}, so all settings have their defaults"
        )
    for problem in problems:
        narrate(f"dlbricks: error: {problem}")
    return Status.BAD_INPUT if problems else Status.DONE


def _problems(sources: Sources, wrong_keys: Callable[[Config], str] | None) -> list[str]:
    problems = [str(problem) for problem in sources.problems()]
    # Keys are checked only where the settings can be read.
    if not problems and wrong_keys is not None:
        problems += filter(None, [wrong_keys(sources.read())])
    return problems


def _settings(config: Config) -> Json:
    return {name: {"value": given.value, "from": given.where} for name, given in config.given.items()}


def _keys(config: Config) -> Json:
    return {action: {"keys": list(given.keys), "from": given.where} for action, given in config.keys.items()}


def _show(config: Config) -> None:
    from dlbricks_tui.cli.drawing import name_cell, plain_table
    from dlbricks_tui.config.options import BY_NAME, KEYS, shown

    table = plain_table("SETTING", "VALUE", "FROM", "MEANING")
    for column in table.columns[1:]:
        column.justify, column.no_wrap = "left", column.header != "MEANING"
    for name, given in config.given.items():
        table.add_row(name_cell(name), shown(given.value), given.where, BY_NAME[name].about)
    for action, keyed in config.keys.items():
        table.add_row(name_cell(f"{KEYS}.{action}"), " ".join(keyed.keys), keyed.where, "")
    show(table)
