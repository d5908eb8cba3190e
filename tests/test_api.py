"""The public API, on stored results and on runs of the fake worker."""

import asyncio
import json
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib import metadata
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import pytest

import dlbricks_tui
from dlbricks_tui import api
from dlbricks_tui.api import public
from dlbricks_tui.fleet import driver as running
from dlbricks_tui.fleet.driver import FleetPlace
from dlbricks_tui.fleet.folder import FleetFolder
from dlbricks_tui.host.queue import HOST_LOCK_VARIABLE
from dlbricks_tui.jobs.events import Event
from dlbricks_tui.jobs.folder import JobState
from dlbricks_tui.language.opening import NamedModel
from dlbricks_tui.language.orders import LanguageMessage, LanguageOrder
from tests.api.language_answers import ENGINE, answer, predicted
from tests.cli.people import hurry
from tests.fleet.sample_fleet import EVENTS, tell
from tests.jobs.carrying import stands_for_processes
from tests.runs.runs import BRICKS, MODEL, move_results

pytestmark = pytest.mark.usefixtures("rough_predictions", "shared_cache")

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "reference" / "api.md"
BY_THE_FAKE = api.MeasureOptions(runtime="fake", level=api.Level.WRITTEN, end_to_end=True)


class OneRun(NamedTuple):
    """A data folder with a run, its result, and the progress that it told."""

    data: Path
    run: api.RunResult
    told: list[api.Progress]


@pytest.fixture(autouse=True)
def _in_a_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    hurry(monkeypatch)


@pytest.fixture
def data(data_with_fake: Path) -> Path:
    """A data folder whose usual runtime is the fake worker."""
    return data_with_fake


@pytest.fixture(scope="module")
def one_run(tmp_path_factory: pytest.TempPathFactory, registered_fake: bytes, _cache: Path) -> OneRun:
    """A run of the usual model in a data folder, and what it told."""
    folder, told = tmp_path_factory.mktemp("measured"), list[api.Progress]()
    (folder / "runtimes.json").write_bytes(registered_fake)
    (folder / "cache").symlink_to(_cache)
    with pytest.MonkeyPatch.context() as patch:
        hurry(patch)
        patch.setenv(HOST_LOCK_VARIABLE, str(folder / "host.lock"))
        return OneRun(folder, api.measure(MODEL, BY_THE_FAKE, progress=told.append, data=folder), told)


@pytest.fixture
def measured(data: Path, one_run: OneRun) -> api.RunResult:
    """The run, in the data folder of this test."""
    for name in ("store", "runs"):
        shutil.copytree(one_run.data / name, data / name)
    return one_run.run


def test_a_model_is_loaded_as_its_layers(data: Path) -> None:
    graph = api.load(MODEL, data=data)
    assert (graph.name, graph.level, len(graph.layers)) == (MODEL, api.Level.WRITTEN, 21)


def test_a_run_measures_a_model_and_reports_its_progress(one_run: OneRun) -> None:
    _, run, told = one_run
    assert (run.state, run.bricks.run, run.end_to_end.run) == (api.State.FINISHED, BRICKS, 1)
    (model,) = run.models
    assert model.complete
    assert model.sequential_ms
    assert model.measured_ms
    last = told[-1]
    assert (last.run, last.state, last.done, last.total) == (run.run, api.State.FINISHED, BRICKS + 1, BRICKS + 1)
    notes = [it.note for it in told if it.note]
    assert any(note.startswith(f"{BRICKS} bricks: 0 known, {BRICKS} to measure") for note in notes)


def test_an_estimate_from_the_store_equals_that_of_the_run(data: Path, measured: api.RunResult) -> None:
    options = api.EstimateOptions(runtime="fake", level=api.Level.WRITTEN)
    assert api.estimate(MODEL, options, data=data) == measured.models[0]
    assert api.estimate(MODEL, api.EstimateOptions(runtime="fake", workers=2), data=data).workers_ms is not None


def test_stored_results_are_selected_by_the_filters_of_the_command_line(data: Path, measured: api.RunResult) -> None:
    with api.open_results(data) as results:
        (system,), (runtime,) = results.systems(), results.runtimes()
        bricks = results.select("of=brick", f"system={system.id}", order=("ms",))
        assert len({it.brick for it in bricks}) == BRICKS
        assert {it.runtime for it in bricks} == {runtime.id}
        assert [it.trimmed_mean_ms for it in bricks] == sorted(it.trimmed_mean_ms for it in bricks)
        assert len(results.samples_ms(bricks[0])) == bricks[0].samples
        with pytest.raises(api.StoreError, match="no column"):
            results.select("nonsense=1")


