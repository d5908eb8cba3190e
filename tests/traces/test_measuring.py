"""Traces by the fake worker, whose levels or workers may fail, and by the real runtimes, whose layers are known."""

import os
import signal
import subprocess
import time
from dataclasses import replace
from pathlib import Path
from statistics import median

import pytest
from onnx.helper import make_node

from dlbricks_tui.analysis.what_if import Execution
from dlbricks_tui.folders import SAMPLE_MODELS, DataFolder
from dlbricks_tui.host.fingerprint import fingerprint
from dlbricks_tui.jobs.events import Event, JobEnded, follow
from dlbricks_tui.jobs.process import command_of
from dlbricks_tui.measure.method import Method
from dlbricks_tui.measure.supervised_worker import SupervisedWorker
from dlbricks_tui.models.graph import Level
from dlbricks_tui.models.library import Library, source_of
from dlbricks_tui.runtime.process import INSIDE
from dlbricks_tui.runtime.protocol import TracedRun, TracedRuns
from dlbricks_tui.runtime.registry import Registry
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.records import Measurement
from dlbricks_tui.traces import measuring
from dlbricks_tui.traces.file import read_trace
from dlbricks_tui.traces.spans import Instruments, LevelRound, MeasuredLevel, TracedNetwork, level_trace
from dlbricks_tui.traces.trace import (
    TRACE,
    LevelDone,
    LevelStarted,
    RoundStarted,
    TraceDone,
    TraceError,
    TraceLevel,
    TraceOrder,
    TrackKind,
)
from tests.host.lines import turn_of
from tests.jobs.carrying import fake
from tests.models.onnx_models import floats, model, saved
from tests.runs.fake_worker import LINE_NS, PROFILER_NS
from tests.runs.runs import MODEL, Site
from tests.traces.tracing import TraceBench, assert_exactly_the_layers, level_of, track_of

_LOWER = (TraceLevel.MODEL, TraceLevel.LAYER, TraceLevel.PRIMITIVE)


@pytest.fixture
def bench(tmp_path: Path) -> TraceBench:
    return TraceBench(Site(tmp_path / "data"))


def test_each_level_has_the_tracks_of_its_instruments_and_states_and_tells_what_they_add(bench: TraceBench) -> None:
    execution = fake()
    trace = bench.trace(execution, levels=_LOWER, inferences=4)
    assert [it.level for it in trace.levels] == list(_LOWER)
    assert trace.missing == ()
    model, layer, primitive = trace.levels
    operators = len(trace.layers)
    assert model.overhead_ms is None
    assert layer.overhead_ms == pytest.approx(operators * PROFILER_NS / 1e6)
    assert primitive.overhead_ms == pytest.approx(operators * LINE_NS / 1e6)
    for level in trace.levels:
        assert len(track_of(level, TrackKind.INFERENCES).spans) == 4
        assert len(level.inference_ms) == 3 * 4
    assert dict(layer.totals)["plain_ms"] == pytest.approx(median(model.inference_ms), rel=0.01)
    assert [[it.kind for it in level.tracks] for level in trace.levels] == [
        [TrackKind.INFERENCES],
        [TrackKind.INFERENCES, TrackKind.LAYERS],
        [TrackKind.INFERENCES, TrackKind.LAYERS, TrackKind.PRIMITIVES],
    ]
    for level in trace.levels[1:]:
        assert_exactly_the_layers(trace, level)

    *told, _ = bench.told
    assert told[:3] == [LevelStarted(level=level) for level in _LOWER]
    assert told[3:6] == [RoundStarted(number=number, rounds=3) for number in (1, 2, 3)]
    for message, level in zip(told[6:], trace.levels, strict=True):
        assert message == LevelDone(
            level=level.level, inference_ms=median(level.inference_ms), overhead_ms=level.overhead_ms
        )

    assert (trace.model, trace.system, trace.runtime) == (MODEL, fingerprint().id, execution.runtime.identity)
    assert (trace.graph_level, trace.batch_size) == (Level.WRITTEN, 1)
    assert [it.index for it in trace.layers] == list(range(21))
    assert len({it.brick for it in trace.layers}) == 18
    assert {it.brick_ms for it in trace.layers} == {None}
    assert trace.layers[0].kind == "convolution"


