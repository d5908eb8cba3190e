import errno
import json
import os
import re
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlbricks_tui.bricks.cutting import Cut, LayerOrder
from dlbricks_tui.bricks.decomposition import Cutting
from dlbricks_tui.cli.main import main
from dlbricks_tui.folders import SAMPLE_MODELS, DataFolder
from dlbricks_tui.host.queue import ProcessIdentity
from dlbricks_tui.jobs.errors import JobError, UnreadableJobError
from dlbricks_tui.jobs.folder import ACTIVE, RunFolder, RunFolders, State
from dlbricks_tui.measure.method import Method
from dlbricks_tui.measure.stopping import Adaptive, FixedRuns
from dlbricks_tui.measure.supervised_worker import TimeLimits
from dlbricks_tui.models.graph import Level
from dlbricks_tui.models.library import Library
from dlbricks_tui.recorded_host import processors_here
from dlbricks_tui.runs.request import InputShape, ModelChoice, RunRequest, RuntimeChoice, read_request, write_request
from dlbricks_tui.runtime.runtime import Runtime, Settings
from dlbricks_tui.runtime.variant import Precision
from tests.attack.damage import WAYS

models = st.lists(st.builds(ModelChoice, st.text(), st.sampled_from([Path("/a"), Path("/b c")]))).map(tuple)
runtimes = st.builds(
    Runtime,
    st.text(),
    st.text(),
    st.text(),
    st.text(),
    st.text(),
    st.builds(
        Settings,
        st.none() | st.integers(1, 64),
        st.lists(st.tuples(st.text(), st.text())).map(tuple),
        precision=st.sampled_from(Precision),
    ),
)
requests = st.builds(
    RunRequest,
    models=models,
    runtime=runtimes,
    others=st.lists(st.builds(RuntimeChoice, runtimes, models, st.sampled_from(Method)), max_size=2).map(tuple),
    batch_sizes=st.lists(st.integers(1, 2**31)).map(tuple),
    inputs=st.lists(st.builds(InputShape, st.text(), st.lists(st.integers(1, 9)).map(tuple))).map(tuple),
    level=st.sampled_from(Level),
    cutting=st.builds(Cutting, st.integers(1, 10), st.sampled_from(Cut), st.sampled_from(LayerOrder)),
    rule=st.builds(FixedRuns, st.integers(1, 200)) | st.builds(Adaptive, st.floats(0.001, 0.5)),
    time_budget_seconds=st.none() | st.floats(0.1, 1e6),
    end_to_end=st.booleans(),
    retry_failed=st.booleans(),
    again=st.booleans(),
    time_limits=st.builds(TimeLimits, st.floats(0.1, 100), st.floats(0.1, 100)),
    memory_limit_bytes=st.none() | st.integers(1, 2**40),
    evaluation=st.text(),
    unmet=st.lists(st.text()).map(tuple),
    target=st.none() | st.floats(0.01, 0.5),
    probe_bricks=st.none() | st.integers(1, 50),
    bricks=st.booleans(),
)


@given(requests)
def test_a_request_survives_a_round_trip(tmp_path_factory: pytest.TempPathFactory, request_kept: RunRequest) -> None:
    path = tmp_path_factory.mktemp("run") / "request.json"
    write_request(path, request_kept)
    assert read_request(path) == request_kept


def test_a_request_from_before_there_were_variants_is_read(tmp_path: Path) -> None:
    path = tmp_path / "request.json"
    asked = RunRequest(models=(), runtime=Runtime("r", sys.executable, "mxnet", "1", "3"))
    write_request(path, asked)
    document = json.loads(path.read_text())
    for name in ("others", "batch_sizes", "values", "evaluation", "unmet"):
        del document[name]
    # A field that only earlier versions have.
    document["calibration"] = "once"
    del document["runtime"]["settings"]["precision"]
    path.write_text(json.dumps(document))
    # The framework decided about the number of threads.
    assert read_request(path) == asked.with_runtimes(lambda runtime: runtime.on(processors_here()))


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"schema": 99}'])
def test_a_file_that_is_not_a_request_is_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "request.json"
    path.write_text(content)
    with pytest.raises(JobError, match="start a new run"):
        read_request(path)


def test_a_request_uses_the_librarys_facts_about_its_models(tmp_path: Path) -> None:
    library = Library(SAMPLE_MODELS, tmp_path)
    (known,) = library.find("alexnet")
    elsewhere = ModelChoice("mine", tmp_path / "mine-symbol.json")
    runtime = Runtime("r", sys.executable, "mxnet", "1", "3")
    asked = RunRequest(models=(ModelChoice(known.name, known.path), elsewhere), runtime=runtime)
    found = asked.sources(library)
    assert found[0] == known
    assert (found[1].name, found[1].path, found[1].types) == (*elsewhere, None)


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


def test_an_unreadable_state_is_reported_with_its_file(tmp_path: Path) -> None:
    folder = RunFolders(tmp_path).create(("a",))
    (folder.path / "state.json").write_text(json.dumps({"run": 1}))
    with pytest.raises(JobError, match=r"state\.json"):
        folder.state()
    with pytest.raises(JobError, match="there is no run"):
        RunFolder(tmp_path / "gone").state()