def test_impossible_requests_raise_errors_of_one_family(data: Path) -> None:
    with pytest.raises(api.ModelError, match="no model 'nonsense'"):
        api.load("nonsense", data=data)
    with pytest.raises(api.ModelError, match="50 models"):
        api.estimate("table1", data=data)
    with pytest.raises(api.EstimateError, match="workers 0"):
        api.EstimateOptions(workers=0)
    with pytest.raises(api.JobError, match="name a model to measure"):
        api.measure([], data=data)
    with pytest.raises(api.JobError, match="granularity 0"):
        api.MeasureOptions(granularity=0)
    with pytest.raises(api.JobError, match="precision 'int9': give one of f32, bf16, int8, file"):
        api.MeasureOptions(precision=("f32", "int9"))  # type: ignore[arg-type]
    with pytest.raises(api.FleetError, match="question 'all': give one of everything, which-host"):
        api.FleetOptions(question="all")  # type: ignore[arg-type]
    with pytest.raises(api.ModelError, match="level 'fuzed': give one of written, fused"):
        api.load(MODEL, level="fuzed", data=data)  # type: ignore[arg-type]
    with pytest.raises(api.TraceError, match="format 'svg': give one of perfetto, chrome"):
        api.trace(MODEL, file=data / "trace", format="svg", data=data)  # type: ignore[arg-type]
    with pytest.raises(api.UserError, match="no system"):
        api.estimate(MODEL, api.EstimateOptions(system="nowhere"), data=data)


def test_options_take_members_of_enumerations_by_their_values_too() -> None:
    # An offline scenario by its word was answered without batches.
    offline = api.ScenarioOptions(kind=api.ScenarioKind.OFFLINE)
    assert api.ScenarioOptions(kind="offline").kind is offline.kind  # type: ignore[arg-type]
    by_words = api.MeasureOptions(precision=["f32", "int8"], method="inside")  # type: ignore[arg-type,list-item]
    assert by_words.method is api.Method.INSIDE and by_words.precision == (api.Precision.F32, api.Precision.INT8)
    assert api.LanguageOptions(precisions="int8").precisions == (api.WeightPrecision.INT8,)  # type: ignore[arg-type]


def test_a_run_refuses_a_thread_that_gets_no_signals(data: Path) -> None:
    refused: list[str] = []

    def try_it() -> None:
        try:
            api.measure(MODEL, BY_THE_FAKE, data=data)
        except api.JobError as error:
            refused.append(str(error))

    thread = threading.Thread(target=try_it)
    thread.start()
    thread.join()
    assert "main thread" in refused[0]


def test_a_probe_measures_few_bricks_and_predicts_the_others_from_another_system(data: Path) -> None:
    with pytest.raises(api.JobError, match="no results of another system"):
        api.probe(MODEL, api.ProbeOptions(runtime="fake"), data=data)
    alone = replace(BY_THE_FAKE, method=api.Method.ALONE, end_to_end=False, fixed_runs=5)
    assert api.measure(MODEL, alone, data=data).state is api.State.FINISHED
    move_results(data / "store", "c5.xlarge")
    told: list[api.Progress] = []
    # Without models, all that were measured on any system.
    found = api.probe(options=api.ProbeOptions(runtime="fake", bricks=6), progress=told.append, data=data)
    assert (found.state, found.bricks, found.known_systems) == (api.State.FINISHED, 6, ("c5.xlarge",))
    assert told[-1].run == found.run
    (model,) = found.models
    assert (model.model, model.coverage.measured + model.coverage.predicted) == (MODEL, 21)


def test_combinations_of_a_model_are_compared(data: Path, measured: api.RunResult) -> None:
    found = api.compare(MODEL, api.CompareOptions(runtime="fake", level=api.Level.WRITTEN, threads=(1, 2)), data=data)
    assert found.model == MODEL
    assert {it.threads for it in found.combinations} == {1, 2}
    everything = api.compare(MODEL, data=data)
    (best,) = everything.combinations
    assert (best.best, best.level, best.verdict, best.command) == (True, api.Level.WRITTEN, None, None)
    assert best.measured_ms
    assert best.per_second == pytest.approx(1000 / best.measured_ms)


