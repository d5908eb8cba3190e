from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dlbricks_tui.answers.estimating import Estimator, Remarks, open_estimator
from dlbricks_tui.answers.opening import library, open_loader
from dlbricks_tui.answers.scenarios.predicting import ScenarioAnswer, ScenarioOptions, scenario_answer
from dlbricks_tui.answers.scope import EstimateOptions
from dlbricks_tui.bricks.decomposition import Decomposition, decompose
from dlbricks_tui.bricks.identity import whole_model
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.models.errors import ModelError
from dlbricks_tui.models.graph import Level
from dlbricks_tui.models.library import ModelSource
from dlbricks_tui.scenarios.scenario import Kind, ScenarioError
from dlbricks_tui.scenarios.service import ServiceSource
from dlbricks_tui.store.records import EndToEnd, LoadTest, Record
from tests.estimate.stored import brick_records, model_record, store_of
from tests.estimate.table1 import table1
from tests.store.samples import load_test, runtime, system

# SqueezeNet as MXNet has it; its types are delivered at level `written`.
SQUEEZENET = decompose(table1()["16"])
IDENTITY = "mxnet-1.9.1 python-3.11 threads-1"
WHERE: dict[str, Any] = {"system": "c5.xlarge", "runtime": IDENTITY}
SERVER = ScenarioOptions(kind=Kind.SERVER, bound_ms=200.0)

Ask = Callable[..., ScenarioAnswer]

pytestmark = pytest.mark.usefixtures("rough_predictions", "shared_cache")


def end_to_end(decomposition: Decomposition, value_ms: float, **fields: Any) -> EndToEnd:
    """The whole model timed, with samples around its latency."""
    samples = tuple(value_ms * (0.99 + number / 1000) for number in range(21))
    return model_record(decomposition, value_ms, samples_ms=samples, **WHERE, **fields)


def scenario_test(**fields: Any) -> LoadTest:
    """A load test of the scenario."""
    asked = {"model": whole_model(SQUEEZENET.graph).key, "level": Level.WRITTEN, "bound_ms": 200.0}
    return load_test(**{**WHERE, **asked, **fields})


@pytest.fixture
def ask(tmp_path: Path) -> Ask:
    """Return the answer for a model from these records."""

    def answer(
        records: Sequence[Record], options: ScenarioOptions = SERVER, model: str = "table1:16", **changed: Any
    ) -> ScenarioAnswer:
        described: list[Record] = [system("c5.xlarge"), runtime(IDENTITY, framework="mxnet")]
        store_of(tmp_path / "data" / "store", *described, *records).close()
        with opened(tmp_path, **changed) as estimator:
            return scenario_answer(estimator, found(tmp_path, model), options)

    return answer


@contextmanager
def opened(tmp_path: Path, **changed: Any) -> Iterator[Estimator]:
    """The estimator of these tests."""
    options = EstimateOptions(**{"system": "c5.xlarge", "runtime": IDENTITY, **changed})
    remarks = Remarks(lambda _: None, str, lambda *_: None)
    with open_estimator(options, DataFolder(tmp_path / "data"), remarks) as estimator:
        yield estimator


def found(tmp_path: Path, model: str) -> ModelSource:
    (source,) = library(DataFolder(tmp_path / "data")).find(model)
    return source


def at_batch(tmp_path: Path, size: int) -> Decomposition:
    """The model with inputs of that many images."""
    data = DataFolder(tmp_path / "data")
    with open_loader(data, lambda *_: None) as loader:
        graph = loader.load(found(tmp_path, "table1:16"), Level.WRITTEN, {}, {}, size)
        return decompose(graph.named(SQUEEZENET.graph.name))


