"""Messages about missing data, with the command that measures it."""

import shlex
from collections.abc import Collection, Sequence

from dlbricks_tui.answers.reported import ReportContents, ReportedModel


def unjudged(contents: ReportContents, judged: Collection[ReportedModel]) -> tuple[str, ...]:
    """Report the models without both an estimate and an end-to-end latency on any system."""
    return _lacking(contents, judged, "measured both by bricks and end to end", "measures both")


def untimed(contents: ReportContents, timed: Collection[ReportedModel]) -> tuple[str, ...]:
    """Report the models without an end-to-end latency on any system."""
    lines = _lacking(contents, timed, "measured end to end", "measures it here")
    if timed:
        return lines
    importing = command("results", "import", "--format", "dlbricks-2019", "CHECKOUT")
    return (*lines, f"Of the fifty, {importing} imports the measurements of the paper's authors.")


def without_latencies(contents: ReportContents, unknown: Sequence[ReportedModel]) -> tuple[str, ...]:
    """Report the models without a critical path, because they have no latencies."""
    if not unknown:
        return ()
    names = " and ".join(it.label for it in unknown)
    return (f"No critical path without latencies of {names}: {_run(contents)} measures every brick once.",)


def coarser(contents: ReportContents) -> str:
    """Report that only single layers were measured."""
    return f"Granularities beyond 1 were not measured: {_run(contents, '-g', '2', '--end-to-end')} measures pairs."


def command(*words: str) -> str:
    """Return a command as pages show it."""
    return f"`{shlex.join(['dlbricks', *words])}`"


def _lacking(contents: ReportContents, known: Collection[ReportedModel], what: str, cure: str) -> tuple[str, ...]:
    count, lacking = len(contents.reported_models), len(contents.reported_models) - len(known)
    if not lacking:
        return ()
    were = f"{lacking} of {count} models {'was' if lacking == 1 else 'were'} not" if known else "No model was"
    return (f"{were} {what}: {_run(contents, '--end-to-end')} {cure}.",)


def _run(contents: ReportContents, *options: str) -> str:
    return command("run", *contents.asked, *options)
