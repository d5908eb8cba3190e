from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.documents import BrokenDocumentError
from dlbricks_tui.store.exporting import export_selection
from dlbricks_tui.store.importing import import_file
from dlbricks_tui.store.records import Proof
from dlbricks_tui.store.verification import check_plausible
from tests.store.samples import end_to_end, proof, runtime, system


def test_the_proofs_of_a_model_on_a_system_are_found_newest_first(tmp_path: Path) -> None:
    earlier = proof(when="2026-11-20T08:00:00+00:00")
    with ResultsDatabase(tmp_path) as store:
        store.add(proof(), earlier, proof(model="cd" * 32), proof(system="m5.large"))
        store.refresh()
        found = store.proofs_of("ab" * 32, "c5.xlarge")
        assert [it.when for it in found] == [proof().when, earlier.when]
        assert found[1] == earlier


def test_an_export_of_results_has_the_proofs_of_their_models_alone(tmp_path: Path) -> None:
    file = tmp_path / "some.json"
    other: Any = {"model": "cd" * 32, "name": "private"}
    with ResultsDatabase(tmp_path / "owner") as store:
        store.add(system(), runtime(), end_to_end(), end_to_end(**other), proof(), proof(**other))
        export_selection(store.select("name=resnet50_v1"), file)
    with ResultsDatabase(tmp_path / "vendor") as store:
        report = import_file(store, file)
        assert not report.refused
        assert [it.name for it in store.records(Proof)] == ["resnet50_v1"]


@pytest.mark.parametrize(
    ("changed", "complaint"),
    [
        ({"gain": 0.5, "gain_high": 0.6}, "has a gain that does not follow from its samples"),
        ({"gain_low": 0.9}, "has a gain that is outside of its interval"),
        ({"samples_ms": (-1.0,) * 10}, "has an impossible sample"),
        ({"changed_batch_size": 0}, "has an impossible batch size"),
        ({"after": proof().before}, "has a trimmed mean that does not follow from its samples"),
        ({"changed_samples_ms": proof().changed_samples_ms * 2}, "does not follow from its samples"),
    ],
)
def test_a_proof_that_cannot_come_from_a_measurement_is_refused(changed: dict[str, object], complaint: str) -> None:
    check_plausible(proof())
    with pytest.raises(BrokenDocumentError, match=complaint):
        check_plausible(replace(proof(), **changed))  # type: ignore[arg-type]


def test_a_gain_is_that_of_an_item_where_the_batch_sizes_differ() -> None:
    check_plausible(proof(30.0, 60.0, changed_batch_size=4, gain=0.5, gain_low=0.49, gain_high=0.51))
