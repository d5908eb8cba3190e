"""Signals, pausing, waiting and kills of runs, and what they leave."""

import os
import pty
import re
import signal
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest

from dlbricks_tui.api.jobs import start_apart
from dlbricks_tui.host.queue import this_process
from dlbricks_tui.jobs.control import only_process
from dlbricks_tui.jobs.errors import JobError
from dlbricks_tui.jobs.events import Event, Paused, Resumed, Waiting
from dlbricks_tui.jobs.folder import JobState, RunFolder, RunFolders, State
from dlbricks_tui.measure.events import RoundDone
from dlbricks_tui.measure.stopping import FEWEST_SAMPLES, FixedRuns
from dlbricks_tui.runs.control import Control, create_run
from dlbricks_tui.runs.events import ModelLoading, ProgramMeasured, RunEnded, RunProgress, WorkerReplaced
from dlbricks_tui.runs.request import RunRequest
from dlbricks_tui.runs.run import execute
from dlbricks_tui.store.documents import OtherVersionError
from dlbricks_tui.store.files import head_of, journal_name, line_of, sealed, with_checksum
from tests.host.lines import turn_of
from tests.runs.killing import (
    VICTIMS,
    all_are_gone,
    eventually,
    has_told,
    kill_at_random,
    results_kept,
    results_told,
    workers_of,
)
from tests.runs.runs import BRICKS, FAKE, Site, fake_interpreter
from tests.soak import TOLD

RULE = FixedRuns(FEWEST_SAMPLES + 1)
_KILLS = 10
Act = Callable[[], None]


@pytest.fixture
def workers() -> Callable[[], list[int]]:
    """Returns the workers of a run in this process, where one of other tests may live on."""
    others = set(workers_of(os.getpid()))
    return lambda: [it for it in workers_of(os.getpid()) if it not in others]