def test_end_to_end_samples_are_the_service_times(ask: Ask) -> None:
    answer = ask([*brick_records(SQUEEZENET, **WHERE), end_to_end(SQUEEZENET, 50.0)])
    assert answer.service is not None
    (service,) = answer.service.by_size
    assert (service.source, len(service.samples_ms)) == (ServiceSource.END_TO_END, 21)
    assert service.latency.value_ms == 50.0
    assert answer.prediction is not None
    assert 0 < answer.prediction.per_second.value < 20
    assert answer.refusal == ""
    assert any("with others, the highest rate is" in note for note in answer.notes)
    assert len(answer.curve(5)) == 5


def test_without_end_to_end_samples_the_estimate_is_the_service_time(ask: Ask) -> None:
    answer = ask(brick_records(SQUEEZENET, **WHERE), replace(SERVER, bound_ms=9000.0))
    assert answer.service is not None
    (service,) = answer.service.by_size
    assert service.source is ServiceSource.ESTIMATE
    assert len(service.samples_ms) > 1
    assert answer.prediction is not None


def test_a_scenario_names_the_execution_that_has_the_results(ask: Ask) -> None:
    answer = ask([*brick_records(SQUEEZENET, **WHERE), end_to_end(SQUEEZENET, 50.0)])
    assert answer.execution is not None
    assert (answer.execution.runtime.identity, answer.execution.level) == (IDENTITY, Level.WRITTEN)
    # Models run on this host only.
    assert answer.order is None


@pytest.mark.mxnet
def test_without_results_one_line_names_the_command_that_measures_them(ask: Ask) -> None:
    answer = ask([*brick_records(SQUEEZENET, **WHERE)], measured_only=True, batch=4)
    assert answer.prediction is None
    assert "\n" not in answer.refusal
    assert "at batch sizes 2, 4" in answer.refusal
    assert answer.refusal.endswith(answer.cure)
    assert answer.cure.endswith("--threads 1 --level written --batch 2,4 --end-to-end")
    assert answer.curve() == ()


@pytest.mark.mxnet
def test_a_batch_size_between_two_measured_ones_is_interpolated(ask: Ask, tmp_path: Path) -> None:
    four = at_batch(tmp_path, 4)
    records = [*brick_records(SQUEEZENET, **WHERE), end_to_end(SQUEEZENET, 50.0), end_to_end(four, 140.0, batch_size=4)]
    answer = ask(records, replace(SERVER, bound_ms=500.0), measured_only=True, batch=4)
    assert answer.service is not None
    assert [(it.batch_size, it.latency.value_ms) for it in answer.service.by_size] == [(1, 50), (2, 80), (4, 140)]
    assert answer.prediction is not None
    assert answer.prediction.batch_size == 4


@pytest.mark.mxnet
def test_a_larger_batch_size_with_results_helps_to_interpolate(ask: Ask, tmp_path: Path) -> None:
    four = end_to_end(at_batch(tmp_path, 4), 140.0, batch_size=4)
    records = [*brick_records(SQUEEZENET, **WHERE), end_to_end(SQUEEZENET, 50.0), four]
    answer = ask(records, replace(SERVER, bound_ms=500.0), measured_only=True, batch=2)
    assert answer.service is not None
    assert [(it.batch_size, it.latency.value_ms) for it in answer.service.by_size] == [(1, 50), (2, 80)]


def test_stored_load_tests_of_the_scenario_are_listed_newest_first(ask: Ask) -> None:
    newer, older = (scenario_test(when=f"2026-11-{day}T08:00:00+00:00") for day in (25, 24))
    others = [
        scenario_test(kind="single", rate=None, sought=False),
        scenario_test(bound_ms=100.0),
        scenario_test(sought=False),
        scenario_test(instances=2),
        scenario_test(batch_size=8),
        scenario_test(runtime="mxnet-1.9.1 python-3.11 threads-2"),
        scenario_test(model="cd" * 32),
    ]
    answer = ask([*brick_records(SQUEEZENET, **WHERE), end_to_end(SQUEEZENET, 50.0), older, newer, *others])
    assert [it.uuid for it in answer.load_tests] == [newer.uuid, older.uuid]
    # The test at a given rate is no answer to the search, and is shown with it.
    assert [it.sought for it in answer.load_tests_at_rates] == [False]
    assert [it.uuid for it in answer.stored_tests[:2]] == [newer.uuid, older.uuid]
    assert len(answer.stored_tests) == 3
    at_rate = ask([], ScenarioOptions(kind=Kind.SERVER, bound_ms=200.0, rate=40.0))
    assert [it.sought for it in at_rate.load_tests] == [False]
    assert (at_rate.load_tests_at_rates, len(at_rate.stored_tests)) == ((), 1)


