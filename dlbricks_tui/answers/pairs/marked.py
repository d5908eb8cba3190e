"""Rows of lists as sides of a comparison; `naming` compares two of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Hashable

    from dlbricks_tui.answers.comparisons.named import NamedSelection
    from dlbricks_tui.answers.pairs.estimates import EstimatedSide
    from dlbricks_tui.models.library import ModelSource


@dataclass(frozen=True, slots=True)
class ComparableRow:
    """A row that can be marked, and compared with another one of its kind.

    `subject` is a model, an estimate in a variant, results, or the id of a system, a run, a result or a what-if.
    """

    # One of `KINDS`, or `model`, `variant`, `result` or `what-if`.
    kind: str
    identity: Hashable
    name: str
    subject: ModelSource | EstimatedSide | NamedSelection | str
