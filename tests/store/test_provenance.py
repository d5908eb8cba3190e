from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dlbricks_tui.store import documents, index
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.documents import BrokenDocumentError
from dlbricks_tui.store.exporting import export_selection
from dlbricks_tui.store.importing import import_file
from dlbricks_tui.store.records import Provenance
from dlbricks_tui.store.verification import check_plausible
from tests.store.samples import end_to_end, load_test, proof, provenance, run, runtime, system

CHANGED = "mxnet-1.9.1 threads-1"


def test_the_newest_provenance_of_a_run_on_a_runtime_is_found(tmp_path: Path) -> None:
    earlier = provenance(when="2026-11-20T08:00:00+00:00", packages=(("mxnet", "1.9.0"),))
    with ResultsDatabase(tmp_path) as store:
        store.add(provenance(), earlier, provenance(run="r2"), provenance(runtime=CHANGED, evaluation="nightly"))
        assert store.provenance_of("r1", "mxnet-1.9.1") == store.records(Provenance)[0]
        changed = store.provenance_of("r1", CHANGED)
        assert changed is not None and changed.evaluation == "nightly"
        assert store.provenance_of("r3", "mxnet-1.9.1") is None


def test_an_export_has_the_provenance_of_its_results_proofs_and_load_tests(tmp_path: Path) -> None:
    file, proved, test = tmp_path / "some.json", proof(), load_test()
    other: Any = {"run": "r2", "model": "cd" * 32, "name": "private"}
    kept = [provenance(), provenance(run=proved.uuid, protocol=""), provenance(run=test.uuid, protocol="")]
    # A runtime without results in the export, which does not describe it.
    left_out = [provenance(run="r2"), provenance(runtime=CHANGED), provenance(run=proved.uuid, runtime=CHANGED)]
    with ResultsDatabase(tmp_path / "owner") as store:
        store.add(system(), runtime(), runtime(CHANGED), run(), run("r2"), end_to_end(), end_to_end(**other))
        store.add(proved, test, *kept, *left_out)
        export_selection(store.select("name=resnet50_v1"), file)
    with ResultsDatabase(tmp_path / "vendor") as store:
        assert not import_file(store, file).refused
        assert sorted(it.uuid for it in store.records(Provenance)) == sorted(it.uuid for it in kept)


def test_the_provenance_of_a_load_test_is_deleted_with_it_and_that_of_a_run_stays(tmp_path: Path) -> None:
    test, result = load_test(), end_to_end()
    with ResultsDatabase(tmp_path) as store:
        store.add(result, test, provenance(run=test.uuid), provenance())
        assert store.delete([test.uuid, result.uuid]) == 2
        assert [it.run for it in store.records(Provenance)] == ["r1"]


def test_provenance_that_a_version_without_its_table_has_indexed_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ResultsDatabase(tmp_path) as store:
        store.add(provenance())
    with monkeypatch.context() as earlier:
        known = {name: it for name, it in documents.TABLES.items() if name != "provenance"}
        earlier.setattr(documents, "TABLES", known)
        earlier.setattr(index, "TABLES", documents.TABLES)
        with ResultsDatabase(tmp_path) as store:
            assert len(store.table("provenance")) == 1
            store.generation.save_index()
    assert (tmp_path / index.INDEX_NAME).is_file()
    with ResultsDatabase(tmp_path) as store:
        assert store.provenance_of("r1", "mxnet-1.9.1") is not None


@pytest.mark.parametrize(
    ("changed", "complaint"),
    [
        ({"run": ""}, "is of no run"),
        ({"when": "2126-11-21T08:00:00+00:00"}, "is from the future"),
        ({"packages": (("mxnet", 1.9),)}, "has a version of 'mxnet' that is no text"),
        ({"models": (("ab" * 32, "0f"),)}, "has no SHA-256 of model 'abab"),
        ({"models": (("ab" * 32, None),)}, "has no SHA-256 of model 'abab"),
        ({"host": tuple((str(number), "") for number in range(65))}, "has more than 64 packages"),
        ({"unmet": ("x" * 100_001,)}, "has a text of 100,001 letters"),
    ],
)
def test_a_provenance_that_no_run_records_is_refused(changed: dict[str, Any], complaint: str) -> None:
    check_plausible(provenance())
    with pytest.raises(BrokenDocumentError, match=complaint):
        check_plausible(replace(provenance(), **changed))


def test_the_provenance_of_an_undescribed_runtime_is_not_imported(tmp_path: Path) -> None:
    file = tmp_path / "all.json"
    with ResultsDatabase(tmp_path / "owner") as store:
        store.add(system(), runtime(), run(), end_to_end(), provenance())
        export_selection(store.select(), file)
    text = file.read_text().splitlines(keepends=True)
    file.write_text("".join(line for line in text if '"framework"' not in line))
    with ResultsDatabase(tmp_path / "vendor") as store:
        report = import_file(store, file)
        assert [it.reason for it in report.refused if "provenance" in it.reason or "runtime" in it.reason]
        assert store.records(Provenance) == []