def test_layers_carry_the_stored_latencies_of_their_bricks(bench: TraceBench) -> None:
    execution = fake()
    bench.site.run(bench.site.request(MODEL, runtime=execution.runtime, method=Method.INSIDE))
    with ResultsDatabase(bench.site.data.store) as store:
        stored = {it.brick: it.statistics.trimmed_mean_ms for it in store.records(Measurement)}
    trace = bench.trace(execution, levels=(TraceLevel.MODEL,), inferences=2)
    for layer in trace.layers:
        assert layer.brick_ms == pytest.approx(stored[layer.brick], rel=0.05)
    # Another number of threads has results of its own.
    others = replace(execution, runtime=execution.runtime.with_threads(3))
    trace = bench.trace(others, levels=(TraceLevel.MODEL,), inferences=2)
    assert {it.brick_ms for it in trace.layers} == {None}


@pytest.mark.parametrize(
    ("manner", "reason"), [("crash on load", "SIGSEGV: the last words"), ("unbuildable", "the operator is unbuildable")]
)
def test_a_model_that_does_not_run_has_no_trace_and_one_line_that_says_why(
    bench: TraceBench, manner: str, reason: str
) -> None:
    told = bench.failure(fake(FAKE_MANNERS=f'{{"Convolution": "{manner}"}}'))
    assert reason in told
    assert "\n" not in told
    assert not bench.site.data.traces.exists()
    assert "at least 1" in bench.failure(inferences=0)


