"""Opens the door that the command line asks for; `dlbricks` and `python -m dlbricks_tui` are the same."""

import sys


def main() -> int:
    """Runs this process's command line and returns its exit status."""
    from dlbricks_tui.cli.main import main as command_line

    return command_line(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
