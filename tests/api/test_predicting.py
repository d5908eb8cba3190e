from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from onnx import ModelProto
from onnx.helper import make_node

from dlbricks_tui.api.estimating import Estimator, open_estimator
from dlbricks_tui.api.opening import library
from dlbricks_tui.api.scenarios import ScenarioAnswer, ScenarioOptions, scenario_answer
from dlbricks_tui.api.scope import EstimateOptions
from dlbricks_tui.bricks.decomposition import Decomposition, decompose
from dlbricks_tui.bricks.identity import whole_model
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.models.graph import Level
from dlbricks_tui.models.library import ModelSource, source_of
from dlbricks_tui.scenarios.kinds import ScenarioKind
from dlbricks_tui.scenarios.predicting import ServiceSource
from dlbricks_tui.scenarios.scenario import ScenarioError
from dlbricks_tui.store.records import EndToEnd, LoadTest, Record
from tests.estimate.stored import brick_records, model_record, store_of
from tests.estimate.table1 import table1
from tests.models.onnx_models import floats, loaded, model, saved
from tests.store.samples import load_test, runtime, system

IDENTITY = "onnxruntime-1.32.0 python-3.11 threads-1"
WHERE: dict[str, Any] = {"system": "c5.xlarge", "runtime": IDENTITY}
# Tests of the usual percentile, 99, take ten times as many requests.
SERVER = ScenarioOptions(kind=ScenarioKind.SERVER, bound_ms=200.0, percentile=90.0)

Ask = Callable[..., ScenarioAnswer]


@pytest.fixture(autouse=True)
def _very_rough_predictions(monkeypatch: pytest.MonkeyPatch) -> None:
    # Which results count is told here, and no rate.
    for name in ("_TESTS", "_TESTS_IN_BATCHES", "_FEWEST_TESTS"):
        monkeypatch.setattr(f"dlbricks_tui.scenarios.predicting.{name}", 5)


def of_rows(rows: int | str) -> ModelProto:
    """A matrix product and a relu, for inputs with that many rows."""
    nodes = [make_node("MatMul", ["x", "u"], ["up"]), make_node("Relu", ["up"], ["y"])]
    return model(nodes, {"x": (rows, 16)}, ["y"], [floats("u", (16, 64))])


def of_batch(size: int) -> Decomposition:
    """The model of these tests at a batch size."""
    with TemporaryDirectory() as folder:
        return decompose(loaded(Path(folder), of_rows(size)))


NET = of_batch(1)
MEASURED = brick_records(NET, **WHERE)


def end_to_end(value_ms: float, batch_size: int = 1, **fields: Any) -> EndToEnd:
    """The whole model timed, with samples around its latency."""
    samples = tuple(value_ms * (0.99 + number / 1000) for number in range(21))
    decomposition = NET if batch_size == 1 else of_batch(batch_size)
    return model_record(decomposition, value_ms, samples_ms=samples, batch_size=batch_size, **WHERE, **fields)


def scenario_test(**fields: Any) -> LoadTest:
    """A load test of the scenario."""
    asked = {"model": whole_model(NET.graph).key, "level": Level.WRITTEN, "bound_ms": 200.0, "percentile": 90.0}
    return load_test(**{**WHERE, **asked, **fields})


@pytest.fixture
def ask(tmp_path: Path) -> Ask:
    """Return the answer for a model from these records, and those of earlier calls."""

    def answer(
        records: Sequence[Record], options: ScenarioOptions = SERVER, model: str = "", **changed: Any
    ) -> ScenarioAnswer:
        described: list[Record] = [system("c5.xlarge"), runtime(IDENTITY, framework="onnxruntime")]
        store_of(tmp_path / "data" / "store", *described, *records).close()
        with opened(tmp_path, **changed) as estimator:
            return scenario_answer(estimator, found(tmp_path, model), options)

    return answer


@contextmanager
def opened(tmp_path: Path, **changed: Any) -> Iterator[Estimator]:
    """The estimator of these tests."""
    options = EstimateOptions(**{"system": "c5.xlarge", "runtime": IDENTITY, **changed})
    with open_estimator(options, DataFolder(tmp_path / "data")) as estimator:
        yield estimator


def found(tmp_path: Path, sample: str) -> ModelSource:
    """A sample by its name, or else the model of these tests, whose file leaves the batch size open."""
    if not sample:
        return source_of(saved(tmp_path, of_rows("batch")))
    (source,) = library(DataFolder(tmp_path / "data")).find(sample)
    return source


