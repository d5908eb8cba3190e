"""Messages about missing data, with the command that measures it."""

import shlex
from collections.abc import Collection, Sequence

from dlbricks_tui.report.evaluation import Evaluation, ReportedModel


def unjudged(evaluation: Evaluation, judged: Collection[ReportedModel]) -> tuple[str, ...]:
    """Report the models without both an estimate and an end-to-end latency on any system."""
    return _lacking(evaluation, judged, "measured both by bricks and end to end", "measures both")


def untimed(evaluation: Evaluation, timed: Collection[ReportedModel]) -> tuple[str, ...]:
    """Report the models without an end-to-end latency on any system."""
    lines = _lacking(evaluation, timed, "measured end to end", "measures it here")
    if timed:
        return lines
    importing = command("results", "import", "--format", "dlbricks-2019", "CHECKOUT")
    return (*lines, f"Of the fifty, {importing} imports the measurements of the paper's authors.")


def without_latencies(evaluation: Evaluation, unknown: Sequence[ReportedModel]) -> tuple[str, ...]:
    """Report the models without a critical path, because they have no latencies."""
    if not unknown:
        return ()
    names = " and ".join(it.label for it in unknown)
    return (f"No critical path without latencies of {names}: {_run(evaluation)} measures every brick once.",)


def coarser(evaluation: Evaluation) -> str:
    """Report that only single layers were measured."""
    return f"Granularities beyond 1 were not measured: {_run(evaluation, '-g', '2', '--end-to-end')} measures pairs."


def command(*words: str) -> str:
    """Return a command as pages show it."""
    return f"`{shlex.join(['dlbricks', *words])}`"


def _lacking(evaluation: Evaluation, known: Collection[ReportedModel], what: str, cure: str) -> tuple[str, ...]:
    count, lacking = len(evaluation.reported_models), len(evaluation.reported_models) - len(known)
    if not lacking:
        return ()
    were = f"{lacking} of {count} models {'was' if lacking == 1 else 'were'} not" if known else "No model was"
    return (f"{were} {what}: {_run(evaluation, '--end-to-end')} {cure}.",)


def _run(evaluation: Evaluation, *options: str) -> str:
    return command("run", *evaluation.asked, *options)
