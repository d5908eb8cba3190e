"""Every door gives the same answer for a model: one figure, one name, one age."""

import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime
from typing import Any, NamedTuple

import pytest

from dlbricks_tui.api.combinations import compare_in_steps
from dlbricks_tui.api.model_reading import estimate_library
from dlbricks_tui.api.open_models import Choices, ModelSpec, choices_from
from dlbricks_tui.api.scenarios import ScenarioOfModel, ScenarioSettings
from dlbricks_tui.api.scope import EstimateOptions
from dlbricks_tui.api.session import WorkbenchSession, options_of
from dlbricks_tui.api.store_contents import rank_systems
from dlbricks_tui.bricks.decomposition import decompose
from dlbricks_tui.cli.main import main
from dlbricks_tui.config.config import Config, Given
from dlbricks_tui.documents.analysis import AnalysisDocument
from dlbricks_tui.estimate.system_estimate import SystemEstimate
from dlbricks_tui.folders import SAMPLE_MODELS, DataFolder
from dlbricks_tui.host.fingerprint import fingerprint
from dlbricks_tui.jobs.folder import State
from dlbricks_tui.models.graph import Level
from dlbricks_tui.models.loading import Loader
from dlbricks_tui.runtime.registry import Registry
from dlbricks_tui.runtime.traits import Format
from dlbricks_tui.scenarios import predicting
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.tui.analysis import analyse
from dlbricks_tui.tui.scenario import predict_scenario
from dlbricks_tui.tui.workbench.work import OpenModel, estimate_model, read_model
from dlbricks_tui.wording.answers import combination_words, figure_number
from tests.estimate.simulated import lawful_records
from tests.estimate.stored import brick_records, model_record
from tests.models.table_framework import TableFramework
from tests.runs.live_runs import in_the_middle, put_run, started
from tests.store.samples import runtime
from tests.tui.application import MEASURED_ONLY, WRITTEN
from tests.tui.results import ONE_THREAD, OTHER_SYSTEM, graph_of, source_called, store_run

MODEL = "squeezenet1.1"
ONNX = "onnxruntime-1.32.0 python-3.11 threads-2"


class Told(NamedTuple):
    """The answer of one door: the figure in milliseconds, the name of the combination, and the age of its results."""

    figure: str
    name: str
    since: float | None


def told(one: SystemEstimate | None) -> Told:
    if one is None or one.figure is None:
        return Told("", "", None)
    between = one.figure.between
    return Told(figure_number(one), combination_words(one), None if between is None else between[0])


def by_onnx_runtime(data: DataFolder, latency_ms: float) -> None:
    """The model timed and its bricks measured by ONNX Runtime, which reads the model's other file."""
    source = source_called(MODEL).in_format(Format.ONNX)
    found = decompose(Loader(data.cache, TableFramework()).load(source, Level.WRITTEN).named(MODEL))
    where: dict[str, Any] = {"system": fingerprint().id, "runtime": ONNX}
    with ResultsDatabase(data.store) as store:
        store.add(
            fingerprint(),
            runtime(ONNX, framework="onnxruntime"),
            *brick_records(found, **where),
            model_record(found, latency_ms, **where),
        )


def nothing(data: DataFolder) -> Choices:
    return MEASURED_ONLY


def predicted(data: DataFolder) -> Choices:
    store_run(data, ["resnet18_v1"])
    return WRITTEN


def partial(data: DataFolder) -> Choices:
    store_run(data, [MODEL], share=0.7, end_to_end=False)
    return WRITTEN


@pytest.fixture(scope="module")
def several(tmp_path_factory: pytest.TempPathFactory) -> DataFolder:
    """Results of the model by several combinations."""
    data = DataFolder(tmp_path_factory.mktemp("several"))
    store_run(data, [MODEL])
    store_run(data, [MODEL], runtime=ONE_THREAD, factor=3.0)
    by_onnx_runtime(data, 1.5)
    return data


