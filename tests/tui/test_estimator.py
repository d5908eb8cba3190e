"""The estimates of the workbench, from the results that its settings select."""

from dataclasses import replace

import pytest

from dlbricks_tui.answers.estimating import Answer
from dlbricks_tui.bricks.decomposition import decompose
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.runtime.variant import INSTRUCTIONS_VARIABLE
from dlbricks_tui.tui.choices import Choices
from dlbricks_tui.tui.estimator import ThreadSafeEstimator
from dlbricks_tui.tui.session import SharedStore
from tests.tui.application import WRITTEN
from tests.tui.results import RUNTIME, graph_of, source_called, store_run

MODEL = "squeezenet1.1"
LIMITED = replace(RUNTIME, id=f"{RUNTIME.id} {INSTRUCTIONS_VARIABLE}=AVX2")


def answer(estimator: ThreadSafeEstimator, choices: Choices) -> Answer:
    return estimator.answer(source_called(MODEL), choices, lambda _: decompose(graph_of(MODEL)))


def test_results_with_limited_kernels_count_only_if_their_runtime_is_selected(new: DataFolder) -> None:
    # Those of a proof are the newest, and cover as much.
    store_run(new, [MODEL])
    store_run(new, [MODEL], runtime=LIMITED, factor=2.0)
    estimator = ThreadSafeEstimator(SharedStore(new.store), new)

    def way_and_ms(runtime: str | None) -> tuple[str, float | None]:
        found = answer(estimator, replace(WRITTEN, runtime=runtime)).found
        return found.way.runtime, found.sequential_ms

    usual, limited = way_and_ms(None), way_and_ms(LIMITED.id)
    assert (usual[0], limited[0]) == (RUNTIME.id, LIMITED.id)
    assert limited[1] == pytest.approx(2.0 * (usual[1] or 0.0), rel=0.1)
