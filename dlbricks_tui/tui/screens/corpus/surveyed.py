"""What is known of a set of models: what repeats in them, and how well they were estimated."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from dlbricks_tui.bricks.corpus import Corpus
    from dlbricks_tui.bricks.decomposition import Cutting
    from dlbricks_tui.estimate.accuracy import Accuracy, Group
    from dlbricks_tui.models.graph import Level


class HowSurveyed(NamedTuple):
    """What is wanted of which models; an answer to what nobody asks any more is known by it."""

    level: Level
    cutting: Cutting
    read_all: bool


class Surveyed(NamedTuple):
    """The models compared, how many were never read, and which cannot be."""

    corpus: Corpus
    unread: int
    refused: tuple[str, ...]


class Judged(NamedTuple):
    """How well models were estimated on one system in one way, at one granularity."""

    group: Group
    accuracy: Accuracy
