from pathlib import Path

import pytest

from dlbricks_tui.api import language_measuring as measuring
from dlbricks_tui.measure.stopping import Adaptive
from tests.language.bench import Bench
from tests.language.stored import peaks_of


@pytest.fixture(autouse=True)
def _few_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measuring, "Adaptive", lambda **_: Adaptive(target=0.9, least=3, most=8))
    monkeypatch.setattr("dlbricks_tui.measure.inside.PATIENCE_SECONDS", 0.0)
    monkeypatch.setattr("dlbricks_tui.measure.carriers._ROUNDS_TO_BE_SURE", 8)
    monkeypatch.setattr("dlbricks_tui.measure.supervised_worker._BYTES_READ", 1 << 16)
    monkeypatch.setattr(measuring, "measure_peaks", peaks_of)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)