def test_a_level_without_its_instrument_says_why_and_the_others_go_on(
    bench: TraceBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    execution = replace(fake(), runtime=fake().runtime.side_by_side(2))
    trace = bench.trace(execution, levels=_LOWER, inferences=2)
    assert [it.level for it in trace.levels] == [TraceLevel.MODEL]
    assert [(it.level, it.reason) for it in trace.missing] == [
        (TraceLevel.LAYER, "operators that run at the same time cannot be profiled one by one"),
        (TraceLevel.PRIMITIVE, "primitives that run at the same time cannot be told apart"),
    ]

    def blind(pid: int) -> None:
        raise TraceError(f"the threads of {pid} cannot be read")

    monkeypatch.setattr(measuring, "ThreadWatch", blind)
    trace = bench.trace(levels=(TraceLevel.MODEL, TraceLevel.THREAD), inferences=2)
    assert [it.level for it in trace.levels] == [TraceLevel.MODEL]
    assert "cannot be read" in trace.missing[0].reason


def test_the_thread_level_counts_what_the_worker_did_under_all_instruments(bench: TraceBench) -> None:
    trace = bench.trace(levels=(TraceLevel.MODEL, TraceLevel.THREAD), inferences=3)
    model, threads = trace.levels
    kinds = [it.kind for it in threads.tracks]
    assert kinds[:3] == [TrackKind.INFERENCES, TrackKind.LAYERS, TrackKind.PRIMITIVES]
    assert set(kinds[3:]) <= {TrackKind.THREAD}
    assert_exactly_the_layers(trace, threads)
    assert {it.name for it in threads.counters} >= {"running", "voluntary context switches", "minor page faults"}
    # Without the levels between them, it adds all instruments.
    operators = len(trace.layers)
    assert threads.overhead_ms == pytest.approx(operators * (PROFILER_NS + LINE_NS) / 1e6)
    assert model.counters == ()


def test_levels_take_turns_and_the_last_round_is_shown(bench: TraceBench, monkeypatch: pytest.MonkeyPatch) -> None:
    """A host that gets slower from round to round adds nothing to an overhead."""
    taken: list[tuple[TraceLevel, int]] = []
    usual = measuring.Tracing._round

    def slower(tracing: measuring.Tracing, measured: MeasuredLevel, worker: SupervisedWorker) -> LevelRound:
        level, number = measured.level, len(measured.rounds)
        taken.append((level, number))
        found = usual(tracing, measured, worker)
        added_ns = number * 50_000_000
        runs = tuple(
            replace(it, start_ns=it.start_ns + place * added_ns, duration_ns=it.duration_ns + added_ns)
            for place, it in enumerate(found.runs.runs)
        )
        return replace(found, runs=replace(found.runs, runs=runs))

    monkeypatch.setattr(measuring.Tracing, "_round", slower)
    trace = bench.trace(levels=_LOWER, inferences=2)
    assert taken == [(level, number) for number in range(3) for level in _LOWER]
    _, layer, primitive = trace.levels
    operators = len(trace.layers)
    assert layer.overhead_ms == pytest.approx(operators * PROFILER_NS / 1e6)
    assert primitive.overhead_ms == pytest.approx(operators * LINE_NS / 1e6)
    assert not any("uncertain" in note for level in trace.levels for note in level.notes)
    for level in trace.levels:
        assert all(it.duration_ns > 100_000_000 for it in track_of(level, TrackKind.INFERENCES).spans)


def test_a_level_that_fails_in_a_later_round_is_left_out(bench: TraceBench, monkeypatch: pytest.MonkeyPatch) -> None:
    usual = measuring.Tracing._round

    def failing(tracing: measuring.Tracing, measured: MeasuredLevel, worker: SupervisedWorker) -> LevelRound:
        if measured.level is TraceLevel.LAYER and measured.rounds:
            raise TraceError("killed by signal 9")
        return usual(tracing, measured, worker)

    monkeypatch.setattr(measuring.Tracing, "_round", failing)
    trace = bench.trace(levels=_LOWER, inferences=2)
    assert [it.level for it in trace.levels] == [TraceLevel.MODEL, TraceLevel.PRIMITIVE]
    assert [(it.level, it.reason) for it in trace.missing] == [(TraceLevel.LAYER, "killed by signal 9")]
    # It adds the instruments of the level that is left out, too.
    assert trace.levels[1].overhead_ms == pytest.approx(len(trace.layers) * (PROFILER_NS + LINE_NS) / 1e6)


def test_levels_that_do_not_fit_into_memory_together_are_traced_one_after_another(
    bench: TraceBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measuring, "_MOST_MEMORY", 0.0)
    trace = bench.trace(levels=_LOWER, inferences=2)
    assert [it.level for it in trace.levels] == list(_LOWER)
    assert all(len(it.inference_ms) == 2 for it in trace.levels)
    *told, _ = bench.told
    assert [type(it) for it in told] == [LevelStarted, RoundStarted, LevelDone] * 3
    for level in trace.levels[1:]:
        assert any("one after another" in note for note in level.notes)


def test_an_overhead_that_differs_between_rounds_says_so() -> None:
    def measured(*rounds_ms: float) -> MeasuredLevel:
        rounds = [LevelRound(TracedRuns((TracedRun(0, 0, round(1e6 * ms)),), True)) for ms in rounds_ms]
        return MeasuredLevel(TraceLevel.MODEL, Instruments(), rounds=rounds)

    below = measured(1, 2, 3)
    network = TracedNetwork(None, {})  # type: ignore[arg-type]

    def notes(level: MeasuredLevel, below: MeasuredLevel | None) -> tuple[str, ...]:
        return level_trace(level, below, network, "MXNet", has_file=False).notes

    assert notes(measured(1.5, 2.5, 3.5), None) == ()
    assert notes(measured(1.5, 2.5, 3.5), below) == ()
    (note,) = notes(measured(1.5, 2.1, 3), below)
    assert note == "the overhead is uncertain: the 3 rounds differ, +0.000 to +0.500 ms"


def test_a_signal_ends_the_trace_with_its_worker(bench: TraceBench) -> None:
    def cancel(message: Event) -> None:
        if message == LevelStarted(level=TraceLevel.LAYER):
            os.kill(os.getpid(), signal.SIGTERM)

    bench.act = cancel
    assert bench.failure() == "it was cancelled"
    turn_of(bench.site.queue, "next", bench.site.data.path).leave()


_RUNTIMES = [
    # Its start takes most of the time.
    pytest.param("mxnet", marks=[pytest.mark.mxnet, pytest.mark.soak]),
    "onnxruntime",
    pytest.param("openvino", marks=pytest.mark.openvino),
]


@pytest.mark.parametrize("framework", _RUNTIMES)
def test_the_levels_have_exactly_the_layers_of_the_fused_graph(framework: str, tmp_path: Path) -> None:
    bench = TraceBench(Site(tmp_path / "data", INSIDE))
    bench.site.path.mkdir()
    runtime = Registry(bench.site.path).find(framework).with_threads(1)
    (source,) = Library(SAMPLE_MODELS, bench.site.path, runtime.traits.format).find("mobilenet0.25")
    levels = (TraceLevel.LAYER, TraceLevel.PRIMITIVE)
    source = source.in_format(runtime.traits.format)
    trace = bench.trace(Execution(runtime, Level.FUSED), source, levels=levels, inferences=2)
    assert trace.graph_level is Level.FUSED
    convolutions = {it.index for it in trace.layers if it.kind == "convolution"}
    assert convolutions
    level = level_of(trace, TraceLevel.LAYER)
    assert_exactly_the_layers(trace, level)
    assert all(it.duration_ns > 0 for it in track_of(level, TrackKind.LAYERS).spans if it.layer in convolutions)
    if framework == "onnxruntime":
        assert [it.level for it in trace.missing] == [TraceLevel.PRIMITIVE]
        assert "not with oneDNN" in trace.missing[0].reason
        return
    # Each convolution has a primitive in each inference, where the runtime computes with oneDNN.
    assert trace.missing == ()
    level = level_of(trace, TraceLevel.PRIMITIVE)
    assert_exactly_the_layers(trace, level)
    found = track_of(level, TrackKind.PRIMITIVES).spans
    for number in range(len(track_of(level, TrackKind.INFERENCES).spans)):
        ran = {it.layer for it in found if it.inference == number and it.name.startswith("convolution ")}
        assert ran == convolutions


def test_the_trace_is_in_its_file_when_the_process_ends(tmp_path: Path) -> None:
    data = DataFolder(tmp_path / "data")
    execution = Execution(Registry(data.path).find("onnxruntime").with_threads(1), Level.FUSED)
    levels = (TraceLevel.MODEL, TraceLevel.LAYER)
    product = model([make_node("MatMul", ["x", "u"], ["y"])], {"x": (16, 16)}, ["y"], [floats("u", (16, 16))])
    order = TraceOrder(source=source_of(saved(tmp_path, product)), execution=execution, levels=levels, inferences=3)
    job = TRACE.create(data, (order.source.name,), order)
    environment = {**os.environ, "DLBRICKS_HOST_LOCK": str(tmp_path / "host.lock")}
    process = subprocess.Popen(command_of(TRACE.function, str(job.path), str(data.path)), env=environment)
    *told, done, ended = follow(TRACE.reader(job), lambda: process.poll() is None, lambda: time.sleep(0.05))
    assert process.wait() == 0
    assert isinstance(done, TraceDone) and isinstance(ended, JobEnded) and ended.state == "finished"
    assert tuple(it.level for it in told if isinstance(it, LevelDone)) == levels
    trace = read_trace(data.traces / f"{done.id}.json.gz")
    assert tuple(it.level for it in trace.levels) == levels
