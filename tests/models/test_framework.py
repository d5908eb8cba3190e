import sys
import threading
from pathlib import Path

import pytest

from dlbricks_tui.models.framework import WorkerFramework
from dlbricks_tui.runtime.errors import FrameworkMissingError, WorkerDiedError, WorkerRefusedError
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
    return WorkerFramework(Runtime("fake", str(python), "mxnet", "1.0", "3.7", settings), folder / "framework.log")


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


def test_a_framework_that_is_missing_is_looked_for_once_until_somebody_asks_again(tmp_path: Path) -> None:
    tries, python = tmp_path / "tries", tmp_path / "python"
    missing = framework(tmp_path, "no framework")
    python.write_text(python.read_text().replace("shift;", f"echo >> {tries}; shift;"))
    with missing:
        for _ in range(2):
            with pytest.raises(FrameworkMissingError, match="dlbricks runtimes add"):
                missing.infer(SYMBOL, {})
        assert len(tries.read_text()) == 1
        missing.look_again()
        with pytest.raises(FrameworkMissingError):
            missing.infer(SYMBOL, {})
        assert len(tries.read_text()) == 2
