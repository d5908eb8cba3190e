"""Every screen works while a run measures, at a pace that does not disturb it, and memory goes back between keys."""

from __future__ import annotations

import gc
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace

import pytest

from dlbricks_tui.api import model_reading as work
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.jobs.folder import State
from dlbricks_tui.tui.corpus import CorpusScreen
from dlbricks_tui.tui.door import IdleCollections
from dlbricks_tui.tui.messages import NewResults
from dlbricks_tui.tui.run.host import RunUpdates
from dlbricks_tui.tui.variants import VariantsScreen
from dlbricks_tui.tui.widgets.screens import NOT_YET
from tests.runs.live_runs import end, estimate, in_the_middle, put_run
from tests.tui import results
from tests.tui.application import app_on, press, running, screen_text, settled, showing
from tests.tui.test_analysis_screen import RUNNING
from tests.tui.test_run_screens import shows
from tests.tui.test_variants_screen import screen


async def test_predictions_leave_the_screen_once_a_run_of_the_model_has_figures(new: DataFolder) -> None:
    results.store_run(new, ["resnet50_v1", "squeezenet1.1"])
    async with running(app_on(new)) as pilot:
        await press(pilot, "slash", '"resnet18"', "enter", "enter")
        shown = screen_text(pilot)
        assert shown.count("~") > 3, shown
        timed = replace(estimate("resnet18_v1", 0.1, missing=0), sequential_ms=20.6, low_ms=20.0, high_ms=21.0)
        run = put_run(new, [*in_the_middle(), timed])
        await shows(pilot, "20.60 ms so far")
        assert "~" not in screen_text(pilot)
        end(run, State.CANCELLED)
        await shows(pilot, "~")


async def test_the_corpus_is_read_while_a_run_measures(measured: DataFolder) -> None:
    async with running(app_on(measured)) as pilot:
        put_run(measured, in_the_middle())
        await shows(pilot, "17 of 40 bricks")
        await press(pilot, "U")
        assert isinstance(pilot.app.screen, CorpusScreen)
        shown = screen_text(pilot)
        assert "7 models, " in shown and "squeezenet1.1" in shown
        assert "Nothing was measured both" not in shown and "Reading the store" not in shown


async def test_a_screen_that_takes_long_to_read_is_told_of_results_once_the_run_has_ended(new: DataFolder) -> None:
    async with showing(new, lambda _: screen()) as pilot:
        shown, told = pilot.app.screen, list[object]()
        assert isinstance(shown, VariantsScreen)
        updates = RunUpdates(pilot.app, new, 1.0)
        original = shown.post_message

        def post(message: object) -> bool:
            told.extend([message] if isinstance(message, NewResults) else [])
            return original(message)  # type: ignore[arg-type]

        shown.post_message = post  # type: ignore[method-assign]
        updates.take(RUNNING)
        updates.take_results()
        await settled(pilot)
        assert not told and NOT_YET in screen_text(pilot)
        updates.take(replace(RUNNING, state=State.FINISHED))
        updates.take_results()
        await settled(pilot)
        assert len(told) == 1 and NOT_YET not in screen_text(pilot)
        # The same results are told once, however often the screen comes to the front.
        updates.catch_up(pilot.app.screen)
        assert len(told) == 1


def test_scans_pause_for_most_of_the_time_while_a_run_measures(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    monkeypatch.setattr(time, "sleep", pauses.append)
    monkeypatch.setattr(work, "SHARE_WHILE_MEASURING", 0.1)
    monkeypatch.setattr(work, "BREATH_SECONDS", 0.02)
    work.pause_after(0.05, measuring=True)
    work.pause_after(0.05, measuring=False)
    work.pause_after(60.0, measuring=True)
    assert pauses == [pytest.approx(0.45), 0.02, 2.0]


# Memory

# Frees blocks of growing sizes in threads while smaller ones above them stay, as closed stores do.
_PROGRAM = """
import os, sys, threading
import numpy as np
from pathlib import Path
from dlbricks_tui.api.session import return_large_blocks

if sys.argv[1] == "return":
    return_large_blocks()
kept = []

def use():
    large = [np.ones(1 << 19, dtype=np.uint8) for _ in range(80)]
    for block in large[::2]:
        kept.append(np.ones(1 << 12, dtype=np.uint8))
    del large

for _ in range(4):
    use_thread = threading.Thread(target=use)
    use_thread.start()
    use_thread.join()
print(int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") >> 20)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the setting is one of glibc")
def test_freed_columns_do_not_stay_with_the_process() -> None:
    kept, returned = (
        int(subprocess.run([sys.executable, "-c", _PROGRAM, way], capture_output=True, check=True, text=True).stdout)
        for way in ("keep", "return")
    )
    assert returned < kept - 30


@pytest.fixture
def full_collections() -> Iterator[list[int]]:
    """The full collections so far, as a list that grows."""
    found, before = [], gc.get_threshold()

    def note(phase: str, about: dict[str, int]) -> None:
        if phase == "stop" and about["generation"] == 2:
            found.append(about["generation"])

    gc.callbacks.append(note)
    yield found
    gc.callbacks.remove(note)
    gc.set_threshold(*before)


def test_all_objects_are_collected_between_keys_only(
    full_collections: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 100.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    collections = IdleCollections()
    gc.collect()
    full_collections.clear()
    collections.key_pressed()
    for _ in range(20):
        gc.collect(1)
    collections.collect_if_idle()
    assert full_collections == [], "a key was pressed just now"
    now += 10.0
    collections.collect_if_idle()
    assert full_collections == [2]
    collections.collect_if_idle()
    assert full_collections == [2], "nothing has happened since"
    kept = [[number] for number in range(200_000)]
    assert full_collections == [2], f"Python collects no more on its own: {len(kept)} objects"
