"""`dlbricks demo`: the whole program on recorded results, without any framework."""

import argparse
import os

from dlbricks_tui.cli.output import narrate
from dlbricks_tui.cli.parser import Parser, add_json_option, add_quiet_option, add_schema_option, add_speed_option


def register(parser: Parser) -> None:
    """Add the options of `demo`."""
    add_speed_option(parser, default=4.0)
    add_quiet_option(parser)
    add_json_option(parser)
    add_schema_option(parser, "ReplayedRun", module="measuring")
    parser.set_defaults(handler=demonstrate, reads_config=False)


def demonstrate(args: argparse.Namespace) -> int:
    """Open the workbench on recorded results; without a terminal, replay a run and print its estimates."""
    # Loaded here: `dlbricks demo --help` needs none of them.
    from dlbricks_tui.answers.demonstration import open_demonstration
    from dlbricks_tui.cli.runs import ReplayShowing, replay_run
    from dlbricks_tui.config.config import Sources
    from dlbricks_tui.jobs.folder import RunFolders
    from dlbricks_tui.jobs.replay import checked_speed

    speed = checked_speed(args.speed)
    with open_demonstration() as found:
        if args.demonstrate is not None and not args.json:
            # The user's own settings may name runtimes that were not recorded.
            sources = Sources(found.data.config, os.environ, args.settings)
            status: int = args.demonstrate(found, sources, speed)
            return status
        if not args.quiet:
            narrate(f"a demonstration: all numbers were {found.host.origin}")
        return replay_run(RunFolders(found.data.runs).find(found.replayed), speed, ReplayShowing(args.json, args.quiet))
