"""The program in a real terminal."""

import os
import re
import shlex
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from benchmarks.terminal import Terminal
from dlbricks_tui.folders import SAMPLE_MODELS, DataFolder
from dlbricks_tui.jobs.folder import RunFolder, RunFolders, State, Tally
from dlbricks_tui.measure.events import RoundDone
from dlbricks_tui.models.library import Library
from dlbricks_tui.runtime.registry import Registry
from tests.cli.test_hostile_names import HOSTILE, hostile_model
from tests.runs.killing import PATIENCE_SECONDS, eventually, has_told
from tests.runs.runs import BRICKS, FAKE_WORKER, Site

DLBRICKS = [sys.executable, "-m", "dlbricks_tui"]
# The sequences that leave the alternate screen, show the cursor, and stop reports of the mouse and of pastes.
RESTORED = (b"\x1b[?1049l", b"\x1b[?25h", b"\x1b[?1000l", b"\x1b[?2004l")


@contextmanager
def started(data: Path, program: Sequence[str] = DLBRICKS, **environment: str) -> Iterator[Terminal]:
    # With a store there is no welcome box to close; the time to handle Escape depends on the host.
    DataFolder(data).store.mkdir(parents=True, exist_ok=True)
    few_colours = {"COLORTERM": ""}
    terminal = Terminal(program, (100, 30), {"DLBRICKS_DATA_DIR": str(data), **few_colours, **environment})
    try:
        yield terminal
    finally:
        terminal.close()


def wait_for_end(terminal: Terminal) -> int:
    """Return the exit status, or the negative number of the signal that ended the process."""
    status = terminal.wait(PATIENCE_SECONDS)
    return os.waitstatus_to_exitcode(status)


def is_restored(terminal: Terminal) -> bool:
    return all(terminal.written.rfind(code) > terminal.written.rfind(b"\x1b[?1049h") for code in RESTORED)


@pytest.fixture(autouse=True)
def _no_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    # The tests themselves may run over SSH.
    monkeypatch.delenv("SSH_TTY", raising=False)
    monkeypatch.delenv("SSH_CONNECTION", raising=False)


def test_q_restores_the_terminal(tmp_path: Path) -> None:
    with started(tmp_path) as terminal:
        before = terminal.modes()
        terminal.seconds_until("1 Models 92")
        assert terminal.modes() != before
        assert b"\x1b[?1000h" in terminal.written, "it listens to the mouse"
        assert not re.search(rb"\x1b\[[\d;]*[34]8;[25];", bytes(terminal.written)), "sixteen colours are enough"
        terminal.send("\x1a")
        terminal.seconds_until("No shell can resume dlbricks here")
        # A resized terminal is drawn anew.
        terminal.resize((80, 24))
        terminal.seconds_until_quiet()
        place = len(terminal.written)
        terminal.send("4")
        terminal.seconds_until("shows workers")
        widest = re.findall(rb"\x1b\[\d+;(\d+)H", bytes(terminal.written[place:]))
        assert max(map(int, widest)) <= 80
        terminal.send("q")
        assert wait_for_end(terminal) == 0
        assert is_restored(terminal) and terminal.modes() == before
        assert not (tmp_path / "log").exists()


@pytest.mark.parametrize(
    "number",
    [
        pytest.param(signal.SIGINT, marks=pytest.mark.soak),
        signal.SIGTERM,
        pytest.param(signal.SIGHUP, marks=pytest.mark.soak),
    ],
    ids=lambda number: number.name,
)
def test_a_terminating_signal_restores_the_terminal(number: signal.Signals, tmp_path: Path) -> None:
    with started(tmp_path) as terminal:
        before = terminal.modes()
        terminal.seconds_until("1 Models 92")
        os.kill(terminal.pid, number)
        assert wait_for_end(terminal) == 128 + number
        assert is_restored(terminal) and terminal.modes() == before


def test_ctrl_z_suspends_and_fg_resumes(tmp_path: Path) -> None:
    # A script that runs it, such as make, has to stop with it.
    script = tmp_path / "script"
    script.write_text(f"{shlex.join(DLBRICKS)}\necho it ended with $?\n")
    with started(tmp_path / "data", program=["sh", "-i"]) as terminal:
        terminal.send(f"sh {script}\n")
        terminal.seconds_until("1 Models 92")
        # On the workbench, and in a box.
        for keys, shown in (("\x1a", "1 Models 92"), ("?\x1a", "Help")):
            terminal.send(keys)
            terminal.seconds_until("Stopped")
            assert is_restored(terminal)
            terminal.send("fg\n")
            terminal.seconds_until(shown)
            terminal.seconds_until_quiet()
        terminal.send("\x03")
        terminal.seconds_until("it ended with 0")
        assert is_restored(terminal)


