"""The results that are committed with the project, as a clone has them."""

from pathlib import Path

import pytest

from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.filters import equal
from dlbricks_tui.store.importing import import_file

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize(
    ("name", "frameworks", "bricks"),
    [
        pytest.param("accuracy-results.json.gz", {"mxnet", "onnxruntime"}, 30_000, marks=pytest.mark.soak),
        ("accuracy-results-onnx.json.gz", {"onnxruntime", "openvino"}, 3_000),
    ],
)
def test_committed_results_can_be_imported(name: str, frameworks: set[str], bricks: int, tmp_path: Path) -> None:
    with ResultsDatabase(tmp_path / "store") as store:
        report = import_file(store, DOCS / name)
        assert (report.refused, report.conflicts, report.known) == ([], [], 0)
        assert {it.framework for it in store.runtimes()} == frameworks
        assert len(store.select(equal(of="brick", good=True), order=())) > bricks
