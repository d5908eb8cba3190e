"""A fleet run: its hosts, the estimates of its models on them, the order of the hosts, and a picture of it."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from dlbricks_tui.documents.parts import BLANK_LINE, CellKind, Column, Part, Sentence, Table, bar_column, name_column
from dlbricks_tui.documents.pictures import Axis, BarRow, LegendSign, Mark, Rows
from dlbricks_tui.fleet.request import FleetHostState, HostChanged
from dlbricks_tui.wording.answers import runtime_words
from dlbricks_tui.wording.jobs import WORKING
from dlbricks_tui.wording.numbers import (
    PARTLY,
    PREDICTED,
    counted,
    delay_text,
    duration,
    milliseconds,
    names_of,
    or_dash,
    rate_text,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from dlbricks_tui.api.fleets import FleetEstimate, FleetModel, FleetResult
    from dlbricks_tui.fleet.doctor import Examination

_STYLES: Mapping[FleetHostState, str] = {
    FleetHostState.PROBING: "good",
    FleetHostState.MEASURING: "good",
    FleetHostState.DONE: "good",
    FleetHostState.WAITING: "warn",
    FleetHostState.PAUSED: "warn",
    FleetHostState.CONNECTING: "muted",
    FleetHostState.IDLE: "muted",
    FleetHostState.LOST: "bad",
    FleetHostState.REFUSED: "bad",
    FleetHostState.DISTRUSTED: "bad",
    FleetHostState.FAILED: "bad",
}

_SIGNS = {"fine": " ", "note": "!", "lacks": "x"}


def examination_parts(found: Sequence[Examination], *, everything: bool) -> Iterator[Part]:
    """Yield what the doctor found; without `everything` only what a host lacks or what is worth knowing."""
    rows: list[tuple[str, str, str, str, str]] = []
    for host in found:
        told = [
            (_SIGNS[it.verdict.value], it.subject, it.state, it.cure)
            for it in host.findings
            if everything or it.verdict.value != "fine"
        ] or [(" ", "everything", "as it should be", "")]
        rows += [(host.host if not place else "", *each) for place, each in enumerate(told)]
    columns: tuple[Column[tuple[str, ...]], ...] = (
        name_column("host", lambda it: it[0]),
        name_column("", lambda it: it[1]),
        name_column("subject", lambda it: it[2]),
        Column("state", lambda it: it[3], CellKind.SENTENCE),
        Column("cure", lambda it: it[4], CellKind.SENTENCE),
    )
    yield Table(columns, rows)


def fleet_parts(found: FleetResult, hosts: Sequence[HostChanged]) -> Iterator[Part]:
    """Yield the hosts, the estimates of all models on them, and the order of the hosts for each model."""
    yield Table(host_columns(hosts), hosts)
    for host in hosts:
        if host.message:
            yield Sentence(f"{host.host} {host.state.value}: {host.message}")
    for left_out in found.left_out:
        yield Sentence(f"{left_out.model} is left out: {left_out.reason}")
    if not found.models:
        return
    runtimes = {it.runtime for it in found.models}
    for models, columns in ((found.usual_models, estimate_columns()), (found.language_models, _token_columns())):
        if models:
            yield from _estimates_parts(models, columns, runtimes)
    ordered = [it for it in found.models if it.order]
    for model in ordered:
        name = f"{model.model} by {runtime_words(model.runtime)}" if len(runtimes) > 1 else model.model
        order = " < ".join(" = ".join(rank) for rank in model.order)
        yield Sentence(f"{name}: {order} ({'95 % sure' if model.settled else 'not sure yet'})")
    if ordered:
        yield Sentence("a < b: a is faster; a = b: equally fast, within 2 %", "muted")


def _estimates_parts(
    models: Sequence[FleetModel], columns: Sequence[Column[FleetEstimate]], runtimes: Collection[str]
) -> Iterator[Part]:
    """Yield the estimates of models, and what the figures are."""
    # A model has its name in the line of its first host.
    firsts = {id(it.estimates[0]): it for it in models}
    names: list[Column[FleetEstimate]] = [
        name_column("model", lambda it: firsts[id(it)].model if id(it) in firsts else "")
    ]
    if len(runtimes) > 1:
        names.append(
            name_column("runtime", lambda it: runtime_words(firsts[id(it)].runtime) if id(it) in firsts else "")
        )
    estimates = [it for model in models for it in model.estimates]
    yield BLANK_LINE
    yield Table((*names, *columns), estimates)
    # What the figures are, and what the signs mean that stand before some of them.
    latencies = "".join(map(latency_on, estimates))
    has_prices = any(it.dollars_per_million is not None and it.sequential_ms is not None for it in estimates)
    legend = [f"by {runtime_words(min(runtimes))}"] if len(runtimes) == 1 else []
    is_of_tokens = any(it.is_of_tokens for it in estimates)
    legend += [] if is_of_tokens else ["latencies in milliseconds"]
    legend += [f"{PREDICTED} is predicted in part"] if PREDICTED in latencies else []
    legend += [f"{PARTLY}lacks layers"] if PARTLY in latencies else []
    legend += [f"prices are of a million {'generated tokens' if is_of_tokens else 'inferences'}"] if has_prices else []
    yield Sentence("; ".join(legend), "muted")


def host_columns(hosts: Sequence[HostChanged], *, in_panel: bool = False) -> tuple[Column[HostChanged], ...]:
    """Return the columns of hosts; a panel has bars, and the reasons for states in the rows of their hosts."""
    drawn: tuple[Column[HostChanged], ...] = (bar_column(lambda it: it.bricks / it.of if it.of else 0.0),)
    left: tuple[Column[HostChanged], ...] = (Column("left", _time_left),)
    told: tuple[Column[HostChanged], ...] = (name_column("reports", lambda it: it.message, "muted"),)
    return (
        name_column("host", lambda it: it.host),
        name_column("state", lambda it: it.state.value, lambda it: _STYLES.get(it.state, "text")),
        name_column("system", lambda it: it.system_name or it.system),
        *(drawn if in_panel else ()),
        Column("bricks", lambda it: f"{it.bricks:,} of {it.of:,}" if it.of else "", style="strong"),
        Column("failed", lambda it: f"{it.failed or ''}", style="bad"),
        Column(
            "disturbed", lambda it: counted(it.disturbed_rounds, "round") if it.disturbed_rounds else "", style="warn"
        ),
        *(left if any(map(_time_left, hosts)) else ()),
        *(told if in_panel and any(it.message for it in hosts) else ()),
    )


def _time_left(it: HostChanged) -> str:
    return duration(it.seconds_left) if it.seconds_left and it.state in WORKING else ""


def estimate_columns(longest_ms: float = 0.0) -> tuple[Column[FleetEstimate], ...]:
    """Return the columns of a model on its hosts, with bars up to the longest latency if there is one."""
    bars: tuple[Column[FleetEstimate], ...] = (bar_column(lambda it: (it.sequential_ms or 0.0) / longest_ms),)

    def interval(it: FleetEstimate) -> str:
        ends = [it.low_ms, it.high_ms]
        return "" if None in ends else " to ".join(milliseconds(end) for end in ends if end is not None)

    return (
        name_column("host", lambda it: it.host),
        Column("latency", latency_on, style="strong"),
        *(bars if longest_ms else ()),
        Column("95 % interval", interval),
        Column("per second", lambda it: "" if it.per_second is None else f"{it.per_second:,.1f}", is_optional=True),
        Column("price", dollars),
    )


def _token_columns() -> tuple[Column[FleetEstimate], ...]:
    """Return the columns of a language model on its hosts."""

    def rate(it: FleetEstimate) -> str:
        if it.fits is False:
            return "does not fit"
        sign = PREDICTED if it.predicted_layers else ""
        return "-" if it.per_second is None else f"{sign}{rate_text(it.per_second)}"

    def interval(it: FleetEstimate) -> str:
        ends = it.low_ms, it.high_ms
        return "" if None in ends else " to ".join(rate_text(1000.0 / end) for end in reversed(ends) if end)

    return (
        name_column("host", lambda it: it.host),
        Column("tokens/s", rate, style="strong"),
        Column("95 % interval", interval),
        Column("first token", lambda it: or_dash(delay_text, it.first_token_ms), is_optional=True),
        Column("price", dollars),
    )


def latency_on(it: FleetEstimate) -> str:
    """Return the latency of a model on a host, with the sign of a prediction or of missing layers."""
    if it.sequential_ms is None:
        return "-"
    sign = PARTLY if it.missing_layers else PREDICTED if it.predicted_layers else ""
    return f"{sign}{milliseconds(it.sequential_ms)}"


def dollars(it: FleetEstimate) -> str:
    """Return the cost of a million inferences; nothing without a price."""
    return "" if it.dollars_per_million is None else f"${it.dollars_per_million:,.2f}"


def fleet_question(question: str, models: Sequence[str], hosts: int) -> str:
    """Return the question of a fleet run."""
    if question == "which-host":
        return f"Which host is fastest for {names_of(models)}?"
    return f"How fast are {names_of(models)} on {counted(hosts, 'host')}?"


def fastest_hosts(model: FleetModel) -> tuple[str, ...]:
    """Return the hosts that are fastest, which may be equally fast; none while no host has an estimate."""
    if model.order:
        return model.order[0]
    return tuple([it.host for it in model.estimates if it.sequential_ms is not None][:1])


def fastest_sentence(models: Sequence[FleetModel], *, is_final: bool) -> str:
    """Return the fastest hosts of all models; they are the fastest so far unless that is final."""
    fastest = [fastest_hosts(it) for it in models]
    firsts = {it for it in fastest if it}
    so_far = "" if is_final and all(fastest) else " so far"
    if len(firsts) == 1:
        (first,) = firsts
        verb = "is" if len(first) == 1 else "are"
        return f"{' and '.join(first)} {verb} fastest for every model{so_far}"
    wins = Counter(host for hosts in fastest for host in hosts)
    told = ", ".join(f"{host} for {counted(count, 'model')}" for host, count in wins.most_common(3))
    return f"The fastest host{so_far} differs: {told}"


def hosts_sentence(model: FleetModel) -> str:
    """Return the fastest hosts of a model, and how much longer the slowest one takes."""
    known, fastest = {it.host: it for it in model.estimates if it.sequential_ms}, fastest_hosts(model)
    best = next((known[host] for host in fastest if host in known), None)
    if best is None:
        return "No host has an estimate yet."
    slowest = max(known.values(), key=lambda it: it.sequential_ms or 0.0)
    words = f"{' and '.join(fastest)}: {latency_on(best)} ms"
    if slowest.host not in fastest:
        times = (slowest.sequential_ms or 0.0) / (best.sequential_ms or 1.0)
        words += f"; {slowest.host} takes {times:.2f} times as long"
    return f"{words}; the order is {'sure' if model.settled else 'not sure yet'}."


_MEASURED = LegendSign("=", "measured", "bar", "█")
_PREDICTED = LegendSign(PREDICTED, "predicted in part", "accent", "░")


def hosts_picture(model: FleetModel) -> Rows | None:
    """Return the latency of a model on each host with its interval, the fastest first."""
    found = [it for it in model.estimates if it.sequential_ms is not None]
    if not found:
        return None
    fastest, rows = fastest_hosts(model), []
    for it in found:
        sign, style = _PREDICTED if it.predicted_layers else _MEASURED, "good" if it.host in fastest else ""
        ends = ((it.low_ms, "["), (it.high_ms, "]"))
        marks = tuple(Mark(value, end, "text") for value, end in ends if value is not None)
        price = "" if it.dollars_per_million is None else f", {dollars(it)} a million"
        bar = (sign.piece(0.0, it.sequential_ms or 0.0, style),)
        rows.append(BarRow(it.host, bar, marks, f"{latency_on(it)}{price}", style or "text"))
    longest_ms = max(it.high_ms or it.sequential_ms or 0.0 for it in found)
    predicted = (_PREDICTED,) if any(it.predicted_layers for it in found) else ()
    legend = (_MEASURED, *predicted, LegendSign("[ ]", "95 % interval", "text"))
    return Rows("ms, shorter is better", hosts_sentence(model), Axis(0.0, longest_ms), tuple(rows), legend)