def test_a_remote_terminal_without_colours_keeps_its_mouse(tmp_path: Path) -> None:
    with started(tmp_path, SSH_TTY="/dev/pts/9", NO_COLOR="1") as terminal:
        # Blanks that are blank already are not written.
        terminal.seconds_until("1 Models")
        assert b"\x1b[?1000h" not in terminal.written
        # Without colours the cursor line is shown in reverse.
        terminal.wait_until(lambda: b"7" in _style_codes(terminal))
        assert _style_codes(terminal) <= {b"", b"0", b"1", b"4", b"7", b"39", b"49"}


def _style_codes(terminal: Terminal) -> set[bytes]:
    found = re.findall(rb"\x1b\[([\d;]*)m", bytes(terminal.written))
    return {code for codes in found for code in codes.split(b";")}


def test_an_invalid_config_is_reported_instead_of_opening(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text("[workbench]\ntheme = 1\n")
    with started(tmp_path) as terminal:
        assert wait_for_end(terminal) == 2
        assert b"config.toml:2: workbench.theme = 1: it has to be the name of a theme" in terminal.written
        assert b"\x1b[?1049h" not in terminal.written


def test_a_dropped_connection_is_noticed_without_a_signal_and_does_not_block_the_exit(tmp_path: Path) -> None:
    # A thread of Textual writes to the terminal; if the terminal is gone, its queue is never emptied.
    stuck = "import threading; from textual.drivers._writer_thread import WriterThread; "
    stuck += "WriterThread.stop = lambda _: threading.Event().wait(); "
    stuck += "import sys; from dlbricks_tui.__main__ import main; sys.exit(main())"
    # Like make as the session leader: the kernel signals it, and it waits for its child.
    waiting = ["sh", "-c", f"trap : HUP; {shlex.join([sys.executable, '-c', stuck])}; exit 7"]
    with started(tmp_path, program=waiting) as terminal:
        terminal.seconds_until("1 Models 92")
        terminal.hang_up()
        assert wait_for_end(terminal) == 7


@pytest.fixture
def napping(tmp_path: Path) -> Iterator[DataFolder]:
    """A data folder with a slow runtime that computes nothing; its runs end with the test."""
    data = DataFolder(tmp_path / "data")
    interpreter = tmp_path / "napping"
    # It is slow while this file is there.
    slow = tmp_path / "slow"
    slow.touch()
    nap = f'FAKE_NAP=0.05 FAKE_SLOW="{slow}"'
    interpreter.write_text(f'#!/bin/sh\nshift; {nap} exec "{sys.executable}" "{FAKE_WORKER}" "$@"\n')
    interpreter.chmod(0o755)
    Registry(data.path).add(str(interpreter), name="napping")
    yield data
    for state in RunFolders(data.runs).states():
        if state.active:
            os.kill(state.process.pid, signal.SIGKILL)


def test_a_run_survives_its_terminal_and_is_found_again(
    napping: DataFolder,
) -> None:
    with started(napping.path, DLBRICKS_RUN_RUNTIME="napping", DLBRICKS_RUN_TARGET_CI="0.5") as terminal:
        terminal.seconds_until("1 Models 92")
        terminal.send("/")
        terminal.seconds_until("keep")
        terminal.send("alexnet")
        terminal.seconds_until("1 of 92")
        terminal.send("\r")
        terminal.seconds_until("measure")
        terminal.send(" f")
        terminal.seconds_until("written")
        terminal.send("m")
        terminal.seconds_until("Run alexnet")
        terminal.seconds_until_quiet()
        terminal.send("\r")
        terminal.wait_until(lambda: any(has_told(folder, RoundDone) for folder in runs_in(napping)), PATIENCE_SECONDS)
        (folder,) = runs_in(napping)
        process = folder.state().process
        terminal.hang_up()
        # The run has to last until the terminal is back.
        folder.pause()
        assert wait_for_end(terminal) in (128 + signal.SIGHUP, -signal.SIGHUP)
    eventually(lambda: folder.state().state is State.PAUSED)
    (napping.path.parent / "slow").unlink()
    with started(napping.path) as terminal:
        terminal.seconds_until("paused", PATIENCE_SECONDS)
        folder.unpause()
        terminal.seconds_until("finished", PATIENCE_SECONDS)
        terminal.send("q")
        assert wait_for_end(terminal) == 0
    assert (folder.state().state, folder.state().process) == (State.FINISHED, process)
    assert folder.state().bricks == Tally(BRICKS, measured=BRICKS)
    assert len(set(Site(napping.path).contents().measured)) == BRICKS


def runs_in(data: DataFolder) -> list[RunFolder]:
    return [RunFolders(data.runs).find(state.run) for state in RunFolders(data.runs).states()]


def test_control_codes_in_names_do_not_reach_the_terminal(tmp_path: Path) -> None:
    folder = tmp_path / "models"
    folder.mkdir()
    (folder / f"{HOSTILE}.onnx").write_bytes(hostile_model().SerializeToString())
    (folder / f"broken{HOSTILE}.onnx").write_text("no model")
    data = DataFolder(tmp_path / "data")
    Library(SAMPLE_MODELS, data.path).add_folder(folder)
    with started(data.path) as terminal:
        terminal.seconds_until("1 Models 94")
        for keys in ("/forged\r", "\r", "2", "jj", "n", "\x1b", "i", "\x1b", "o", f"{folder}/n", "\t"):
            terminal.send(keys)
            terminal.seconds_until_quiet()
        assert rb"\x1b]0;owned" in terminal.written
        assert b"\x1b]0;owned" not in terminal.written
        assert b"\x1b[2J\r\nforged" not in terminal.written
        assert "\x9b2J".encode() not in terminal.written and "\u202e".encode() not in terminal.written


def test_a_defect_restores_the_terminal_and_prints_one_line(tmp_path: Path) -> None:
    broken = (
        "import sys\n"
        "from dlbricks_tui.__main__ import main\n"
        "from dlbricks_tui.tui.workbench.screen import WorkbenchScreen\n"
        "WorkbenchScreen.action_change = lambda self, *_: 1 / 0\n"
        "sys.exit(main())\n"
    )
    with started(tmp_path, program=[sys.executable, "-c", broken]) as terminal:
        before = terminal.modes()
        terminal.seconds_until("1 Models 92")
        terminal.send("-")
        assert wait_for_end(terminal) == 1
        assert is_restored(terminal) and terminal.modes() == before
        said = bytes(terminal.written[terminal.written.rfind(b"\x1b[?1006l") + 8 :]).decode().strip()
        log = tmp_path / "log" / "errors.log"
        assert said.startswith("dlbricks: error: unexpected ZeroDivisionError") and said.endswith(str(log))
        assert "Traceback" not in said and "Traceback" in log.read_text()


def test_without_a_terminal_the_help_is_shown(tmp_path: Path) -> None:
    dlbricks, out = shlex.join(DLBRICKS), tmp_path / "out"
    commands = [f"{dlbricks} </dev/null", f"{dlbricks} >{out}", f"cat {out}", f"{dlbricks} 2>{tmp_path}/err"]
    with started(tmp_path, program=["sh", "-c", "; ".join(commands)]) as terminal:
        wait_for_end(terminal)
        assert terminal.written.count(b"usage: dlbricks ") == 3 and b"\x1b[?1049h" not in terminal.written


NOISE = "MXNET SAYS: [09:12:44] src/nnvm/legacy.cc: \x1b[31mloading\x1b[0m"


@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="processes are found in /proc")
def test_output_and_death_of_a_worker_do_not_disturb_the_screen(tmp_path: Path) -> None:
    # Every interpreter runs this first. The worker of the framework prints to the streams of the terminal, and hangs.
    (tmp_path / "sitecustomize.py").write_text(
        "import os, pathlib, time\n"
        "if b'--requests' in pathlib.Path('/proc/self/cmdline').read_bytes():\n"
        f"    os.write(1, {NOISE!r}.encode() * 100), os.write(2, {NOISE!r}.encode() * 100)\n"
        "    time.sleep(60)\n"
    )
    log = tmp_path / "data" / "log" / "framework.log"
    with started(tmp_path / "data", PYTHONPATH=os.pathsep.join([str(tmp_path), *sys.path])) as terminal:
        terminal.seconds_until("1 Models 92")
        terminal.send("\r4")
        terminal.wait_until(lambda: log.exists() and "MXNET SAYS" in log.read_text())
        os.kill(child_of(terminal.pid), signal.SIGKILL)
        terminal.seconds_until("SIGKILL")
        assert b"MXNET SAYS" not in terminal.written
        terminal.send("q")
        assert wait_for_end(terminal) == 0 and is_restored(terminal)


def child_of(pid: int) -> int:
    """Return the child of a process."""
    children = [(task / "children").read_text().split() for task in Path(f"/proc/{pid}/task").iterdir()]
    (child,) = [int(found) for of_thread in children for found in of_thread]
    return child
