"""The program in a real terminal, stopped and continued as a job, and over connections."""

from __future__ import annotations

import base64
import gc
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from textual._compositor import CompositorUpdate
from textual.drivers.headless_driver import HeadlessDriver

from benchmarks.terminal import Terminal
from dlbricks_tui.api import model_reading as work
from dlbricks_tui.api.session import WorkbenchSession
from dlbricks_tui.config.config import Config, Given, Sources
from dlbricks_tui.folders import SAMPLE_MODELS, DataFolder
from dlbricks_tui.jobs.folder import RunFolder, RunFolders, State, Tally
from dlbricks_tui.measure.events import RoundDone
from dlbricks_tui.models.library import Library
from dlbricks_tui.runtime.registry import Registry
from dlbricks_tui.settings.workbench import Switch
from dlbricks_tui.tui import app, door
from dlbricks_tui.tui.app import DlbricksApp
from dlbricks_tui.tui.diff_driver import DiffDriver, ScreenDiff, look_of
from dlbricks_tui.tui.door import Connection, IdleCollections, connection, is_hung_up
from dlbricks_tui.tui.messages import NewResults
from dlbricks_tui.tui.run.host import RunUpdates
from dlbricks_tui.tui.saving import clipboard_sequence
from dlbricks_tui.tui.variants import VariantsScreen
from dlbricks_tui.tui.widgets.screens import NOT_YET
from tests.cli.test_output import HOSTILE, hostile_model
from tests.runs.killing import PATIENCE_SECONDS, eventually, has_told
from tests.runs.live_runs import end, estimate, in_the_middle, put_run
from tests.runs.runs import BRICKS, FAKE_WORKER, Site
from tests.tui import results
from tests.tui.application import MEASURED_ONLY, app_on, running, showing
from tests.tui.driving import find, press, screen_text, settled, shows
from tests.tui.test_analysis_screen import RUNNING
from tests.tui.test_variants_screen import screen

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
    # Set first, so that monkeypatch removes it afterwards in every case.
    monkeypatch.setitem(os.environ, "TEXTUAL_FPS", "")
    monkeypatch.delitem(os.environ, "TEXTUAL_FPS")


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