def stale(data: DataFolder) -> Choices:
    """A run of another combination has just begun to store results."""
    store_run(data, [MODEL])
    store_run(data, [MODEL], runtime=ONE_THREAD, factor=0.5, share=0.3, end_to_end=False)
    return WRITTEN


def other_system(data: DataFolder) -> Choices:
    return replace(WRITTEN, system=OTHER_SYSTEM.id)


def running(data: DataFolder) -> Choices:
    """One run measures and another one waits: what is stored counts."""
    put_run(data, in_the_middle(), run="20261120-080000-0001")
    put_run(data, [started()], state=State.RUNNING)
    return WRITTEN


def chosen(data: DataFolder) -> Choices:
    return replace(WRITTEN, threads=1)


STATES: dict[Callable[[DataFolder], Choices], tuple[str, str]] = {
    nothing: ("", ""),
    predicted: ("~", "MXNet, 2 threads, batch 1"),
    partial: ("~", "MXNet, 2 threads, batch 1"),
    stale: ("15.66", "MXNet, 2 threads, batch 1"),
    other_system: ("31.31", "MXNet, 2 threads, batch 1"),
    running: ("1.5", "ONNX Runtime, 2 threads, batch 1"),
    chosen: ("4", "MXNet, 1 thread, batch 1"),
}


def home(session: WorkbenchSession, spec: ModelSpec, choices: Choices) -> Told:
    ((_, latency),) = estimate_library(session, [spec], choices)
    if latency is None or not latency.figure:
        return Told("", "", None)
    return Told(latency.figure, latency.combination, latency.since)


def panel(session: WorkbenchSession, spec: ModelSpec, choices: Choices) -> Told:
    opened = read_model(session, spec, choices)
    assert isinstance(opened, OpenModel)
    return told(estimate_model(session, spec, opened, choices, refresh=True, own_models=0).view.document.one)


def comparison(session: WorkbenchSession, spec: ModelSpec, choices: Choices) -> Told:
    ranking = next(compare_in_steps(spec, choices, session.data, lambda: True))
    if choices.threads is not None:
        # The comparison shows all numbers of threads.
        found = [it for it in ranking.combinations if it.point.threads == choices.threads]
        return told(found[0].point.found)
    return told((ranking.answer or ranking.combinations[0]).point.found)


def analysis(session: WorkbenchSession, spec: ModelSpec, choices: Choices) -> Told:
    view = analyse(session, spec, choices, Config())
    assert isinstance(view, AnalysisDocument)
    # The row of a report has the same latency.
    figure = view.found.baseline.found.figure
    if figure is not None:
        assert view.found.latency_ms == figure.latency.value_ms
    return told(view.found.baseline.found)


def load(session: WorkbenchSession, spec: ModelSpec, choices: Choices) -> Told:
    view = predict_scenario(session, spec, choices, Config(), ScenarioSettings(bound_ms=1000.0))
    assert isinstance(view, ScenarioOfModel)
    (found,) = view.results
    return told(found)


def systems(session: WorkbenchSession, spec: ModelSpec, choices: Choices) -> Told:
    wanted = choices.system or fingerprint().id
    found = rank_systems(spec.source, options_of(spec, choices, Config()), session.data)
    return told(next((it.estimate for it in found if it.estimate.way.system == wanted), None))


# These begin with the results of several combinations.
OF_SEVERAL = (other_system, running, chosen)
DOORS = (home, panel, comparison, analysis, load, systems)


def on_command_line(data: DataFolder, choices: Choices, capsys: pytest.CaptureFixture[str]) -> Iterator[Told]:
    """Yield the answers of the commands, from their JSON documents."""
    options = ["--level", "written"]
    options += [] if choices.system is None else ["--system", choices.system]
    options += [] if choices.threads is None else ["--threads", str(choices.threads)]
    first = ["--data-dir", str(data.path), "--set", f"estimate.predictions={choices.predictions.value}"]
    main([*first, "estimate", MODEL, "--json", *options])
    (document,) = json.loads(capsys.readouterr().out)
    answer = document["answer"]
    if answer is None:
        yield Told("", "", None)
    else:
        measured = answer["measured"]
        when = None if measured is None else datetime.fromisoformat(measured[0]).timestamp()
        yield Told(f"{answer['latency_ms']:.6g}", document["runtime"], when)
    main([*first, "analyze", MODEL, "--json", *options])
    (document,) = json.loads(capsys.readouterr().out)
    latency_ms = document["sequential_ms"] if document["measured_ms"] is None else document["measured_ms"]
    yield Told("" if latency_ms is None else f"{latency_ms:.6g}", document["runtime"], None)


