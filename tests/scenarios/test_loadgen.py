"""MLPerf LoadGen: the settings of its tests, and the room that their logs need."""

import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dlbricks_tui.scenarios.loadgen import LoadGenTest, LoadSettings, Search
from dlbricks_tui.scenarios.scenario import SCHEDULE_SEED, ScenarioError, ScenarioKind


def test_every_kind_has_settings_of_loadgen_with_the_schedule_of_predictions(tmp_path: Path) -> None:
    pytest.importorskip("mlperf_loadgen")
    for kind in ScenarioKind:
        settings = LoadSettings(kind=kind, percentile=99.0, queries=4, seconds=0.0, expected_ms=2.5, rate=9.0)
        found = LoadGenTest(settings, tmp_path, lambda _: None, threading.Event()).settings
        assert (found.min_query_count, found.min_duration_ms, found.schedule_rng_seed) == (4, 0, SCHEDULE_SEED)
        longer = LoadGenTest(replace(settings, seconds=600.0), tmp_path, lambda _: None, threading.Event()).settings
        assert longer.min_duration_ms == 600_000


def test_a_long_test_needs_more_room_for_its_logs() -> None:
    short = LoadSettings(kind=ScenarioKind.SINGLE, percentile=90.0, queries=64, seconds=2.0, expected_ms=100.0)
    assert short.samples == 64
    assert replace(short, seconds=600.0, expected_ms=1.0).samples == 600_000
    assert replace(short, kind=ScenarioKind.MULTI).samples == 8 * 64
    server = replace(short, kind=ScenarioKind.SERVER, rate=50.0, seconds=600.0)
    assert server.samples == 30_000
    assert replace(server, search=Search(0.15, 1, 99.7)).samples > 5 * 30_000


def test_a_disk_without_room_for_the_logs_is_refused_before_the_test(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("mlperf_loadgen")
    usage: Any = type("Usage", (), {"free": 1 << 20})
    monkeypatch.setattr("dlbricks_tui.scenarios.loadgen.shutil.disk_usage", lambda _: usage)
    monkeypatch.setattr(LoadGenTest, "_run", lambda _: None)
    asked = LoadSettings(kind=ScenarioKind.SINGLE, percentile=90.0, queries=64, seconds=2.0, expected_ms=100.0)
    with pytest.raises(ScenarioError, match="1 MiB are free there: make room, or choose another data folder"):
        LoadGenTest(asked, tmp_path, lambda _: None, threading.Event()).start()
