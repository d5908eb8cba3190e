import sys
import threading
from pathlib import Path

import pytest

from dlbricks_tui.models.framework import WorkerFramework
from dlbricks_tui.runtime.errors import WorkerDiedError, WorkerRefusedError
from dlbricks_tui.runtime.protocol import Reason
from dlbricks_tui.runtime.runtime import Runtime, Settings

FAKE_WORKER = Path(__file__).parents[1] / "runtime" / "fake_worker.py"
SYMBOL = "{}"


def framework(folder: Path, manner: str) -> WorkerFramework:
    """A framework that misbehaves in that manner."""
    python = folder / "python"
    python.write_text(f'#!/bin/sh\nshift; exec "{sys.executable}" "{FAKE_WORKER}" "$@"\n')
    python.chmod(0o755)
    settings = Settings(environment=(("FAKE_WORKER", manner),))
    return WorkerFramework(Runtime("fake", str(python), "fake", "1.0", "3.7", settings), folder / "framework.log")


def test_a_framework_that_dies_of_fusing_a_model_has_refused_it(tmp_path: Path) -> None:
    with framework(tmp_path, "crash") as dying, pytest.raises(WorkerRefusedError, match="killed by SIGSEGV") as caught:
        dying.fuse(SYMBOL, {})
    assert caught.value.reason is Reason.UNFUSABLE


def test_of_other_questions_it_does_not_die_by_right(tmp_path: Path) -> None:
    with framework(tmp_path, "crash") as dying, pytest.raises(WorkerDiedError):
        dying.infer(SYMBOL, {})


def test_a_framework_that_was_interrupted_has_refused_nothing(tmp_path: Path) -> None:
    with framework(tmp_path, "hang") as hanging:
        log = tmp_path / "framework.log"

        def interrupt_when_started() -> None:
            while not log.exists() or not log.read_text():
                threading.Event().wait(0.01)
            hanging.interrupt()

        thread = threading.Thread(target=interrupt_when_started)
        thread.start()
        with pytest.raises(WorkerDiedError, match="killed by SIGKILL"):
            hanging.fuse(SYMBOL, {})
        thread.join()
