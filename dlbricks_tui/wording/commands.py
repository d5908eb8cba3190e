"""The commands in texts for the user: each repeats the options that stand before the command, such as `--data-dir`."""

import re
from collections.abc import Callable, Iterable, Sequence

from dlbricks_tui.printable import shell_words

# Finds where a command that the user may run lacks the options before the command, and those options.
_lacking: re.Pattern[str] | None = None
_repeated = ""
# Commands for other machines, whose folders are their own, and those that only ask for help.
_ELSEWHERE = r"fleet worker|results export`|[^`\n]* --help`|[^`]*`(?: and `[^`]*`)*\s(?:there|on each host)\b"


def repeat_in_commands(options: Sequence[str], commands: Iterable[str]) -> None:
    """Let the commands in all output repeat these options, without which they would work on another data folder."""
    global _lacking, _repeated
    _repeated = f" {shell_words(options)}"
    named = "|".join(commands)
    pattern = rf"(?<![\w/.~-])dlbricks(?=\s+(?!{_ELSEWHERE})(?:{named})\b)"
    _lacking = re.compile(pattern) if options else None


def completed(text: str, quoted: Callable[[str], str] = str) -> str:
    """Return a text whose commands have these options, as a format quotes them."""
    return text if _lacking is None else _lacking.sub(lambda it: it[0] + quoted(_repeated), text)
