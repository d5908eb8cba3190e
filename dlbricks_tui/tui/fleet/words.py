"""A fleet run in words and colours."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dlbricks_tui.fleet.events import HostState
from dlbricks_tui.runs.run_folder import State
from dlbricks_tui.tui.keys.keymap import Hint
from dlbricks_tui.tui.lines import Line, Span, line
from dlbricks_tui.tui.run.words import STATE_STYLES
from dlbricks_tui.wording.fleets import settled_line
from dlbricks_tui.wording.numbers import counted, names_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dlbricks_tui.tui.fleet.view import FleetView

HOST_STYLES: Mapping[HostState, str] = {
    HostState.PROBING: "good",
    HostState.MEASURING: "good",
    HostState.DONE: "good",
    HostState.WAITING: "warn",
    HostState.PAUSED: "warn",
    HostState.CONNECTING: "muted",
    HostState.IDLE: "muted",
    HostState.LOST: "bad",
    HostState.REFUSED: "bad",
    HostState.DISTRUSTED: "bad",
    HostState.FAILED: "bad",
}


def question_line(view: FleetView | None) -> Line:
    """Return the question of a fleet run, and its state."""
    if view is None:
        return line(Span(" Which host is best? ", "strong"))
    models, hosts = view.state.models, counted(len(view.hosts), "host")
    asked = "Which host is fastest for" if view.question == "which-host" else "How fast are"
    end = "?" if view.question == "which-host" else f" on {hosts}?"
    state = view.state.state
    return line(
        Span(f" {asked} {names_of(models)}{end} ", "strong"),
        Span(f" {state.value}", STATE_STYLES.get(state, "text")),
        Span(f"  {view.state.run}", "muted"),
    )


def answer_line(view: FleetView | None) -> Line:
    """Return the answer so far in one line."""
    if view is None:
        return Hint(" {fleet.start} starts a fleet run of the marked or open models.", "muted").line
    if view.state.state is State.FAILED and view.state.message:
        return line(Span(f" {view.state.message}", "bad"))
    if not view.models:
        return line(Span(" Nothing is known yet.", "muted"))
    settled = sum(model.is_settled for model in view.models)
    firsts = {model.fastest for model in view.models if model.fastest}
    so_far = "" if all(model.fastest for model in view.models) else " so far"
    if len(firsts) == 1:
        (first,) = firsts
        found = f" {' and '.join(first)} {'is' if len(first) == 1 else 'are'} fastest for every model{so_far}"
    else:
        found = f" The fastest host differs: {_wins(view)}"
    if settled == len(view.models):
        return line(Span(f"{found}; settled.", "good"))
    return line(Span(found, "strong"), Span(f"; {settled_line(it.is_settled for it in view.models)}.", "warn"))


def _wins(view: FleetView) -> str:
    wins: dict[str, int] = {}
    for model in view.models:
        for host in model.fastest:
            wins[host] = wins.get(host, 0) + 1
    most = sorted(wins.items(), key=lambda it: -it[1])[:3]
    return ", ".join(f"{host} for {counted(count, 'model')}" for host, count in most)
