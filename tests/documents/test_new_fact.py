"""A new fact about an analysis takes two changes: a field of the answer, and a line of the document.

All doors show it then: the command line, its JSON, the workbench and the report.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from dlbricks_tui.api import analyses
from dlbricks_tui.api.analyses import ModelAnalysis
from dlbricks_tui.api.demonstration import open_demonstration
from dlbricks_tui.cli.main import main
from dlbricks_tui.documents import analysis
from dlbricks_tui.documents.analysis import Bound
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.tui.analysis import _found_parts
from tests.documents.test_analysis import BASELINE, FASTER, analysed
from tests.documents.test_layout import texts

MODEL = "squeezenet1.1"


@dataclass(frozen=True, slots=True)
class WithCaches(ModelAnalysis):
    """The first change: an answer that also tells how fast the model would be if all of it was in caches."""

    cached_ms: float = 1.25


# The second change: how documents show it.
CACHED = Bound("all in caches", "CACHED", "x CACHED", lambda it: it.cached_ms if isinstance(it, WithCaches) else None)


@pytest.fixture(scope="module")
def data() -> Iterator[DataFolder]:
    """Return the data folder of the demonstration, with the new fact."""
    with pytest.MonkeyPatch.context() as patch, open_demonstration() as found:
        patch.setattr(analyses, "ModelAnalysis", WithCaches)
        patch.setattr(analysis, "BOUNDS", (*analysis.BOUNDS, CACHED))
        yield found.data


def printed(data: DataFolder, capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert not main(["--data-dir", str(data.path), *words])
    return capsys.readouterr().out


def test_the_command_line_and_its_json_show_it(data: DataFolder, capsys: pytest.CaptureFixture[str]) -> None:
    words = "analyze", MODEL, "--runtime", "mxnet"
    assert "all in caches        1.250 ms" in printed(data, capsys, *words)
    (found,) = json.loads(printed(data, capsys, *words, "--json"))
    assert found["cached_ms"] == 1.25


def test_the_workbench_shows_it(data: DataFolder) -> None:
    told = texts(80, *_found_parts(analysed(BASELINE, FASTER)))
    assert any(line.startswith("all in caches") and line.endswith("1.250 ms") for line in told)


def test_reports_show_it(data: DataFolder, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    printed(data, capsys, "report", "-o", str(tmp_path), "--models", MODEL)
    page = (tmp_path / "index.html").read_text()
    assert '<th scope="col" class="number">CACHED</th>' in page and '<td class="number">1.250</td>' in page