def test_the_package_shows_its_api_and_loads_it_on_first_use() -> None:
    assert "api" in dir(dlbricks_tui) and dir(api) == sorted(vars(public)["__all__"])
    namespace: dict[str, object] = {}
    exec("from dlbricks_tui.api import *", namespace)
    assert namespace["estimate"] is api.estimate
    first = "import sys, dlbricks_tui; before = set(sys.modules); dlbricks_tui.api"
    # Commands ask a session, whose questions about models are loaded when one is asked.
    session = f"{first}; from dlbricks_tui.api.session import Session; s = Session('/'); before |= set(sys.modules)"
    for code in (first, f"{session}; s.load"):
        shown = subprocess.run(
            [sys.executable, "-c", f"{code}; print('numpy' in before)"],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        )
        assert shown.stdout == "False\n"


def test_the_api_page_names_every_function_and_its_example_runs(
    data: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    page = PAGE.read_text(encoding="utf-8")
    assert {
        name for name in vars(public)["__all__"] if f"\n### {name}\n" not in page and f"| `{name}` |" not in page
    } == set()
    example, *_ = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
    # Without a framework of our own, the usual runtime is the fake one.
    monkeypatch.setattr(metadata, "version", gone)
    capsys.readouterr()
    exec(compile(example, str(PAGE), "exec"), {"__name__": "example"})
    out = capsys.readouterr().out
    assert f"{MODEL}: " in out


def test_a_scenario_is_predicted_from_the_store_and_measured_where_that_is_asked_for(
    data: Path, measured: api.RunResult, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = api.ScenarioOptions(kind=api.ScenarioKind.SERVER, bound_ms=500.0)
    by_the_fake = api.EstimateOptions(runtime="fake", level=api.Level.WRITTEN)
    predicted = api.scenario(MODEL, asked, by_the_fake, data=data)
    assert predicted.predicted is not None
    assert predicted.predicted.valid
    assert predicted.measured is None
    fake = ROOT / "tests" / "jobs" / "pretending.py"
    stands_for_processes(monkeypatch, fake, "scenario", manner="done")
    monkeypatch.setitem(sys.modules, "mlperf_loadgen", ModuleType("mlperf_loadgen"))
    told: list[str] = []

    async def in_a_notebook() -> api.ScenarioResult:
        # An event loop runs in this thread.
        return api.scenario(MODEL, asked, by_the_fake, measure=True, progress=told.append, data=data)

    both = asyncio.run(in_a_notebook())
    assert both.predicted == predicted.predicted
    assert both.measured is not None
    assert both.measured.valid
    assert both.difference is not None
    assert told[0] == "waiting for another run"
    with pytest.raises(api.ScenarioError, match="rate"):
        api.ScenarioOptions(kind=api.ScenarioKind.SINGLE, rate=10.0)


@pytest.mark.usefixtures("without_mxnet")
def test_an_evaluation_is_written_from_a_run_and_carried_out(
    data: Path, measured: api.RunResult, tmp_path: Path
) -> None:
    run = measured
    file = tmp_path / "alexnet.toml"
    written = api.evaluation_of(run.run, file, data=data)
    assert [it.name for it in written.models] == [MODEL]
    found = api.evaluate(file, data=data)
    assert not found.refused
    assert all(it.matches for it in found.same)
    (result,) = found.results
    assert (result.model, result.run, result.unmet) == (MODEL, run.run if result.measured_ms else None, ())
    assert result.estimate_ms == pytest.approx(run.models[0].sequential_ms)
    again = api.evaluate(file, api.EvaluateOptions(compare=True, processes=1), data=data)
    assert [it.verdict.value for it in again.comparison or ()] == ["same"]
    with pytest.raises(api.EvaluationError, match="does not exist"):
        api.evaluate(tmp_path / "missing.toml", data=data)


def test_a_model_is_traced_and_written_for_another_program(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = ROOT / "tests" / "jobs" / "pretending.py"
    stands_for_processes(monkeypatch, fake, "trace", manner="done")
    told: list[str] = []
    options = api.TraceOptions(runtime="fake", levels=(api.TraceLevel.LAYER, api.TraceLevel.MODEL), inferences=2)
    file = tmp_path / "trace.json"
    found = api.trace(MODEL, options, file=file, format=api.TraceFormat.CHROME, progress=told.append, data=data)
    assert (found.model, found.file, found.format) == (MODEL, file, api.TraceFormat.CHROME)
    assert [(it.level.value, it.overhead_ms) for it in found.levels] == [("model", None), ("layer", 0.2)]
    assert json.loads(file.read_bytes())["traceEvents"]
    assert told == [
        "waiting for another run",
        "round 1 of 2",
        "round 2 of 2",
        "model level: 1.000 ms per inference",
        "layer level: 1.200 ms per inference, +0.2000 ms",
    ]
    with pytest.raises(api.TraceError, match="inferences 0"):
        api.TraceOptions(inferences=0)


def test_a_language_model_is_answered_from_the_store_or_measured(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    orders: list[LanguageOrder] = []

    def stored(models: Sequence[NamedModel], *_: object) -> tuple[api.LanguageAnswer, ...]:
        if not orders:
            return tuple(predicted(model=it.name) for it in models)
        return (answer(measured=ENGINE if orders.pop().end_to_end else None),)

    def measured(order: LanguageOrder, _: object, take: Callable[[Event], None]) -> None:
        orders.append(order)
        take(LanguageMessage(f"{order.models[0]}, {order.questions[0].precision.value}: measuring"))

    monkeypatch.setattr("dlbricks_tui.api.language_models.stored_answers", stored)
    monkeypatch.setattr("dlbricks_tui.api.language_models.measure", measured)
    found = api.language(["llama-3.2-1b", "smollm2-135m"], measure=False, data=data)
    assert [(it.model, it.is_predicted) for it in found] == [("llama-3.2-1b", True), ("smollm2-135m", True)]
    told: list[str] = []
    (one,) = api.language("llama-3.2-1b", end_to_end=True, progress=told.append, data=data)
    assert (one.measured, told) == (ENGINE, ["llama-3.2-1b, int4: measuring"])
    assert api.language("llama-3.2-1b", data=data) == (answer(),)
    with pytest.raises(api.LanguageError, match="nonsense"):
        api.language("nonsense", data=data)
    with pytest.raises(api.LanguageError, match="8,192 tokens"):
        api.language("smollm2-135m", api.LanguageOptions(prompt=8192), data=data)
    wrong: tuple[dict[str, Any], ...] = ({"prompt": 0}, {"generate": 1 << 30}, {"threads": (0,)}, {"precisions": ()})
    for options in wrong:
        with pytest.raises(api.LanguageError):
            api.LanguageOptions(**options)


def test_a_fleet_run_reports_all_hosts_together_and_can_be_looked_at_later(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hosts = tmp_path / "hosts.toml"
    hosts.write_text('[[host]]\nname = "c7i"\n\n[[host]]\nname = "m8g"\n')

    def drive(folder: FleetFolder, _: FleetPlace, take: Callable[[Event], None]) -> JobState:
        tell(folder, *EVENTS)
        for event in EVENTS:
            take(event)
        folder.set_state(replace(folder.state(), state=api.State.FINISHED))
        return folder.state()

    monkeypatch.setattr(running, "execute_fleet", drive)
    told: list[api.Progress] = []
    options = api.FleetOptions(hosts=hosts, question=api.FleetQuestion.WHICH_HOST, measuring=BY_THE_FAKE)
    found = api.fleet(MODEL, options, progress=told.append, data=data)
    assert (told[-1].run, told[-1].done, told[-1].total, told[-1].seconds_left) == (found.fleet, 57, 120, 42.0)
    assert "old refused: it has dlbricks 0.1.0, and 0.2.0 is needed" in [it.note for it in told]
    assert [model.order for model in found.models] == [(("m8g",), ("c7i",)), (("c7i",), ("m8g",))]
    assert found.has_failures, "a host was refused"
    assert api.fleet_status(data=data) == api.fleet_status(found.fleet, data=data) == found
    with pytest.raises(api.FleetError, match="either a hosts file"):
        api.fleet(MODEL, api.FleetOptions(), data=data)


def test_a_session_answers_all_questions_about_one_data_folder(data: Path, measured: api.RunResult) -> None:
    session = api.Session(data)
    options = api.EstimateOptions(runtime="fake", level=api.Level.WRITTEN)
    assert session.estimate(MODEL, options) == measured.models[0] == api.estimate(MODEL, options, data=session)
    assert session.load(MODEL).name == MODEL and not hasattr(session, "nonsense")
    with session.results() as results:
        assert len(results.systems()) == 1
