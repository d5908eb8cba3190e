import json
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlbricks_tui.bricks.cutting import Cut, LayerOrder
from dlbricks_tui.bricks.decomposition import Cutting
from dlbricks_tui.folders import SAMPLE_MODELS
from dlbricks_tui.jobs.errors import JobError
from dlbricks_tui.jobs.folder import store_request
from dlbricks_tui.measure.method import Method
from dlbricks_tui.measure.stopping import Adaptive, FixedRuns
from dlbricks_tui.measure.supervised_worker import TimeLimits
from dlbricks_tui.models.graph import Level
from dlbricks_tui.models.library import Library
from dlbricks_tui.recorded_host import processors_here
from dlbricks_tui.runs.request import InputShape, ModelChoice, RunRequest, RuntimeChoice, read_request
from dlbricks_tui.runtime.runtime import Runtime, Settings
from dlbricks_tui.runtime.variant import Precision

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
    store_request(path, request_kept)
    assert read_request(path) == request_kept


def test_a_request_from_before_there_were_variants_is_read(tmp_path: Path) -> None:
    path = tmp_path / "request.json"
    asked = RunRequest(models=(), runtime=Runtime("r", sys.executable, "mxnet", "1", "3"))
    store_request(path, asked)
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