def test_a_single_stream_whose_clock_jumped_is_no_sample_of_service_times(ask: Ask) -> None:
    stream = {"kind": "single", "rate": None, "sought": False, "when": "2026-11-23T08:00:00+00:00"}
    jumped = scenario_test(**stream, valid=False, reasons=("the clock jumped",))
    timed = end_to_end(SQUEEZENET, 50.0, when="2026-11-22T08:00:00+00:00")
    answer = ask([*brick_records(SQUEEZENET, **WHERE), timed, jumped])
    assert answer.service is not None
    assert [it.source for it in answer.service.by_size] == [ServiceSource.END_TO_END]


def test_a_load_test_says_what_passing_a_request_costs(ask: Ask) -> None:
    records = [*brick_records(SQUEEZENET, **WHERE), end_to_end(SQUEEZENET, 50.0)]
    assert any("assumed for passing" in note for note in ask(records).notes)
    answer = ask([scenario_test(passing_ms=2.5)])
    assert answer.service is not None
    assert answer.service.passing_ms == 2.5
    assert not any("assumed for passing" in note for note in answer.notes)


def test_the_newest_end_to_end_samples_count(ask: Ask) -> None:
    stream = {"kind": "single", "rate": None, "sought": False}
    timed = [*brick_records(SQUEEZENET, **WHERE), end_to_end(SQUEEZENET, 50.0, when="2026-11-22T08:00:00+00:00")]
    older = ask([*timed, scenario_test(**stream, when="2026-11-21T08:00:00+00:00")])
    newer = ask([scenario_test(**stream, when="2026-11-23T08:00:00+00:00")])
    for answer, source in ((older, ServiceSource.END_TO_END), (newer, ServiceSource.SINGLE_STREAM)):
        assert answer.service is not None
        assert [it.source for it in answer.service.by_size] == [source]


def test_an_impossible_bound_gets_one_line(ask: Ask) -> None:
    records = [*brick_records(SQUEEZENET, **WHERE), end_to_end(SQUEEZENET, 50.0)]
    answer = ask(records, replace(SERVER, bound_ms=20.0))
    assert answer.prediction is None
    assert answer.refusal.startswith("bound 20 ms: a request that never waits takes 50.1 ms on average")
    assert "\n" not in answer.refusal


def test_more_threads_than_cores_are_warned_of(ask: Ask) -> None:
    records = [*brick_records(SQUEEZENET, **WHERE), end_to_end(SQUEEZENET, 50.0)]
    assert not any("cores" in note for note in ask(records).notes)
    crowded = ask(records, replace(SERVER, instances=5))
    assert any("5 threads on 4 cores" in note for note in crowded.notes)
    # Five instances do not serve more than four cores can.
    assert crowded.service is not None
    assert crowded.service.single_ms == pytest.approx(50.0 * 5 / 4, rel=0.01)
    assert any("slow one another down" in note for note in crowded.notes)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({}, "a server needs a bound of its latency"),
        ({"bound_ms": 0.0}, "bound-ms 0: give a number above 0"),
        ({"bound_ms": float("nan")}, "bound-ms nan: give a number above 0"),
        ({"rate": -1.0}, "rate -1: give a number above 0"),
        ({"bound_ms": 5.0, "percentile": 100.0}, "percentile 100: give a number between 0 and 100"),
        ({"bound_ms": 5.0, "percentile": 0.0}, "percentile 0: give a number between 0 and 100"),
        ({"bound_ms": 5.0, "percentile": 99.9999}, "percentile 99.9999: a test needs 6,638,\\d+ requests"),
        ({"bound_ms": 5.0, "instances": 0}, "instances 0: give a whole number from 1 to 256"),
        ({"bound_ms": 5.0, "instances": 257}, "instances 257: give a whole number from 1 to 256"),
        ({"bound_ms": 1e300}, "bound-ms 1e\\+300: give a number above 0 and up to 1,000,000"),
        ({"rate": float("inf")}, "rate inf: give a number above 0 and up to 1,000,000"),
        ({"kind": Kind.SINGLE, "rate": 5.0}, "kind single has no rate"),
    ],
)
def test_options_that_make_no_scenario_get_one_line(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ScenarioError, match=message) as caught:
        ScenarioOptions(**{"kind": Kind.SERVER, **wrong})
    assert "\n" not in str(caught.value)


