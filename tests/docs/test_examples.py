"""Every command has an example, which its parser takes."""

import shlex

import pytest

from dlbricks_tui.cli.main import command_parser
from dlbricks_tui.cli.parser import with_hyphens_joined
from docs.generators.examples import EXAMPLES
from docs.generators.parsers import commands


def test_every_command_has_an_example() -> None:
    # `results` needs an action, and `suite` prints its help without one.
    runnable = {it.name for it in commands() if not it.needs_action} - {"dlbricks suite"}
    assert set(EXAMPLES) == runnable


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_command_takes_its_example(name: str) -> None:
    program, *words = shlex.split(EXAMPLES[name])
    assert EXAMPLES[name].startswith(name)
    assert program == "dlbricks"
    assert callable(command_parser().parse_args(with_hyphens_joined(words)).handler)
