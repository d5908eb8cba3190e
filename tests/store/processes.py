"""Other processes on the same store."""

import ctypes
import os
import subprocess
import sys
from pathlib import Path

from dlbricks_tui.store.database import ResultsDatabase

ROOT = Path(__file__).parents[2]

_DROP_FROM_BOUNDING_SET = 24
_OVERRIDE_PERMISSIONS = (1, 2)


def start_writer(folder: Path, *task: str) -> subprocess.Popen[bytes]:
    """Start `tests.store.writer`."""
    return subprocess.Popen(
        [sys.executable, "-m", "tests.store.writer", str(folder), *task], cwd=ROOT, stdout=subprocess.PIPE
    )


def run_python(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run code in a process that obeys file permissions even if root runs the tests."""
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        preexec_fn=_obey_permissions if os.getuid() == 0 and sys.platform == "linux" else None,
    )


class Acknowledged:
    """The results that writers have acknowledged, and those that may be there or not."""

    def __init__(self) -> None:
        self.there: set[str] = set()
        self.perhaps_deleted: set[str] = set()

    def take(self, lines: bytes) -> None:
        """Count what a writer has printed until it was killed."""
        for line in lines.decode().splitlines():
            if line.startswith("+"):
                self.there.add(line[1:])
            elif line.startswith("?"):
                self.there.remove(line[1:])
                self.perhaps_deleted.add(line[1:])
            elif line.startswith("-"):
                self.perhaps_deleted.remove(line[1:])

    def check(self, folder: Path) -> None:
        """Assert that nothing was lost, and count all that is there as acknowledged."""
        with ResultsDatabase(folder) as store:
            stored = set(store.select().values("id"))
            assert len(stored) == len(store.table("measurements"))
        # Of the batch that was being written some may be there, unacknowledged: they are now.
        assert self.there <= stored
        self.there |= stored - self.perhaps_deleted
        self.perhaps_deleted &= stored


def _obey_permissions() -> None:
    libc = ctypes.CDLL(None)
    for capability in _OVERRIDE_PERMISSIONS:
        libc.prctl(_DROP_FROM_BOUNDING_SET, capability, 0, 0, 0)
