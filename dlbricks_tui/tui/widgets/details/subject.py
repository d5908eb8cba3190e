"""What details are asked of: some layers of a model, and what is known of them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dlbricks_tui.bricks.decomposition import Decomposition, Occurrence
    from dlbricks_tui.estimate.parts import Part
    from dlbricks_tui.models.graph import Layer
    from dlbricks_tui.models.kinds import Kind
    from dlbricks_tui.store.records import Measurement
    from dlbricks_tui.tui.opened import Opened
    from dlbricks_tui.tui.widgets.tree.outline import Node, Outline
    from dlbricks_tui.tui.widgets.tree.tally import Tallies, Tally


@dataclass(frozen=True, slots=True, eq=False)
class Subject:
    """One part of the open model."""

    title: str
    names: str
    # How many layers there are of each kind, the most frequent first, and how many different bricks.
    kinds: tuple[tuple[Kind, int], ...]
    bricks: int
    times: int
    # Only of the model as a whole: what it is cut into, and what it pays for a call of the runtime.
    whole: Decomposition | None = None
    call_ms: float = 0.0
    # Only of a sequence, or of a layer of one.
    layers: tuple[Layer, ...] = ()
    occurrence: Occurrence | None = None
    # In which contexts the brick stands in this model.
    contexts: tuple[str, ...] = ()
    part: Part | None = None
    # What is known of its latency; nothing of a layer among several.
    tally: Tally | None = None

    @property
    def brick_key(self) -> str | None:
        """The key of the brick of a sequence, or of a layer of one."""
        return self.occurrence.brick.key if self.occurrence else None


NO_KEY = "Only a layer sequence has a key: go to one in the decomposition."


@dataclass(frozen=True, slots=True, eq=False)
class Measurements:
    """What the store holds of one brick in one context: the one that counts, and the values of all, oldest first."""

    newest: Measurement
    history_ms: tuple[float, ...]


def subject_of(node: Node, opened: Opened, outline: Outline, tallies: Tallies | None) -> Subject:
    """All that details say of a part of the model without asking anybody."""
    layers, occurrences = opened.graph.layers, opened.decomposition.occurrences
    inside = outline.sequences_in(node)
    indices = (
        [node.layer] if node.layer is not None else [it for at in inside for it in occurrences[at].sequence.layers]
    )
    # Sequences may overlap.
    kinds = Counter(layers[index].kind for index in dict.fromkeys(indices))
    tally = tallies.of(node.region) if tallies and node.layer is None else None
    title = ", ".join(filter(None, (outline.label(node) + outline.title(node), outline.size(node))))
    names = outline.names(node)
    sequence = node.sequence
    if sequence is None:
        bricks = len({occurrences[number].brick.key for number in inside})
        whole = opened.decomposition if node.parent is None and not outline.is_searched else None
        call_ms = tallies.call_ms if tallies and whole is not None else 0.0
        occurs = outline.occurs(node)
        return Subject(title, names, tuple(kinds.most_common()), bricks, occurs, whole, call_ms, tally=tally)
    equal = [number for region in outline.nesting.equal(node.region) for number in outline.nesting.numbers(region)]
    return Subject(
        title,
        names,
        tuple(kinds.most_common()),
        1,
        len(equal),
        layers=tuple(layers[index] for index in indices),
        occurrence=occurrences[sequence],
        contexts=tuple(sorted({occurrences[number].context for number in equal})),
        part=tallies.part(sequence) if tallies else None,
        tally=tally,
    )
