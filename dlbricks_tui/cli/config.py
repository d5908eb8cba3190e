"""`dlbricks config`: where the config file is, whether it is right, and which settings count."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from dlbricks_tui.cli.output import Json, narrate, show, write, write_json
from dlbricks_tui.cli.parser import Groups, add_json_option
from dlbricks_tui.cli.status import Status

if TYPE_CHECKING:
    from dlbricks_tui.config.config import Config
    from dlbricks_tui.config.reading import Sources


def register(groups: Groups) -> None:
    """Adds `config`."""
    parser = groups.add_parser("config", help="the settings: where they are kept, and which count")
    add_json_option(parser)
    parser.set_defaults(handler=list_settings)
    actions = parser.add_subparsers(title="actions", metavar="ACTION")
    listing = actions.add_parser("list", help="list the settings with who gave them (what `config` does by itself)")
    add_json_option(listing)
    listing.set_defaults(handler=list_settings)
    locating = actions.add_parser("locate", help="print where the config file is, or would be")
    add_json_option(locating)
    locating.set_defaults(handler=locate, reads_config=False)
    validating = actions.add_parser("validate", help="say what is wrong with the settings, all of it at once")
    add_json_option(validating)
    validating.set_defaults(handler=validate, reads_config=False)


def list_settings(args: argparse.Namespace) -> int:
    """Lists every setting, its value, and who gave it."""
    config: Config = args.config
    if args.json:
        write_json({"settings": _settings(config), "keys": _keys(config)})
    else:
        _show(config)
    return Status.DONE


def locate(args: argparse.Namespace) -> int:
    """Prints the path of the config file."""
    exists = args.data.config.exists()
    if args.json:
        write_json({"config": str(args.data.config), "exists": exists, "themes": str(args.data.themes)})
        return Status.DONE
    write(f"{args.data.config}\n")
    if not exists:
        narrate("there is no such file yet: the settings are those by default; `dlbricks config` lists them")
    return Status.DONE


def validate(args: argparse.Namespace) -> int:
    """Names all that is wrong with the settings."""
    problems = _problems(args)
    if args.json:
        write_json({"config": str(args.data.config), "valid": not problems, "problems": problems})
    elif not problems:
        there = args.data.config.exists()
        narrate(f"{args.data.config} is right" if there else f"there is no {args.data.config}: nothing can be wrong")
    for problem in problems:
        narrate(f"dlbricks: error: {problem}")
    return Status.BAD_INPUT if problems else Status.DONE


def _problems(args: argparse.Namespace) -> list[str]:
    sources: Sources = args.sources
    problems = [str(problem) for problem in sources.problems()]
    # Of settings that are wrong already it cannot be said what their keys would do.
    if not problems and args.wrong_keys is not None:
        problems += filter(None, [args.wrong_keys(sources.read())])
    return problems


def _settings(config: Config) -> Json:
    return {name: {"value": given.value, "from": given.where} for name, given in config.given.items()}


def _keys(config: Config) -> Json:
    return {action: {"keys": list(given.keys), "from": given.where} for action, given in config.keys.items()}


def _show(config: Config) -> None:
    from dlbricks_tui.cli.tables import name_cell, plain_table
    from dlbricks_tui.config.options import BY_NAME, KEYS, shown

    table = plain_table("SETTING", "VALUE", "FROM", "MEANING")
    for column in table.columns[1:]:
        column.justify, column.no_wrap = "left", column.header != "MEANING"
    for name, given in config.given.items():
        table.add_row(name_cell(name), shown(given.value), given.where, BY_NAME[name].about)
    for action, keyed in config.keys.items():
        table.add_row(name_cell(f"{KEYS}.{action}"), " ".join(keyed.keys), keyed.where, "")
    show(table)
