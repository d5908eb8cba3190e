"""`dlbricks demo`: the whole program on recorded results, without any framework."""

import argparse
import os

from dlbricks_tui.cli.output import narrate
from dlbricks_tui.cli.parser import Parser


def register(parser: Parser) -> None:
    """Add the options of `demo`."""
    parser.add_speed(default=4.0)
    parser.add_quiet()
    parser.end(demonstrate, "measuring.ReplayedRun")
    parser.set_defaults(reads_config=False)


def demonstrate(args: argparse.Namespace) -> int:
    """Open the workbench on recorded results; without a terminal, replay a run and print its estimates."""
    # Loaded here: `dlbricks demo --help` needs none of them.
    from dlbricks_tui.api.demonstration import open_demonstration
    from dlbricks_tui.api.measuring import find_run
    from dlbricks_tui.cli.jobs import replay_run
    from dlbricks_tui.config.config import Sources

    with open_demonstration() as found:
        if args.demonstrate is not None and not args.json:
            # The user's own settings may name runtimes that were not recorded.
            sources = Sources(found.data.config, os.environ, args.settings)
            status: int = args.demonstrate(found, sources, args.speed)
            return status
        if not args.quiet:
            narrate(f"a demonstration: all numbers were {found.host.origin}")
        return replay_run(find_run(found.replayed, found.data), args)
