"""Options with numbers: each has limits, and refuses all else in one line."""

import argparse
from collections.abc import Iterator

import pytest

from dlbricks_tui.cli import runs
from dlbricks_tui.cli.main import command_parser, main
from dlbricks_tui.cli.parser import Parser, Typed
from dlbricks_tui.settings.kinds import number, several, share, whole

NO_NUMBERS = [
    "1e18",
    "nan",
    "inf",
    "-inf",
    "-1",
    "1e400",
    "-0.0",
    "",
    "x",
    "9" * 30,
    "9" * 5000,
    "\u0663",
    "1_0x",
    "1,",
]


def is_numeric(action: argparse.Action) -> bool:
    return isinstance(action.type, Typed) and action.type.kind.is_number


def options(parser: Parser, name: str = "dlbricks") -> Iterator[tuple[str, argparse.Action]]:
    """Yield the options of a parser and of its commands, with the command line up to each."""
    parser.complete()
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for command, found in action.choices.items():
                yield from options(found, f"{name} {command}")
        else:
            yield f"{name} {'/'.join(action.option_strings) or action.dest}", action


def test_no_option_takes_any_number() -> None:
    found = dict(options(command_parser()))
    assert len([it for it in found.values() if is_numeric(it)]) > 40
    assert [name for name, it in found.items() if it.type in (int, float)] == []


def test_numbers_beyond_the_limits_are_refused() -> None:
    for name, action in options(command_parser()):
        if is_numeric(action) or action.type is runs._budget:
            for text in NO_NUMBERS:
                if action.type is runs._budget and text == "inf":
                    continue
                with pytest.raises(argparse.ArgumentTypeError, match="give a"):
                    assert callable(action.type) and action.type(text) is None, (name, text)


def test_numbers_within_the_limits_are_taken() -> None:
    assert (Typed(number(10.0))("10"), Typed(number(10.0))("1e-3")) == (10.0, 0.001)
    assert (Typed(whole(0, 9))("0"), Typed(whole(1, 99))("99")) == (0, 99)
    assert Typed(several(whole(1, 8)))("4, 1,4") == (4, 1)
    assert (Typed(share())("5%"), Typed(share())("0.05")) == (0.05, 0.05)


def test_a_time_budget_that_no_timer_takes_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "squeezenet1.1", "--time-budget", "1e18"]) == 2
    told = "argument --time-budget: '1e18': give a number above 0 and up to 31,536,000 (see `dlbricks run --help`)"
    assert capsys.readouterr() == ("", f"dlbricks: error: {told}\n")