def test_end_to_end_samples_are_the_service_times_and_a_load_test_says_what_passing_a_request_costs(ask: Ask) -> None:
    answer = ask([*MEASURED, end_to_end(50.0)])
    assert answer.service is not None
    (service,) = answer.service.by_size
    assert (service.source, len(service.samples_ms)) == (ServiceSource.END_TO_END, 21)
    assert service.latency.value_ms == 50.0
    assert answer.prediction is not None
    assert 0 < answer.prediction.per_second.value < 20
    assert answer.refusal == ""
    assert len(answer.curve(5)) == 5
    # The execution that has the results; models run on this host only.
    assert answer.execution is not None
    assert (answer.execution.runtime.identity, answer.execution.level) == (IDENTITY, Level.WRITTEN)
    assert answer.order is None
    for words, told in (("with others, the highest rate is", 1), ("assumed for passing", 1), ("cores", 0)):
        assert sum(words in note for note in answer.notes) == told
    answer = ask([scenario_test(passing_ms=2.5)])
    assert answer.service is not None
    assert answer.service.passing_ms == 2.5
    assert not any("assumed for passing" in note for note in answer.notes)


def test_without_end_to_end_samples_the_estimate_is_the_service_time(ask: Ask) -> None:
    answer = ask(MEASURED, replace(SERVER, bound_ms=9000.0))
    assert answer.service is not None
    (service,) = answer.service.by_size
    assert service.source is ServiceSource.ESTIMATE
    assert len(service.samples_ms) > 1
    assert answer.prediction is not None


def test_a_model_that_has_the_name_of_a_sample_is_measured_by_its_path(tmp_path: Path, ask: Ask) -> None:
    ask([])
    path = saved(tmp_path, of_rows("batch"), "alexnet")
    with opened(tmp_path, measured_only=True) as estimator:
        assert f" run {path} --runtime" in scenario_answer(estimator, source_of(path), SERVER).cure


def test_batch_sizes_without_results_are_interpolated_or_named_with_the_command_that_measures_them(ask: Ask) -> None:
    lacking = ask(MEASURED, measured_only=True, batch=4)
    assert lacking.prediction is None
    assert "\n" not in lacking.refusal
    assert "at batch sizes 2, 4" in lacking.refusal
    assert lacking.refusal.endswith(lacking.cure)
    assert lacking.cure.endswith("--threads 1 --level written --batch 2,4 --end-to-end")
    assert lacking.curve() == ()
    timed = [end_to_end(50.0), end_to_end(140.0, batch_size=4)]
    four = ask(timed, replace(SERVER, bound_ms=500.0), measured_only=True, batch=4)
    # A larger batch size with results helps, too.
    two = ask([], replace(SERVER, bound_ms=500.0), measured_only=True, batch=2)
    for answer, expected in ((four, [(1, 50), (2, 80), (4, 140)]), (two, [(1, 50), (2, 80)])):
        assert answer.service is not None and answer.prediction is not None
        assert [(it.batch_size, it.latency.value_ms) for it in answer.service.by_size] == expected
        assert answer.prediction.batch_size == expected[-1][0]


def test_stored_load_tests_of_the_scenario_are_listed_newest_first(ask: Ask) -> None:
    newer, older = (scenario_test(when=f"2026-11-{day}T08:00:00+00:00") for day in (25, 24))
    others = [
        scenario_test(kind="single", rate=None, sought=False),
        scenario_test(bound_ms=100.0),
        scenario_test(sought=False),
        scenario_test(instances=2),
        scenario_test(batch_size=8),
        scenario_test(runtime="onnxruntime-1.32.0 python-3.11 threads-2"),
        scenario_test(model="cd" * 32),
    ]
    answer = ask([*MEASURED, end_to_end(50.0), older, newer, *others])
    assert [it.uuid for it in answer.load_tests] == [newer.uuid, older.uuid]
    # The test at a given rate is no answer to the search, and is shown with it.
    assert [it.sought for it in answer.load_tests_at_rates] == [False]
    assert [it.uuid for it in answer.stored_tests[:2]] == [newer.uuid, older.uuid]
    assert len(answer.stored_tests) == 3
    at_rate = ask([], replace(SERVER, rate=40.0))
    assert [it.sought for it in at_rate.load_tests] == [False]
    assert (at_rate.load_tests_at_rates, len(at_rate.stored_tests)) == ((), 1)


def test_the_newest_end_to_end_samples_count_unless_their_test_was_invalid(ask: Ask) -> None:
    stream = {"kind": "single", "rate": None, "sought": False}
    jumped = scenario_test(**stream, when="2026-11-23T08:00:00+00:00", valid=False, reasons=("the clock jumped",))
    timed = [*MEASURED, end_to_end(50.0, when="2026-11-22T08:00:00+00:00"), jumped]
    older = ask([*timed, scenario_test(**stream, when="2026-11-21T08:00:00+00:00")])
    newer = ask([scenario_test(**stream, when="2026-11-23T08:00:00+00:00")])
    for answer, source in ((older, ServiceSource.END_TO_END), (newer, ServiceSource.SINGLE_STREAM)):
        assert answer.service is not None
        assert [it.source for it in answer.service.by_size] == [source]