def test_batches_that_no_scenario_has_get_one_line() -> None:
    with pytest.raises(ScenarioError, match="a single stream has one request at a time"):
        ScenarioOptions(kind=Kind.SINGLE).scenario(4)
    for size in (0, 100_000):
        with pytest.raises(ScenarioError, match="give a whole number from 1 to 256"):
            replace(SERVER, batch_sizes=(size,)).scenario()


def test_the_batch_sizes_are_those_up_to_the_largest() -> None:
    assert SERVER.scenario().batch_sizes == (1,)
    assert SERVER.scenario(6).batch_sizes == (1, 2, 4, 6)
    assert replace(SERVER, batch_sizes=(4,)).scenario(6).batch_sizes == (1, 2, 4)
    assert ScenarioOptions(kind=Kind.OFFLINE).scenario().batch_sizes == (1, 2, 4, 8)


def test_batch_sizes_that_are_given_one_by_one_are_these() -> None:
    offline = ScenarioOptions(kind=Kind.OFFLINE, batch_sizes=(8, 2, 8))
    assert offline.scenario(6).batch_sizes == (2, 8)
    # A request that waits alone is served alone.
    assert replace(SERVER, batch_sizes=(8, 2, 8)).scenario(6).batch_sizes == (1, 2, 8)


def test_an_unknown_model_gets_one_line(ask: Ask) -> None:
    with pytest.raises(ModelError, match="no-such-model") as caught:
        ask([], model="no-such-model")
    assert "\n" not in str(caught.value)


ONNX_IDENTITY = "onnxruntime-1.32.0 python-3.11 threads-1"


def test_a_load_test_of_another_file_of_the_model_answers_unless_a_runtime_was_chosen(ask: Ask, tmp_path: Path) -> None:
    records = [*brick_records(SQUEEZENET, **WHERE), runtime(ONNX_IDENTITY, framework="onnxruntime")]
    with opened(tmp_path, system=None, runtime="onnxruntime", threads=1) as estimator:
        source = found(tmp_path, "squeezenet1.1")
        (as_onnx,) = estimator.answers([source], estimator.scope_of([source]))
    tested = load_test(
        **{**WHERE, "runtime": ONNX_IDENTITY},
        model=whole_model(as_onnx.decomposition.graph).key,
        name="squeezenet1.1",
        level=as_onnx.decomposition.graph.level,
        bound_ms=200.0,
        rate=27.0,
        per_second=26.5,
    )
    answer = ask([*records, tested], model="squeezenet1.1", runtime=None)
    assert (answer.best_test, answer.load_tests_of_model) == (tested, (tested,))
    assert answer.execution is not None and answer.execution.runtime.identity == ONNX_IDENTITY
    assert tested.found_per_second == 27.0
    chosen = ask([], model="squeezenet1.1", runtime=IDENTITY)
    assert (chosen.best_test, chosen.load_tests_of_model) == (None, (tested,))