def test_frames_are_drawn_where_the_locale_has_no_utf_8(tmp_path: Path) -> None:
    with started(tmp_path, LC_ALL="POSIX", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0") as terminal:
        terminal.seconds_until("┃")
        assert b"\\u2503" not in terminal.written
        terminal.send("q")
        assert wait_for_end(terminal) == 0


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


def test_a_run_survives_its_terminal_and_is_found_again(napping: DataFolder) -> None:
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


def test_a_program_that_waits_for_ever_ends_with_its_terminal() -> None:
    code = """
import signal, threading
from dlbricks_tui.tui.door import leave_without_terminal
signal.signal(signal.SIGHUP, signal.SIG_IGN)
threading.Thread(target=leave_without_terminal, args=(list,), daemon=True).start()
print("ready", flush=True)
threading.Event().wait()
"""
    terminal = Terminal([sys.executable, "-c", code], (80, 24), {})
    terminal.seconds_until("ready")
    terminal.hang_up()
    assert wait_for_end(terminal) == 128 + signal.SIGHUP


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
        (first,) = children_of(terminal.pid)
        os.kill(first, signal.SIGKILL)
        # It is asked once more, by another worker.
        terminal.wait_until(lambda: bool(children_of(terminal.pid) - {first}))
        (second,) = children_of(terminal.pid) - {first}
        os.kill(second, signal.SIGKILL)
        terminal.seconds_until("SIGKILL")
        assert b"MXNET SAYS" not in terminal.written
        terminal.send("q")
        assert wait_for_end(terminal) == 0 and is_restored(terminal)


def children_of(pid: int) -> set[int]:
    """Return the children of a process."""
    listed = [(task / "children").read_text().split() for task in Path(f"/proc/{pid}/task").iterdir()]
    return {int(found) for of_thread in listed for found in of_thread}


TEXT = "sha256:ü\nsecond line"


def config(**settings: str) -> Config:
    return Config({**Config().given, **{f"workbench.{name}": Given(Switch(word)) for name, word in settings.items()}})


def decoded(sequence: str) -> str:
    return base64.b64decode(sequence.removeprefix("\x1b]52;c;").removesuffix("\a")).decode()


def test_a_text_is_copied_by_osc_52_which_tmux_gets_plain_and_wrapped() -> None:
    assert decoded(clipboard_sequence(TEXT, {})) == TEXT
    found = re.fullmatch(
        "(\x1b]52;c;[^\a]*\a)\x1bPtmux;(.*)\x1b\\\\", clipboard_sequence(TEXT, {"TMUX": "/socket,1,0"})
    )
    assert found is not None and decoded(found[1]) == TEXT == decoded(found[2].replace("\x1b\x1b", "\x1b"))


@pytest.mark.parametrize(
    ("settings", "environment", "expected"),
    [
        ({}, {}, Connection()),
        ({}, {"SSH_TTY": ""}, Connection()),
        ({}, {"SSH_TTY": "/dev/pts/3"}, Connection(False, True, 15, 4.0)),
        ({}, {"SSH_CONNECTION": "10.0.0.1 5 10.0.0.2 22"}, Connection(False, True, 15, 4.0)),
        ({"mouse": "on"}, {"SSH_TTY": "/dev/pts/3"}, Connection(True, True, 15, 4.0)),
        ({"remote": "off"}, {"SSH_TTY": "/dev/pts/3"}, Connection()),
        ({"remote": "on"}, {}, Connection(False, True, 15, 4.0)),
        ({"mouse": "off"}, {}, Connection(mouse=False)),
    ],
)
def test_a_remote_connection_is_slow_and_without_mouse_unless_the_config_says_otherwise(
    settings: dict[str, str], environment: dict[str, str], expected: Connection
) -> None:
    assert connection(config(**settings), environment) == expected


# Python's handlers stop and resume the process later than the kernel would.
INNER = """
import os, signal, sys, time
from dlbricks_tui.tui.door import stop_job

def stop_late(*_):
    time.sleep(0.5)
    os.kill(os.getpid(), signal.SIGSTOP)

def resume_late(*_):
    os._exit(2)

signal.signal(signal.SIGTSTP, stop_late)
signal.signal(signal.SIGCONT, resume_late)
stop_job()
restored = signal.getsignal(signal.SIGTSTP) is stop_late and signal.getsignal(signal.SIGCONT) is resume_late
sys.exit(7 if restored else 1)
"""


def test_a_job_that_is_resumed_at_once_continues() -> None:
    # A job of two processes, like a script and its child: the shell is told of the outer one only.
    outer = ["sh", "-c", f'{sys.executable} -c "$0"; exit $?', INNER]
    pid = os.posix_spawn("/bin/sh", outer, os.environ, setpgroup=0)
    try:
        assert os.WIFSTOPPED(os.waitpid(pid, os.WUNTRACED)[1])
        # Long enough that the signal has reached the inner process, too short for its handler.
        time.sleep(0.1)
        os.killpg(pid, signal.SIGCONT)
        ended: list[int] = []

        def has_ended() -> bool:
            found, status = os.waitpid(pid, os.WNOHANG)
            ended.extend([os.waitstatus_to_exitcode(status)] if found else [])
            return bool(found)

        eventually(has_ended)
        assert ended == [7]
    finally:
        with suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)


def test_a_terminal_with_a_closed_peer_counts_as_hung_up() -> None:
    terminal, ours = os.openpty()
    try:
        assert not is_hung_up(ours)
        os.close(terminal)
        assert is_hung_up(ours)
    finally:
        os.close(ours)


