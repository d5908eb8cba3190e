"""Other processes on the same store."""

import ctypes
import os
import subprocess
import sys
from pathlib import Path

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


def _obey_permissions() -> None:
    libc = ctypes.CDLL(None)
    for capability in _OVERRIDE_PERMISSIONS:
        libc.prctl(_DROP_FROM_BOUNDING_SET, capability, 0, 0, 0)
