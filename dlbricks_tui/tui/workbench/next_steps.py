"""The next steps that are suggested after the first answer about a model: those whose answers are not known yet."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from dlbricks_tui.tui.keys.keymap import Hint

if TYPE_CHECKING:
    from collections.abc import Iterator

# The most steps that are suggested at a time.
MOST_STEPS = 3


class KnownAlready(NamedTuple):
    """The facts that the store and the library have about a model and around it."""

    # Combinations of runtime, threads, batch size and precision in which the whole model was timed on the system.
    combinations: int = 0
    proofs: int = 0
    load_tests: int = 0
    systems: int = 0
    # Models that the user has added to the library.
    own_models: int = 0


class NextStep(Enum):
    """A step by its action and the question that it answers, the most useful first."""

    VARIANTS = ("workbench.show_comparison", "which runtime and batch are best")
    ANALYSIS = ("workbench.show_analysis", "what could be faster")
    LOAD = ("workbench.show_scenario", "how much load it can serve")
    OWN_MODEL = ("workbench.open_path", "your own model: open its file")
    HOSTS = ("workbench.show_fleet", "which host is best")

    def __init__(self, action: str, question: str) -> None:
        self.action = action
        self.question = question

    def is_done(self, known: KnownAlready) -> bool:
        """Return whether the answer is known."""
        return {
            NextStep.VARIANTS: known.combinations > 1,
            NextStep.ANALYSIS: known.proofs > 0,
            NextStep.LOAD: known.load_tests > 0,
            NextStep.OWN_MODEL: known.own_models > 0,
            NextStep.HOSTS: known.systems > 1,
        }[self]


def next_steps(known: KnownAlready) -> tuple[NextStep, ...]:
    """Return the first steps whose answers are not known."""
    return tuple(step for step in NextStep if not step.is_done(known))[:MOST_STEPS]


def step_hints(steps: tuple[NextStep, ...]) -> Iterator[Hint]:
    """Yield a line for each step with its key, and one that hides them."""
    if steps:
        yield Hint("")
        yield Hint("What next?", "heading")
        for step in steps:
            yield Hint(f"{{{step.action}}}  {step.question}")
        yield Hint("{workbench.hide_steps}  hides these lines", "muted")