async def test_the_terminal_is_restored_while_the_job_is_stopped(
    new: DataFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    did: list[str] = []
    monkeypatch.setattr(app, "has_shell", lambda: True)
    monkeypatch.setattr(app, "stop_job", lambda: did.append("the job stops"))
    monkeypatch.setattr(HeadlessDriver, "can_suspend", True)
    monkeypatch.setattr(HeadlessDriver, "suspend_application_mode", lambda _: did.append("the terminal is restored"))
    monkeypatch.setattr(HeadlessDriver, "resume_application_mode", lambda _: did.append("the screen is back"))
    async with running(app_on(new, MEASURED_ONLY)) as pilot:
        await press(pilot, "ctrl+z")
        assert did == ["the terminal is restored", "the job stops", "the screen is back"]
        monkeypatch.setattr(app, "has_shell", lambda: False)
        await press(pilot, "ctrl+z")
        assert did[3:] == [] and [it.message for it in pilot.app._notifications] == [
            "No shell can resume dlbricks here."
        ]


SSH = {"SSH_TTY": "/dev/pts/9"}
REMOTE = Connection(mouse=False, is_slow=True, repaints_per_second=15, poll_factor=4.0)


class Recorded:
    """Replaces the application, and records how it was opened."""

    fault = None
    return_code = 7
    opened: list[Recorded]

    def __init__(self, session: WorkbenchSession, *, sources: Sources, connection: Connection, **_: object) -> None:
        self.sources = sources
        self.connection = connection
        self.mouse: bool | None = None
        self.repaints = os.environ.get("TEXTUAL_FPS")

    def run(self, *, mouse: bool) -> None:
        self.mouse = mouse
        self.opened.append(self)


@pytest.mark.parametrize(
    ("environment", "expected"),
    [({}, Connection()), (SSH, REMOTE), ({**SSH, "DLBRICKS_WORKBENCH_REMOTE": "off"}, Connection())],
    ids=["here", "there", "there, but asked not to"],
)
def test_the_workbench_opens_with_the_settings_of_the_connection(
    environment: dict[str, str], expected: Connection, new: DataFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dlbricks_tui.tui.app.DlbricksApp", Recorded)
    monkeypatch.setattr(Recorded, "opened", [], raising=False)
    sources = Sources(new.config, environment)
    assert door.open_workbench(new, sources) == Recorded.return_code
    # A rate that is given is kept.
    monkeypatch.setitem(os.environ, "TEXTUAL_FPS", "30")
    door.open_workbench(new, sources)
    first, second = Recorded.opened
    assert (first.connection, first.mouse, first.sources) == (expected, expected.mouse, sources)
    assert (first.repaints, second.repaints) == (str(expected.repaints_per_second), "30")


def test_a_slow_connection_writes_only_changes_and_polls_less_often(new: DataFolder) -> None:
    here, there = (DlbricksApp(WorkbenchSession(new), connection=connection) for connection in (Connection(), REMOTE))
    assert (here.driver_class is DiffDriver, there.driver_class is DiffDriver) == (False, True)
    assert (here.has_class("-slow-link"), there.has_class("-slow-link")) == (False, True)
    # There are no animations on any connection.
    assert (here.animation_level, there.animation_level) == ("none", "none")
    assert (here._runs.watch.poll_factor, there._runs.watch.poll_factor) == (1.0, 4.0)


WIDTH, HEIGHT = 20, 6


class Paper:
    """A minimal terminal: the text and the style of each cell."""

    def __init__(self) -> None:
        self.cells: dict[tuple[int, int], tuple[str, object]] = {}
        self.row = self.column = 0
        self.style = ""

    def write(self, data: str) -> None:
        for token in re.finditer(r"\x1b\[([0-9;]*)([mHC])|(\r?\n)|([^\x1b\r\n])|\x1b\[\?\d+[hl]", data):
            numbers, kind, line, character = token.groups()
            if kind == "m":
                self.style = "" if numbers in ("", "0") else f"{self.style};{numbers}"
            elif kind == "H":
                self.row, self.column = (int(each) - 1 for each in numbers.split(";"))
            elif kind == "C":
                self.column += int(numbers)
            elif line:
                self.row, self.column = self.row + 1, 0
            elif character:
                self._put(character)

    def _put(self, character: str) -> None:
        look = look_of(self.style)
        shown: object = look
        if character == " " and not look.flags & {"4", "7", "9"}:
            shown = look.ground
        for each in range(cell_len(character)):
            self.cells[self.row, self.column + each] = (character if each == 0 else "", shown)
        self.column += cell_len(character)


def place(row: int, column: int) -> str:
    return f"\x1b[{row + 1};{column + 1}H"


STYLES = st.sampled_from(["1", "38;5;75;48;5;236", "1;31", "38;2;1;2;3", "7", "4;92;40", "97;104", "39;49"])
WORDS = st.text("ab ─█é漢", min_size=1, max_size=4)
DRAWN = st.builds(
    lambda row, column, pieces: (
        place(row, column) + "".join(f"\x1b[{style}m{word}\x1b[0m" for style, word in pieces) + "\r\n\x1b[31mx\x1b[0m"
    ),
    st.integers(0, HEIGHT - 2),
    st.integers(0, WIDTH // 2),
    st.lists(st.tuples(STYLES, WORDS), min_size=1, max_size=3),
)


@given(st.lists(DRAWN, min_size=1, max_size=12))
def test_the_reduced_output_draws_the_same_screen(drawn: list[str]) -> None:
    diff, expected, found = ScreenDiff(), Paper(), Paper()
    for data in drawn:
        expected.write(data)
        found.write(diff.reduced(data))
        assert found.cells == expected.cells
        assert (found.row, found.column) == (expected.row, expected.column)


@pytest.mark.parametrize(
    ("style", "flags", "ink", "ground"),
    [
        ("", set(), "39", "49"),
        ("1;38;5;231;48;5;233", {"1"}, "38;5;231", "48;5;233"),
        ("4;38;2;1;2;3", {"4"}, "38;2;1;2;3", "49"),
        ("31;44", set(), "31", "44"),
        ("97;104;9", {"9"}, "97", "104"),
        ("1;4;31;0;7", {"7"}, "39", "49"),
        ("1;7;22", {"7"}, "39", "49"),
        ("31;42;39;49", set(), "39", "49"),
    ],
)
def test_styles_are_parsed_as_terminals_parse_them(style: str, flags: set[str], ink: str, ground: str) -> None:
    assert look_of(style) == (frozenset(flags), ink, ground)


def test_sequences_that_draw_nothing_pass_unchanged() -> None:
    diff = ScreenDiff()
    diff.reduced(f"{place(0, 0)}x{place(0, 0)}")
    for sequence in (
        "\x1b[?2026h",
        "\x1b]52;c;YQ==\x07",
        "\x1bPtmux;\x1b\x1b]52;c;YQ==\x07\x1b\\",
        "\x1b[?25l",
        "\x1b[>1u",
    ):
        assert diff.reduced(sequence) == sequence


def test_switching_the_screen_buffer_redraws_everything() -> None:
    diff, data = ScreenDiff(), f"{place(0, 0)}\x1b[31mtext\x1b[0m{place(0, 0)}"
    first = diff.reduced(data)
    diff.forget()
    assert diff.reduced(data) == first
    for upheaval in ("\x1b[?1049h", "\x1b[2J", "\x1bc"):
        diff.reduced(upheaval)
        assert "text" in diff.reduced(data)


async def test_changes_take_a_seventh_of_the_bytes_and_a_key_repairs_a_screen_that_other_output_has_overwritten(
    measured: DataFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    diff, terminal, sizes = ScreenDiff(), Paper(), list[tuple[int, int]]()

    def display(app: DlbricksApp, _: object, drawn: CompositorUpdate | None) -> None:
        if drawn is not None:
            data = drawn.render_segments(app.console)
            reduced = diff.reduced(data)
            terminal.write(reduced)
            sizes.append((len(data), len(reduced)))

    monkeypatch.setattr(DlbricksApp, "_display", display)
    # Tests have no terminal; the driver of a slow connection remembers what it has written.
    monkeypatch.setattr("dlbricks_tui.tui.app.DiffDriver", HeadlessDriver)
    monkeypatch.setattr(HeadlessDriver, "forget", lambda _: diff.forget(), raising=False)
    async with running(app_on(measured, MEASURED_ONLY), (120, 40)) as pilot:
        await press(pilot, "j")
        shown = dict(terminal.cells)
        assert len(shown) == 120 * 40
        for column in range(120):
            terminal.cells[5, column] = ("?", None)
        await press(pilot, "2", "1")
        assert terminal.cells != shown
        await press(pilot, "ctrl+l")
        assert terminal.cells == shown
        sizes.clear()
        for key in ("2", "1", "4", "1", "plus", "k"):
            await press(pilot, key)
        assert sum(less for _, less in sizes) < sum(more for more, _ in sizes) / 7


async def test_predictions_leave_the_screen_once_a_run_of_the_model_has_figures(new: DataFolder) -> None:
    results.store_run(new, ["resnet50_v1", "squeezenet1.1"])
    async with running(app_on(new)) as pilot:
        await press(pilot, *find("resnet18"), "enter")
        shown = screen_text(pilot)
        assert shown.count("~") > 3, shown
        timed = replace(estimate("resnet18_v1", 0.1, missing=0), sequential_ms=20.6, low_ms=20.0, high_ms=21.0)
        run = put_run(new, [*in_the_middle(), timed])
        await shows(pilot, "20.60 ms so far")
        assert "~" not in screen_text(pilot)
        end(run, State.CANCELLED)
        await shows(pilot, "~")


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
