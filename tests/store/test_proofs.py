from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.documents import BrokenDocumentError
from dlbricks_tui.store.exporting import export_selection
from dlbricks_tui.store.importing import import_file
from dlbricks_tui.store.records import LoadTest, Proof, Record
from dlbricks_tui.store.verification import check_plausible
from tests.store.samples import WHEN, end_to_end, load_test, proof, runtime, system


@pytest.mark.parametrize(("kind", "made"), [(Proof, proof), (LoadTest, load_test)])
def test_proofs_and_load_tests_are_found_newest_first_and_exported_with_results_of_their_models_alone(
    tmp_path: Path, kind: type[Proof | LoadTest], made: Callable[..., Record]
) -> None:
    file = tmp_path / "some.json"
    earlier = made(when="2026-11-20T08:00:00+00:00")
    other: Any = {"model": "cd" * 32, "name": "private"}
    with ResultsDatabase(tmp_path / "owner") as store:
        store.add(system(), runtime(), end_to_end(), end_to_end(**other))
        store.add(made(), earlier, made(**other), made(system="m5.large"))
        store.refresh()
        everywhere = store.proofs_on("c5.xlarge") if kind is Proof else store.load_tests_of("ab" * 32, "c5.xlarge")
        found = [it for it in everywhere if it.model == "ab" * 32]
        assert [it.when for it in found] == [WHEN, "2026-11-20T08:00:00+00:00"]
        assert found[1] == earlier
        export_selection(store.select("name=resnet50_v1"), file)
    with ResultsDatabase(tmp_path / "vendor") as store:
        assert not import_file(store, file).refused
        assert {it.name for it in store.records(kind)} == {"resnet50_v1"}


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
