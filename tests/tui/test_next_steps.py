"""The steps that are suggested after the first answer: those whose answers are not known."""

import pytest

from dlbricks_tui.folders import DataFolder
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.tui.choices import Choices
from dlbricks_tui.tui.estimator import ThreadSafeEstimator
from dlbricks_tui.tui.keys.registry import BY_ID
from dlbricks_tui.tui.session import SharedStore
from dlbricks_tui.tui.workbench.estimate_rows import KnownAlready, NextStep, next_step
from tests.store.samples import end_to_end, load_test, proof
from tests.tui.application import WRITTEN
from tests.tui.results import OTHER_SYSTEM

NOTHING_YET = KnownAlready(combinations=1, systems=1)


@pytest.mark.parametrize(
    ("known", "step"),
    [
        (NOTHING_YET, NextStep.VARIANTS),
        (NOTHING_YET._replace(combinations=2), NextStep.ANALYSIS),
        (NOTHING_YET._replace(combinations=2, proofs=1), NextStep.LOAD),
        (NOTHING_YET._replace(combinations=2, proofs=1, load_tests=1), NextStep.OWN_MODEL),
        (KnownAlready(9, 1, 1, systems=1, own_models=2), NextStep.HOSTS),
        (KnownAlready(9, 1, 1, 2, 2), None),
    ],
)
def test_the_first_step_is_suggested_whose_answer_is_not_known(known: KnownAlready, step: NextStep | None) -> None:
    assert next_step(known) is step


def test_each_step_has_a_key_on_the_workbench() -> None:
    assert all(BY_ID[step.action].id.startswith("workbench.") and BY_ID[step.action].keys for step in NextStep)


def test_the_store_tells_what_is_known_of_a_model_on_a_system(measured: DataFolder) -> None:
    there = Choices(level=WRITTEN.level, system=OTHER_SYSTEM.id)

    def known() -> KnownAlready:
        return ThreadSafeEstimator(SharedStore(measured.store), measured).known_about("resnet18_v1", there)

    before = known()
    with ResultsDatabase(measured.store) as store:
        store.add(
            proof(name="resnet18_v1", system=OTHER_SYSTEM.id),
            load_test(name="resnet18_v1", system=OTHER_SYSTEM.id),
            load_test(name="resnet50_v1", system=OTHER_SYSTEM.id),
            end_to_end(name="resnet18_v1", system=OTHER_SYSTEM.id, batch_size=32),
        )
    after = known()
    assert (after.proofs, after.load_tests) == (before.proofs + 1, before.load_tests + 1)
    assert after.combinations == before.combinations + 1 and after.systems == before.systems >= 2
