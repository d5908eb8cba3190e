"""Memory that is freed goes back to the system."""

import subprocess
import sys

import pytest

# Frees blocks of growing sizes in threads while smaller ones above them stay, as closed stores do.
_PROGRAM = """
import os, sys, threading
import numpy as np
from pathlib import Path
from dlbricks_tui.tui.memory import return_large_blocks

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