@pytest.mark.usefixtures("rough_predictions")
@pytest.mark.parametrize(
    "state",
    # MXNet reads the model's first file where no runtime has results of another one.
    [pytest.param(it, marks=[pytest.mark.mxnet, pytest.mark.soak] if it is nothing else []) for it in STATES],
    ids=lambda it: it.__name__,
)
def test_every_door_gives_one_answer(
    state: Callable[[DataFolder], Choices],
    new: DataFolder,
    several: DataFolder,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # The latency counts here, not the load that it can serve.
    monkeypatch.setattr(predicting, "_TESTS", 2)
    if state in OF_SEVERAL:
        shutil.copytree(several.path, new.path)
    choices = state(new)
    figure, name = STATES[state]
    session = WorkbenchSession(new, SAMPLE_MODELS)
    source = source_called(MODEL)
    spec = ModelSpec(source, choices.level, choices.cutting)
    found = {door.__name__: door(session, spec, choices) for door in DOORS}
    answer = session.estimator.answer(
        source, choices, lambda it: session.reader.decompose_model(spec.read_as(it))
    ).found
    session.close()
    if state is predicted:
        # Systems are compared only where one of them has measured the model.
        assert found.pop("systems") == Told("", "", None)
    assert set(found.values()) == {found["home"]}, found
    assert found["home"].figure.startswith(figure) and bool(found["home"].figure) is bool(figure)
    assert found["home"].name == name
    shown = "" if answer.figure is None else f"{answer.figure.latency.value_ms:.6g}"
    for number, printed in enumerate(on_command_line(new, choices, capsys)):
        assert printed.figure == shown
        if shown:
            assert printed.name == answer.way.runtime
        if number == 0:
            assert printed.since == found["home"].since


@pytest.mark.openvino
def test_the_runtime_and_threads_of_the_settings_count_at_every_door(new: DataFolder) -> None:
    config = Config({**Config().given, "run.runtime": Given("openvino"), "run.threads": Given(1)})
    choices, session = choices_from(config, new), WorkbenchSession(new, SAMPLE_MODELS)
    spec = ModelSpec(source_called("tabular_network"), choices.level, choices.cutting)
    found = {door.__name__: door(session, spec, choices) for door in (panel, analysis)}
    session.close()
    assert set(found.values()) == {found["panel"]} and found["panel"].name == "OpenVINO, 1 thread, batch 1"


def test_models_are_scored_by_the_usual_runtime_at_every_door(new: DataFolder) -> None:
    system, choices = fingerprint().id, WRITTEN
    usual = Registry(new.path).default()
    with ResultsDatabase(new.store) as store:
        for model in map(graph_of, (MODEL, "resnet18_v1")):
            store.add(runtime(usual.identity), *lawful_records(decompose(model), runtime=usual.identity, system=system))
            # The newest results are of another number of threads.
            other = runtime(usual.with_threads(7).identity)
            store.add(
                other,
                *brick_records(decompose(model), runtime=other.id, when="2026-11-29T08:00:00+00:00", system=system),
            )
    session, sources = WorkbenchSession(new, SAMPLE_MODELS), [source_called(MODEL)]
    with session.open_estimator(EstimateOptions(level=Level.WRITTEN)) as estimator:
        ((way, score),) = estimator.scores(sources, estimator.scope_of(sources))
    assert way.runtime == usual.identity
    assert session.scores([ModelSpec(it, choices.level, choices.cutting) for it in sources], choices) == (score,)
    session.close()
