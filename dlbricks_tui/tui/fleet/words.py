"""A fleet run in words and colours."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dlbricks_tui.documents.fleet import fastest_sentence, fleet_question
from dlbricks_tui.documents.lines import Line, Span, line
from dlbricks_tui.jobs.folder import State
from dlbricks_tui.tui.keys.keymap import Hint
from dlbricks_tui.tui.run.words import STATE_STYLES
from dlbricks_tui.wording.fleets import settled_line
from dlbricks_tui.wording.numbers import ago

if TYPE_CHECKING:
    from dlbricks_tui.tui.fleet.view import FleetView


def question_of(view: FleetView | None) -> str:
    """Return the question of a fleet run."""
    if view is None:
        return "Which host is best?"
    return fleet_question(view.result.question, view.state.models, len(view.hosts))


def state_line(view: FleetView | None) -> Line:
    """Return the state of a fleet run, and its name."""
    if view is None:
        return ()
    state = view.state.state
    return line(
        Span(f" {state.value}", STATE_STYLES.get(state, "text")),
        Span(f"  {view.state.run}, begun {ago(view.state.started)}", "muted"),
    )


def answer_line(view: FleetView | None) -> Line:
    """Return the answer so far in one line."""
    if view is None:
        return Hint(" {fleet.start} starts a fleet run of the marked or open models.", "muted").line
    if view.state.state is State.FAILED and view.state.message:
        return line(Span(f" {view.state.message}", "bad"))
    models = view.result.models
    if not models:
        return line(Span(" Nothing is known yet.", "muted"))
    is_settled = all(it.settled for it in models)
    found = f" {fastest_sentence(models, is_final=is_settled or not view.state.active)}"
    if is_settled:
        return line(Span(f"{found}; settled.", "good"))
    return line(Span(found, "strong"), Span(f"; {settled_line(it.settled for it in models)}.", "warn"))
