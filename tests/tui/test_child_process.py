"""Processes that write messages; small scripts stand for them."""

import json
import sys
from pathlib import Path

import pytest

from dlbricks_tui.tui import child_process
from dlbricks_tui.tui.child_process import ChildError, ChildProcess


def child(folder: Path, script: str, order: bytes = b"") -> ChildProcess[object]:
    return ChildProcess([sys.executable, "-S", "-c", script], order, folder / "log" / "process.log", json.loads)


async def messages_of(process: ChildProcess[object]) -> list[object]:
    taken: list[object] = []
    await process.follow(taken.append)
    return taken


async def test_the_process_reads_its_order_and_its_messages_arrive(tmp_path: Path) -> None:
    process = child(tmp_path, "import sys; print(len(sys.stdin.read())); print('[1, 2]')", b"order")
    assert await messages_of(process) == [5, [1, 2]]


async def test_the_latencies_of_many_requests_fit_in_a_line(tmp_path: Path) -> None:
    (found,) = await messages_of(child(tmp_path, "print([0.123456789] * 200_000)"))
    assert isinstance(found, list)
    assert len(found) == 200_000


async def test_a_process_that_fails_is_told_by_the_last_line_of_its_narration(tmp_path: Path) -> None:
    with pytest.raises(ChildError, match=r"^the disk is full$"):
        await messages_of(child(tmp_path, "import sys; sys.exit('the disk is full')"))


async def test_a_process_that_dies_without_a_word_is_told_by_its_status(tmp_path: Path) -> None:
    with pytest.raises(ChildError, match="the process ended with status -9"):
        await messages_of(child(tmp_path, "import os; os.kill(os.getpid(), 9)"))


@pytest.mark.parametrize("text", ["no json", "\\xff"])
async def test_a_line_that_is_no_message_ends_the_process(tmp_path: Path, text: str) -> None:
    process = child(tmp_path, f"import os, time; os.write(1, b'{text}\\n'); time.sleep(600)")
    with pytest.raises(ChildError, match="the process wrote a line that is no message"):
        await messages_of(process)
    await process.ended()


async def test_a_program_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    process: ChildProcess[object] = ChildProcess(["/no/such/program"], b"", tmp_path / "log", json.loads)
    with pytest.raises(ChildError, match="the process cannot be started: No such file"):
        await messages_of(process)


async def test_a_process_that_does_not_end_when_asked_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(child_process, "_SECONDS_TO_END", 0.01)
    process = child(
        tmp_path,
        "import os, signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); os.write(1, b'1\\n'); time.sleep(600)",
    )

    def stop(_: object) -> None:
        process.stop()

    await process.follow(stop)
    assert process.stopped