def test_an_impossible_bound_gets_one_line(ask: Ask) -> None:
    answer = ask([*MEASURED, end_to_end(50.0)], replace(SERVER, bound_ms=20.0))
    assert answer.prediction is None
    assert answer.refusal.startswith("bound 20 ms: a request that never waits takes 50.1 ms on average")
    assert "\n" not in answer.refusal


def test_more_threads_than_cores_are_warned_of(ask: Ask) -> None:
    crowded = ask([*MEASURED, end_to_end(50.0)], replace(SERVER, instances=5))
    assert any("5 threads on 4 cores" in note for note in crowded.notes)
    # Five instances do not serve more than four cores can.
    assert crowded.service is not None
    assert crowded.service.single_ms == pytest.approx(50.0 * 5 / 4, rel=0.01)
    assert any("slow one another down" in note for note in crowded.notes)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({}, "a server needs a bound of its latency"),
        ({"bound_ms": float("nan")}, "bound_ms nan: give a number above 0"),
        ({"bound_ms": 5.0, "percentile": 100.0}, "percentile 100: give a number between 0 and 100"),
        ({"bound_ms": 5.0, "percentile": 99.9999}, "percentile 99.9999: a test needs 6,638,\\d+ requests"),
        ({"bound_ms": 5.0, "instances": 257}, "instances 257: give a whole number from 1 to 256"),
        ({"rate": float("inf")}, "rate inf: give a number above 0 and up to 1,000,000"),
        ({"kind": ScenarioKind.SINGLE, "rate": 5.0}, "kind single has no rate"),
    ],
)
def test_options_that_make_no_scenario_get_one_line(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ScenarioError, match=message) as caught:
        ScenarioOptions(**{"kind": ScenarioKind.SERVER, **wrong})
    assert "\n" not in str(caught.value)


def test_batches_that_no_scenario_has_get_one_line() -> None:
    with pytest.raises(ScenarioError, match="a single stream has one request at a time"):
        ScenarioOptions(kind=ScenarioKind.SINGLE).scenario(4)
    for size in (0, 257, 100_000):
        with pytest.raises(ScenarioError, match="give a whole number from 1 to 256"):
            replace(SERVER, batch_sizes=(size,)).scenario()


def test_the_batch_sizes_are_those_given_or_those_up_to_the_largest() -> None:
    assert SERVER.scenario().batch_sizes == (1,)
    assert SERVER.scenario(6).batch_sizes == (1, 2, 4, 6)
    assert replace(SERVER, batch_sizes=(4,)).scenario(6).batch_sizes == (1, 2, 4)
    offline = ScenarioOptions(kind=ScenarioKind.OFFLINE)
    assert offline.scenario().batch_sizes == (1, 2, 4, 8)
    assert replace(offline, batch_sizes=(8, 2, 8)).scenario(6).batch_sizes == (2, 8)
    # A request that waits alone is served alone.
    assert replace(SERVER, batch_sizes=(8, 2, 8)).scenario(6).batch_sizes == (1, 2, 8)


def test_a_load_test_of_another_file_of_the_model_answers_unless_a_runtime_was_chosen(ask: Ask, tmp_path: Path) -> None:
    # SqueezeNet as MXNet has it, and as ONNX.
    mxnet = "mxnet-1.9.1 python-3.11 threads-1"
    with opened(tmp_path, system=None, runtime="onnxruntime", threads=1, level=Level.WRITTEN) as estimator:
        source = found(tmp_path, "squeezenet1.1")
        (as_onnx,) = estimator.answers([source], estimator.scope_of([source]))
    tested = scenario_test(
        model=whole_model(as_onnx.decomposition.graph).key, name="squeezenet1.1", rate=27.0, per_second=26.5
    )
    records = [
        *brick_records(decompose(table1()["16"]), **{**WHERE, "runtime": mxnet}),
        *brick_records(as_onnx.decomposition, **WHERE),
        runtime(mxnet, framework="mxnet"),
        tested,
    ]
    answer = ask(records, model="squeezenet1.1", runtime=None)
    assert (answer.best_test, answer.load_tests_of_model) == (tested, (tested,))
    assert answer.execution is not None and answer.execution.runtime.identity == IDENTITY
    assert tested.found_per_second == 27.0
    chosen = ask([], model="squeezenet1.1", runtime=mxnet)
    assert (chosen.best_test, chosen.load_tests_of_model) == (None, (tested,))
