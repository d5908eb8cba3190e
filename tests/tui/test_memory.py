"""Memory that is freed goes back to the system."""

import gc
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from dlbricks_tui.tui.session import IdleCollections

# Frees blocks of growing sizes in threads while smaller ones above them stay, as closed stores do.
_PROGRAM = """
import os, sys, threading
import numpy as np
from pathlib import Path
from dlbricks_tui.tui.session import return_large_blocks

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