@pytest.fixture(autouse=True)
def _short_naps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let runs that wait look often, and fail if nothing happens."""
    nap, naps = Control._nap, count()

    def short(control: Control) -> None:
        assert next(naps) < 10_000, "it waits for ever"
        nap(control)

    monkeypatch.setattr("dlbricks_tui.runs.control.NAP_SECONDS", 0.001)
    monkeypatch.setattr(Control, "_nap", short)


def executed(
    site: Site,
    folder: RunFolder,
    request: RunRequest,
    acts: Sequence[tuple[type[Event], Act]] = (),
    *,
    detached: bool = False,
) -> JobState:
    """Execute a run in this process; act once after the first event of each kind, in this order."""
    waiting = list(acts)

    def listen(event: Event) -> None:
        # A viewer that reads events until the final state has read all of them.
        assert not isinstance(event, RunEnded) or folder.state().active
        if waiting and isinstance(event, waiting[0][0]):
            waiting.pop(0)[1]()

    state = execute(folder, request, site.place, site.queue, listen, detached=detached).state
    assert waiting == []
    assert replace(folder.state(), changed=state.changed) == state
    assert not state.active
    return state


def nothing() -> None: ...


def sends(number: signal.Signals) -> Act:
    return lambda: os.kill(os.getpid(), number)


def test_a_cancelled_run_keeps_its_samples_and_goes_on_with_them_when_it_is_resumed(
    site: Site, workers: Callable[[], list[int]]
) -> None:
    runs = 20
    request = site.request(rule=FixedRuns(runs))
    folder = create_run(request, site.data)
    worker: list[int] = []

    def cancel() -> None:
        worker.extend(workers())
        # It sends the signal to the process that executes the run, which is this one.
        folder.cancel()

    # In the second batch, once it has samples enough for results.
    rounds = [(RoundDone, nothing)] * FEWEST_SAMPLES
    stopped = executed(site, folder, request, [(ProgramMeasured, nothing), *rounds, (RoundDone, cancel)])
    assert stopped.state is folder.state().state is State.CANCELLED
    assert len(worker) == 1 and all_are_gone(worker)
    assert 0 < stopped.bricks.measured < stopped.bricks.measured + stopped.bricks.unfinished < BRICKS
    progress = RunProgress()
    for event in site.events(folder):
        progress.take(event)
    assert progress.done == stopped.bricks.measured
    assert progress.being_sampled == ()
    before = {(it.brick, it.context): it.samples_ms for it in site.contents().measurements}
    assert sorted({len(it) for it in before.values()})[-1] == runs

    # A process that ends before its plan has done nothing, and what was done before counts.
    assert executed(site, folder, request, [(ModelLoading, folder.cancel)]).bricks == stopped.bricks

    resumed = executed(site, folder, request)
    assert resumed.state is State.FINISHED
    assert (resumed.bricks.reused, resumed.bricks.measured) == (
        stopped.bricks.measured,
        BRICKS - stopped.bricks.measured,
    )
    whole = [it for it in site.contents().measurements if len(it.samples_ms) == runs]
    assert len({(it.brick, it.context) for it in whole}) == len(whole) == BRICKS
    for it in whole:
        so_far = before.get((it.brick, it.context), ())
        assert it.samples_ms[: len(so_far)] == so_far
    assert [event.state for event in site.events(folder) if isinstance(event, RunEnded)] == [
        "cancelled",
        "cancelled",
        "finished",
    ]
    with pytest.raises(JobError, match="nothing to cancel"):
        folder.cancel()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_the_keyboard_and_a_closed_terminal_interrupt_a_run(site: Site, number: signal.Signals) -> None:
    request = site.request(rule=RULE)
    folder = create_run(request, site.data)
    assert executed(site, folder, request, [(RoundDone, sends(number))]).state is State.INTERRUPTED


def test_a_paused_run_lets_other_runs_measure_and_no_other_process_work_on_it_and_goes_on(site: Site) -> None:
    request = site.request(rule=RULE)
    folder = create_run(request, site.data)
    theirs = []

    def go_on() -> None:
        assert folder.state().state is State.PAUSED
        with pytest.raises(JobError, match=f"process {os.getpid()} works on"), only_process(folder):
            pass
        theirs.append(turn_of(site.queue, "another", site.path))
        folder.unpause()

    def leave() -> None:
        assert folder.state().state is State.WAITING
        assert "another" in folder.state().message
        theirs[0].leave()

    state = executed(site, folder, request, [(RoundDone, folder.pause), (Paused, go_on), (Waiting, leave)])
    assert (state.state, state.bricks.measured) == (State.FINISHED, BRICKS)
    kinds = [type(event) for event in site.events(folder)]
    paused = kinds.index(Paused)
    assert kinds[paused : paused + 3] == [Paused, Waiting, Resumed]


def test_a_second_run_waits_and_names_the_first_and_can_be_cancelled(
    site: Site, workers: Callable[[], list[int]]
) -> None:
    request = site.request(rule=RULE)
    for expected in (State.FINISHED, State.CANCELLED):
        mine = turn_of(site.queue, "the-first", Path("/their/data"))
        folder = create_run(request, site.data)
        act = mine.leave if expected is State.FINISHED else sends(signal.SIGTERM)

        def wait(folder: RunFolder = folder, act: Act = act) -> None:
            state = folder.state()
            assert state.state is State.WAITING
            assert "the-first" in state.message
            assert str(os.getpid()) in state.message
            # Its models were read before, and it computes nothing meanwhile.
            assert not workers()
            told = [type(event).__name__ for event in site.events(folder)]
            assert told == ["RunStarted", "ModelLoading", "Waiting"]
            act()

        assert executed(site, folder, request, [(Waiting, wait)]).state is expected


def test_a_paused_run_can_be_cancelled_and_is_not_paused_when_it_is_resumed(site: Site) -> None:
    request = site.request(rule=RULE)
    folder = create_run(request, site.data)
    acts = [(RoundDone, folder.pause), (Paused, folder.cancel)]
    assert executed(site, folder, request, acts).state is State.CANCELLED
    assert executed(site, folder, request).state is State.FINISHED
    assert not has_told(folder, Resumed)


def test_a_process_that_resumes_a_run_waits_until_the_former_process_has_exited(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = create_run(site.request(), site.data)
    folder.set_state(replace(folder.state(), state=State.CANCELLED))
    leaving = only_process(folder)
    leaving.__enter__()
    naps: list[float] = []

    def nap(seconds: float) -> None:
        naps.append(seconds)
        leaving.__exit__(None, None, None)

    monkeypatch.setattr("dlbricks_tui.runs.control.time.sleep", nap)
    with only_process(folder):
        assert len(naps) == 1


def test_a_detached_run_outlives_its_terminal_and_its_worker_and_blames_no_program(
    site: Site, workers: Callable[[], list[int]]
) -> None:
    request = site.request(end_to_end=True, rule=RULE)
    folder = create_run(request, site.data)

    def kill() -> None:
        (worker,) = workers()
        os.kill(worker, signal.SIGKILL)

    acts: list[tuple[type[Event], Act]] = [(RoundDone, kill), (WorkerReplaced, sends(signal.SIGHUP))]
    acts += [(ProgramMeasured, kill), (WorkerReplaced, nothing)]
    state = executed(site, folder, request, acts, detached=True)
    assert (state.bricks.measured, state.bricks.failed) == (BRICKS, 0)
    assert results_told(site.events(folder)) == results_kept(site)
    assert not site.contents().failures


def test_a_run_whose_process_was_killed_reads_as_interrupted_keeps_its_results_and_is_resumed(site: Site) -> None:
    site = site.slow()
    request = site.request(end_to_end=True, rule=RULE)
    folder = create_run(request, site.data)
    process = site.start(folder)
    eventually(lambda: has_told(folder, ProgramMeasured) or process.poll() is not None)
    workers = workers_of(process.pid)
    process.kill()
    process.wait()
    state = folder.state()
    assert (state.state, state.active) == (State.INTERRUPTED, False)
    assert "killed" in state.message
    assert [it.state for it in RunFolders(site.data.runs).states()] == [State.INTERRUPTED]
    assert workers
    eventually(lambda: all_are_gone(workers))
    acknowledged = results_told(site.events(folder))
    assert acknowledged and acknowledged <= results_kept(site)
    site.hurry()
    state = executed(site, folder, request)
    assert (state.state, state.process.pid) == (State.FINISHED, this_process().pid)
    assert 0 < state.bricks.reused < state.bricks.measured + state.bricks.reused == BRICKS
    contents = site.contents()
    assert len(set(contents.measured)) == BRICKS and contents.end_to_end and not contents.failures


def test_a_detached_run_goes_on_when_its_terminal_is_closed(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in site.slow().environment.items():
        monkeypatch.setenv(name, value)
    fake = replace(FAKE, python=str(site.path.with_name("python")))
    folder = create_run(site.request(runtime=fake), site.data)
    child, terminal = pty.fork()
    if not child:
        # A process of a terminal of its own, which starts the run and stays.
        start_apart(folder, site.data)
        signal.pause()
        os._exit(0)
    eventually(lambda: folder.state().state is State.RUNNING)
    assert os.getsid(folder.state().process.pid) == folder.state().process.pid
    os.close(terminal)
    os.waitpid(child, 0)
    site.hurry()
    eventually(lambda: folder.state().state is State.FINISHED)
    assert folder.state().bricks.measured == BRICKS


@pytest.mark.soak
@pytest.mark.parametrize("victims", VICTIMS, ids="+".join)
def test_no_kill_loses_an_acknowledged_result_or_leaves_a_process_behind(
    site: Site, victims: tuple[str, ...], record_property: Callable[[str, object], None]
) -> None:
    site = Site(site.path, nap_seconds=0.005)
    results = kill_at_random(site, lambda rule: site.request(end_to_end=True, rule=rule), victims, _KILLS)
    record_property(TOLD, f"{_KILLS} kills of {' and '.join(victims)}: {results} results, none lost")
    contents = site.contents()
    assert len(set(contents.measured)) == BRICKS
    assert contents.end_to_end


@pytest.fixture
def site(tmp_path: Path) -> Site:
    """A site whose interpreter starts the fake worker whatever it is told to start."""
    fake_interpreter(tmp_path)
    return Site(tmp_path / "data")


def test_a_run_that_cannot_start_is_reported_with_the_reason(site: Site) -> None:
    folder = create_run(site.request(), site.data)
    folder.request_file.write_text("{}")
    with pytest.raises(JobError, match=rf"did not start: {re.escape(str(folder.request_file))} is no request"):
        start_apart(folder, site.data)


OLDER, NEWER = with_checksum(b'{"table":"dlbricks","format":"dlbricks 0.1"}'), sealed(line_of(head_of()), 999)


@pytest.mark.parametrize("head", [OLDER, NEWER], ids=["older", "newer"])
def test_a_store_of_another_version_is_refused_before_there_is_a_run(site: Site, head: bytes) -> None:
    journal = site.data.store / journal_name(0)
    journal.parent.mkdir(parents=True)
    journal.write_bytes(head + b"\n")
    with pytest.raises(OtherVersionError):
        create_run(site.request(), site.data)
    assert not site.data.runs.exists()
