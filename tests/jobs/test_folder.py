"""Folders of jobs with their states: found, damaged, left by a process that was killed, and on a full disk."""

import errno
import json
import os
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from dlbricks_tui.cli.main import main
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.host.queue import ProcessIdentity
from dlbricks_tui.jobs.control import only_process
from dlbricks_tui.jobs.errors import JobError, UnreadableJobError
from dlbricks_tui.jobs.folder import ACTIVE, RunFolder, RunFolders, State
from tests.attack.damage import WAYS


def test_a_run_is_found_by_id_by_unique_prefix_and_as_the_last_one(tmp_path: Path) -> None:
    folders = RunFolders(tmp_path / "runs")
    assert folders.states() == ()
    first, second = folders.create(("a",)), folders.create(("b",))
    assert [state.run for state in folders.states()] == [first.run, second.run]
    for name in (second.run, second.run[:-1] if second.run[:-1] != first.run[:-1] else second.run, "last"):
        assert folders.find(name).run == second.run
    with pytest.raises(JobError, match="2 runs begin with"):
        folders.find(first.run[:6])
    for nobody in ("", "elsewhere", "../escape"):
        with pytest.raises(JobError):
            RunFolders(tmp_path / "none").find(nobody)
    with pytest.raises(JobError, match="there is no run"):
        RunFolder(tmp_path / "gone").state()


def no_date(state: Path) -> None:
    """Damage the time in a state that is sound otherwise."""
    state.write_bytes(re.sub(rb"\.(?=\d{6})", b">", state.read_bytes().replace(b'"chxnged"', b'"changed"')))


@pytest.mark.parametrize("damage", [*WAYS.values(), no_date], ids=[*WAYS, "a date that is none"])
def test_a_damaged_state_hides_no_other_run(
    tmp_path: Path, damage: Callable[[Path], None], capsys: pytest.CaptureFixture[str]
) -> None:
    folders = RunFolders(DataFolder(tmp_path).runs)
    runs = [folders.create((model,)) for model in ("first", "damaged", "third")]
    first, third, damaged = runs[0].run, runs[2].run, "20000101-000000-0000"
    # Ids of one second are in any order.
    path = runs[1].path.rename(runs[1].path.with_name(damaged))
    # Damage that leaves a valid state is none.
    state = path / "state.json"
    state.write_bytes(state.read_bytes().replace(b'"changed"', b'"chxnged"'))
    damage(state)
    found = folders.stored()
    assert ([it.run for it in found.states], list(found.unreadable)) == ([first, third], [damaged])
    assert folders.find("last").run == third
    with pytest.raises(UnreadableJobError, match=damaged):
        folders.find(damaged).state()
    assert main(["--data-dir", str(tmp_path), "runs", "--json"]) == 1
    out, told = capsys.readouterr()
    assert [it["run"] for it in json.loads(out)] == [first, third]
    (line,) = told.splitlines()
    assert damaged in line and line.endswith("remove its folder, which holds no results")


def test_an_unreadable_run_that_may_be_the_last_one_is_not_passed_over(tmp_path: Path) -> None:
    folders = RunFolders(tmp_path)
    folders.create(("a",))
    (tmp_path / "29991231-000000-0000").mkdir()
    (tmp_path / "29991231-000000-0000" / "state.json").write_text("{")
    with pytest.raises(UnreadableJobError, match="29991231"):
        folders.find("last")


@pytest.mark.parametrize("state", State)
def test_an_active_run_without_its_process_counts_as_interrupted(tmp_path: Path, state: State) -> None:
    folder = RunFolders(tmp_path).create(("a",))
    # Its process id is in use again.
    folder.set_state(replace(folder.state(), state=state, process=ProcessIdentity(os.getpid(), "once")))
    assert folder.state().state is (State.INTERRUPTED if state in ACTIVE else state)
    if state in ACTIVE:
        with pytest.raises(JobError, match="nothing to cancel"):
            folder.cancel()


def test_a_run_that_has_not_begun_is_no_reason_to_end_the_program_that_starts_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended: list[int] = []
    monkeypatch.setattr("dlbricks_tui.jobs.folder.os.kill", lambda pid, _: ended.append(pid))
    monkeypatch.setattr("dlbricks_tui.jobs.folder._SECONDS_TO_BEGIN", 0.0)
    folder = RunFolders(tmp_path).create(("a",))
    with pytest.raises(JobError, match=r"is still starting: cancel it later$"):
        folder.cancel()
    with pytest.raises(JobError, match=r"is still starting: pause it later$"):
        folder.pause()
    assert not ended
    with only_process(folder):
        folder.cancel()
    assert ended == [os.getpid()]


def test_a_file_system_without_locks_is_told_of_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: int) -> None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))

    monkeypatch.setattr("dlbricks_tui.jobs.control.fcntl.flock", refuse)
    folder = RunFolders(tmp_path).create(("a",))
    told = "lock: Function not implemented; choose another data folder"
    with pytest.raises(JobError, match=told), only_process(folder):
        pytest.fail("it is not locked")


def test_a_job_that_is_removed_while_the_jobs_are_listed_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders = RunFolders(tmp_path)
    kept = folders.create(("a",))
    monkeypatch.setattr(RunFolders, "folders", lambda _: [kept, RunFolder(tmp_path / "removed")])
    assert [state.run for state in folders.states()] == [kept.run]


def test_a_job_that_cannot_be_stored_leaves_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    room = [True, False]

    def write(path: Path, text: str) -> None:
        if not room.pop(0):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        path.write_text(text)

    monkeypatch.setattr("dlbricks_tui.jobs.folder.write_atomically", write)
    with pytest.raises(JobError, match=r"request\.json: No space left"):
        RunFolders(tmp_path).create(("a",), request=ProcessIdentity(1, ""))
    assert not list(tmp_path.iterdir())


def test_a_full_disk_and_an_unwritable_folder_get_different_advice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = RunFolders(tmp_path).create(("a",))
    state = folder.state()
    for number, cure in ((errno.ENOSPC, "free some space"), (errno.EROFS, "make it writable")):

        def refuse(path: Path, text: str, number: int = number) -> None:
            raise OSError(number, os.strerror(number))

        monkeypatch.setattr("dlbricks_tui.jobs.folder.write_atomically", refuse)
        with pytest.raises(JobError, match=rf"state\.json: {os.strerror(number)}; what was measured is kept: {cure}"):
            folder.set_state(state)
