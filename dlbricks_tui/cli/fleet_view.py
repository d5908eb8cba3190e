"""A fleet run as tables: its hosts, the models on them, and what the doctor found."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from dlbricks_tui.cli.drawing import name_cell, plain_table
from dlbricks_tui.fleet.setting_up.findings import Verdict
from dlbricks_tui.printable import printable
from dlbricks_tui.wording.fleets import ORDER_LEGEND, order_in_words
from dlbricks_tui.wording.numbers import PARTLY, PREDICTED, counted, milliseconds, names_of

if TYPE_CHECKING:
    from rich.console import RenderableType

    from dlbricks_tui.answers.fleets.results import FleetEstimate, FleetResult, FleetSummary
    from dlbricks_tui.fleet.setting_up.findings import Examination

_SIGNS = {Verdict.FINE: " ", Verdict.NOTE: "!", Verdict.LACKS: "x"}


def fleet_view(found: FleetResult) -> Iterator[RenderableType]:
    """Yield the hosts, the estimates of all models on them, and the order of the hosts for each model."""
    runtimes = {model.runtime for model in found.models}
    yield from _hosts(found)
    for left_out in found.left_out:
        yield Text(printable(f"{left_out.model} is left out: {left_out.reason}"))
    if found.models:
        yield ""
        yield _models(found, with_runtimes=len(runtimes) > 1)
        yield Text(printable("; ".join(_legend(found, runtimes))), style="dim")
    ordered = [model for model in found.models if model.order]
    for model in ordered:
        name = f"{model.model} by {model.runtime}" if len(runtimes) > 1 else model.model
        settled = "settled with 95 % confidence" if model.settled else "not settled"
        yield Text(printable(f"{name}: {order_in_words(model.order)} ({settled})"))
    if ordered:
        yield Text(ORDER_LEGEND, style="dim")


def _legend(found: FleetResult, runtimes: set[str]) -> Iterator[str]:
    """Yield what the figures are, and what the signs mean that stand before some of them."""
    if len(runtimes) == 1:
        yield f"by {min(runtimes)}"
    yield "latencies in milliseconds"
    estimates = [it for model in found.models for it in model.estimates if it.sequential_ms is not None]
    if any(it.predicted_layers and not it.missing_layers for it in estimates):
        yield f"{PREDICTED} is predicted in part"
    if any(it.missing_layers for it in estimates):
        yield f"{PARTLY} lacks layers"
    if any(it.dollars_per_million is not None for it in estimates):
        yield "prices are of a million inferences"


def _hosts(found: FleetResult) -> Iterator[RenderableType]:
    """Yield the hosts as a table, and below it the reasons for the states of some."""
    table = _table(("HOST", "STATE", "SYSTEM"), ("BRICKS", "FAILED", "DISTURBED"))
    for it in found.hosts:
        table.add_row(
            name_cell(it.host),
            it.state,
            name_cell(it.system_name or it.system),
            f"{it.bricks} of {it.of}" if it.of else "",
            str(it.failed or ""),
            counted(it.disturbed_rounds, "round") if it.disturbed_rounds else "",
        )
    yield table
    for it in found.hosts:
        if it.message:
            yield Text(printable(f"{it.host} {it.state}: {it.message}"))


def _table(names: Iterable[str], numbers: Iterable[str]) -> Table:
    """Return a table without lines, of columns of names and columns of numbers."""
    table = Table(box=None, pad_edge=False, header_style="dim")
    for heading in names:
        table.add_column(heading, no_wrap=True, overflow="ellipsis")
    for heading in numbers:
        table.add_column(heading, justify="right", no_wrap=True)
    return table


def _models(found: FleetResult, *, with_runtimes: bool) -> Table:
    keys = ("MODEL", "RUNTIME") if with_runtimes else ("MODEL",)
    table = _table((*keys, "HOST"), ("LATENCY", "95 % INTERVAL", "PER SECOND", "PRICE"))
    for model in found.models:
        named = (model.model, model.runtime) if with_runtimes else (model.model,)
        for number, it in enumerate(model.estimates):
            interval = "" if it.low_ms is None or it.high_ms is None else _interval(it.low_ms, it.high_ms)
            table.add_row(
                *(name_cell(name if number == 0 else "") for name in named),
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
        table.add_row(name_cell(names_of(it.models)), it.fleet, it.state.value, *map(str, counts))
    return table


def examination_view(found: Iterable[Examination], *, everything: bool) -> Table:
    """Return what the doctor found; without `everything` only what a host lacks or what is worth knowing."""
    table = _table(("HOST", "", "SUBJECT"), ())
    # States and cures are sentences, and wrap.
    table.add_column("STATE")
    table.add_column("CURE")
    for host in found:
        rows = [it for it in host.findings if everything or it.verdict is not Verdict.FINE]
        name = host.host
        for it in rows:
            cells = (Text(_SIGNS[it.verdict]), name_cell(it.subject), Text(printable(it.state)))
            table.add_row(name_cell(name), *cells, Text(printable(it.cure)))
            name = ""
        if not rows:
            table.add_row(name_cell(name), _SIGNS[Verdict.FINE], "everything", "as it should be", "")
    return table
