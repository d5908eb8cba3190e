import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from dlbricks_tui.models.frameworks import WorkerFramework
from dlbricks_tui.runtime.errors import FrameworkMissingError, WorkerDiedError, WorkerRefusedError
from dlbricks_tui.runtime.protocol import Reason
from dlbricks_tui.runtime.runtime import Runtime, Settings
from dlbricks_tui.runtime.variant import Precision

FAKE_WORKER = Path(__file__).parents[1] / "runtime" / "fake_worker.py"
SYMBOL = "{}"


def framework(folder: Path, manner: str) -> WorkerFramework:
    """Return a framework with that kind of failure."""
    python = folder / "python"
    python.write_text(f'#!/bin/sh\nshift; exec "{sys.executable}" "{FAKE_WORKER}" "$@"\n')
    python.chmod(0o755)
    settings = Settings(environment=(("FAKE_WORKER", manner),))
    return WorkerFramework(Runtime("fake", str(python), "mxnet", "1.0", "3.7", settings), folder / "framework.log")


def test_the_identity_of_a_framework_tells_another_precision_as_it_may_fuse_otherwise(tmp_path: Path) -> None:
    runtime = Runtime("fake", sys.executable, "openvino", "2026.4", "3.11")
    usual, other = (
        WorkerFramework(replace(runtime, settings=Settings(precision=precision)), tmp_path / "framework.log").identity
        for precision in (Precision.F32, Precision.BF16)
    )
    assert (usual, other) == ("openvino-2026.4", "openvino-2026.4 precision-bf16")


def test_a_crash_while_fusing_counts_as_a_refusal(tmp_path: Path) -> None:
    with framework(tmp_path, "crash") as dying, pytest.raises(WorkerRefusedError, match="killed by SIGSEGV") as caught:
        dying.fuse(SYMBOL, {})
    assert caught.value.reason is Reason.UNFUSABLE


def test_a_crash_at_another_request_is_an_error(tmp_path: Path) -> None:
    with framework(tmp_path, "crash") as dying, pytest.raises(WorkerDiedError):
        dying.infer(SYMBOL, {})


def test_an_interrupted_framework_is_an_error_and_not_a_refusal(tmp_path: Path) -> None:
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


def test_a_missing_framework_is_searched_for_once_until_a_retry(tmp_path: Path) -> None:
    tries, python = tmp_path / "tries", tmp_path / "python"
    missing = framework(tmp_path, "no framework")
    python.write_text(python.read_text().replace("shift;", f"echo >> {tries}; shift;"))
    with missing:
        for _ in range(2):
            with pytest.raises(FrameworkMissingError, match="dlbricks runtimes add"):
                missing.infer(SYMBOL, {})
        assert len(tries.read_text()) == 1
        missing.retry_missing()
        with pytest.raises(FrameworkMissingError):
            missing.infer(SYMBOL, {})
        assert len(tries.read_text()) == 2
