"""Two models compared by their estimates, or end to end where both were timed; nothing is measured."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dlbricks_tui.answers.estimating import open_estimator
from dlbricks_tui.answers.pairs.compared import Kind, NotComparableError
from dlbricks_tui.answers.pairs.estimates import EstimatedSide, compare_estimates

if TYPE_CHECKING:
    from dlbricks_tui.answers.estimating import Remarks
    from dlbricks_tui.answers.pairs.compared import ComparedTwo
    from dlbricks_tui.answers.scope import EstimateOptions
    from dlbricks_tui.folders import DataFolder
    from dlbricks_tui.models.library import ModelSource


def compare_models(
    first: ModelSource, second: ModelSource, options: EstimateOptions, data: DataFolder, remarks: Remarks
) -> ComparedTwo:
    """Compare two models as the options estimate them; raise NotComparableError where one has no latency."""
    if (first.path, first.name) == (second.path, second.name):
        raise NotComparableError(
            f"both are {first.name}: name two models, or `dlbricks compare {first.name}` for its runtimes and variants"
        )
    with open_estimator(options, data, remarks) as estimator:
        answers = estimator.answers([first, second], estimator.scope_of([first, second]))
        if len(answers) < 2:
            raise NotComparableError("one of the two models cannot be read, so there is nothing to compare")
        sides = [
            EstimatedSide(
                it.source.name,
                it.found,
                it.inquiry.end_to_end_samples_ms(it.found.way),
            )
            for it in answers
        ]
    return compare_estimates(Kind.MODEL, *sides, cure=f"`dlbricks run {first.name} {second.name}` measures both")
