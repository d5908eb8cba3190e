"""What details are asked of: some layers of a model, and what is known of them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dlbricks_tui.bricks.decomposition import Occurrence
    from dlbricks_tui.estimate.parts import Part
    from dlbricks_tui.models.graph import Layer
    from dlbricks_tui.models.kinds import Kind
    from dlbricks_tui.store.records import Measurement
    from dlbricks_tui.tui.opened import Opened
    from dlbricks_tui.tui.widgets.tree.outline import Node, Outline
    from dlbricks_tui.tui.widgets.tree.tally import Tallies, Tally


@dataclass(frozen=True, slots=True, eq=False)
class Subject:
    """One part of the open model; `occurrence` and `part` only of a sequence."""

    title: str
    layers: tuple[Layer, ...]
    kinds: tuple[tuple[Kind, int], ...]
    times: int
    occurrence: Occurrence | None = None
    # In how many contexts the brick stands in this model.
    contexts: tuple[str, ...] = ()
    part: Part | None = None
    tally: Tally | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Measurements:
    """What the store holds of one brick in one context: the one that counts, and the values of all, oldest first."""

    newest: Measurement
    history_ms: tuple[float, ...]


def subject_of(node: Node, opened: Opened, outline: Outline, tallies: Tallies | None) -> Subject:
    """All that details say of a part of the model without asking anybody."""
    graph, occurrences = opened.graph, opened.decomposition.occurrences
    sequence = node.sequence
    if node.layer is not None:
        indices = [node.layer]
    elif sequence is not None:
        indices = list(occurrences[sequence].sequence.layers)
    else:
        indices = [index for number in outline.sequences_in(node) for index in occurrences[number].sequence.layers]
    kinds = Counter(graph.layers[index].kind for index in indices)
    # Of a region only what it is made of is said: its layers have lines of their own.
    layers = tuple(graph.layers[index] for index in indices) if sequence is not None else ()
    occurrence = None if sequence is None else occurrences[sequence]
    contexts = (
        tuple(sorted({it.context for it in occurrences if it.brick.key == occurrence.brick.key})) if occurrence else ()
    )
    return Subject(
        node.label + node.title,
        layers,
        tuple(kinds.most_common()),
        outline.occurs(node),
        occurrence,
        contexts,
        tallies.part(sequence) if tallies and sequence is not None else None,
        tallies.of(node) if tallies else None,
    )
