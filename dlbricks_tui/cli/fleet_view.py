"""A fleet run as tables: its hosts, the models on them, and what the doctor found."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from dlbricks_tui.cli.drawing import name_cell, plain_table
from dlbricks_tui.fleet.findings import Verdict
from dlbricks_tui.wording.fleets import order_in_words
from dlbricks_tui.wording.numbers import PARTLY, PREDICTED, milliseconds

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

    from dlbricks_tui.answers.fleets.results import FleetEstimate, FleetResult, FleetSummary
    from dlbricks_tui.fleet.findings import Examination

_SIGNS = {Verdict.FINE: " ", Verdict.NOTE: "!", Verdict.LACKS: "x"}


def fleet_view(found: FleetResult) -> Iterator[RenderableType]:
    """Yield the hosts, the estimates of all models on them, and the order of the hosts for each model."""
    yield _hosts(found)
    if found.models:
        yield ""
        yield _models(found)
        yield "latencies in milliseconds; ~ is predicted in part, … lacks layers; prices are of a million inferences"
    several = len({model.runtime for model in found.models}) > 1
    for model in found.models:
        if model.order:
            name = f"{model.model} by {model.runtime}" if several else model.model
            settled = "settled with 95 % confidence" if model.settled else "not settled"
            yield f"{name}: {order_in_words(model.order)} ({settled})"


def _hosts(found: FleetResult) -> Table:
    table = plain_table("HOST", "STATE", "SYSTEM", "BRICKS", "FAILED", "DISTURBED", "")
    for it in found.hosts:
        disturbed = f"{it.disturbed_rounds} rounds" if it.disturbed_rounds else ""
        table.add_row(
            name_cell(it.host),
            it.state,
            name_cell(it.system),
            f"{it.bricks} of {it.of}" if it.of else "",
            str(it.failed or ""),
            disturbed,
            name_cell(it.message),
        )
    return table


def _models(found: FleetResult) -> Table:
    table = plain_table("MODEL", "RUNTIME", "HOST", "LATENCY", "95 % INTERVAL", "PER SECOND", "PRICE")
    for model in found.models:
        for number, it in enumerate(model.estimates):
            interval = "" if it.low_ms is None or it.high_ms is None else _interval(it.low_ms, it.high_ms)
            table.add_row(
                name_cell(model.model if number == 0 else ""),
                name_cell(model.runtime if number == 0 else ""),
                name_cell(it.host),
                _latency(it),
                interval,
                "" if it.per_second is None else f"{it.per_second:,.1f}",
                "" if it.dollars_per_million is None else f"${it.dollars_per_million:,.2f}",
            )
    return table


def _latency(it: FleetEstimate) -> str:
    if it.sequential_ms is None:
        return "-"
    sign = PARTLY if it.missing_layers else PREDICTED if it.predicted_layers else ""
    return f"{sign}{milliseconds(it.sequential_ms)}"


def _interval(low_ms: float, high_ms: float) -> str:
    return f"{milliseconds(low_ms)} to {milliseconds(high_ms)}"


def summaries_view(found: Iterable[FleetSummary]) -> Table:
    """Return the fleet runs of a data folder as a table."""
    table = plain_table("MODELS", "FLEET RUN", "STATE", "BRICKS", "MEASURED", "KNOWN", "FAILED")
    for it in found:
        counts = (it.bricks, it.measured, it.known, it.failed)
        table.add_row(name_cell(", ".join(it.models)), it.fleet, it.state.value, *map(str, counts))
    return table


def examination_view(found: Iterable[Examination], *, everything: bool) -> Table:
    """Return what the doctor found; without `everything` only what a host lacks or what is worth knowing."""
    table = plain_table("HOST", "", "SUBJECT", "STATE", "CURE")
    for host in found:
        rows = [it for it in host.findings if everything or it.verdict is not Verdict.FINE]
        name = host.host
        for it in rows:
            table.add_row(name_cell(name), _SIGNS[it.verdict], it.subject, name_cell(it.state), name_cell(it.cure))
            name = ""
        if not rows:
            table.add_row(name_cell(name), _SIGNS[Verdict.FINE], "everything", "as it should be", "")
    return table
