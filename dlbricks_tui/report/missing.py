"""What is said where there is no data: what was not measured, and the command that measures it."""

import shlex
from collections.abc import Collection, Sequence

from dlbricks_tui.report.evaluation import Evaluation
from dlbricks_tui.report.subjects import Subject


def unjudged(evaluation: Evaluation, judged: Collection[Subject]) -> tuple[str, ...]:
    """Which models have no estimate beside an end-to-end latency, on any system."""
    return _lacking(evaluation, judged, "measured both by bricks and end to end", "measures both")


def untimed(evaluation: Evaluation, timed: Collection[Subject]) -> tuple[str, ...]:
    """Which models were not timed as a whole, on any system."""
    lines = _lacking(evaluation, timed, "measured end to end", "does it here")
    if timed:
        return lines
    taking_up = command("results", "import", "--format", "dlbricks-2019", "CHECKOUT")
    return (*lines, f"Of the fifty, {taking_up} takes up what the paper's authors measured.")


def without_latencies(evaluation: Evaluation, unknown: Sequence[Subject]) -> tuple[str, ...]:
    """That there is no critical path where no latencies are known."""
    if not unknown:
        return ()
    names = " and ".join(it.label for it in unknown)
    return (f"No critical path without latencies of {names}: {_run(evaluation)} measures every brick once.",)


def coarser(evaluation: Evaluation) -> str:
    """That nothing was asked for but single layers."""
    return f"Granularities beyond 1 were not measured: {_run(evaluation, '-g', '2', '--end-to-end')} measures pairs."


def command(*words: str) -> str:
    """A command as pages show it."""
    return f"`{shlex.join(['dlbricks', *words])}`"


def _lacking(evaluation: Evaluation, known: Collection[Subject], what: str, cure: str) -> tuple[str, ...]:
    count, lacking = len(evaluation.subjects), len(evaluation.subjects) - len(known)
    if not lacking:
        return ()
    were = f"{lacking} of {count} models {'was' if lacking == 1 else 'were'} not" if known else "No model was"
    return (f"{were} {what}: {_run(evaluation, '--end-to-end')} {cure}.",)


def _run(evaluation: Evaluation, *options: str) -> str:
    return command("run", *evaluation.asked, *options)
