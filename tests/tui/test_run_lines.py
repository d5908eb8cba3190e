"""Lines about runs, in whatever room there is."""

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlbricks_tui.api.followed_runs import ReplayPace, RunModel, RunSnapshot, SnapshotBuilder, summary_of
from dlbricks_tui.api.new_runs import WantedCombination, exactly, request_for, settings_for
from dlbricks_tui.api.open_models import Choices, id_of
from dlbricks_tui.api.traces import first_settings
from dlbricks_tui.config.config import Config, Given
from dlbricks_tui.documents.lines import Line, sparkline, width_of
from dlbricks_tui.documents.run import UnderWay, on_its_way, under_way
from dlbricks_tui.estimate.knowledge import Latency
from dlbricks_tui.folders import SAMPLE_MODELS, DataFolder
from dlbricks_tui.host.noise import HostLoad
from dlbricks_tui.host.queue import Place
from dlbricks_tui.jobs.errors import JobError
from dlbricks_tui.jobs.folder import State
from dlbricks_tui.measure.events import Stop
from dlbricks_tui.measure.method import Method
from dlbricks_tui.models.graph import Level
from dlbricks_tui.models.library import Library, ModelSource, source_of
from dlbricks_tui.runs.events import RunBrick
from dlbricks_tui.runtime.errors import RegistryError
from dlbricks_tui.runtime.registry import Registry
from dlbricks_tui.runtime.runtime import Runtime
from dlbricks_tui.runtime.traits import Format
from dlbricks_tui.runtime.variant import InstructionSet, Optimisation, Precision, Variant
from dlbricks_tui.settings.variant import BATCH, INSTRUCTIONS, OPTIMISATION, RUNTIME, THREADS
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.tui.run.boxes import RUN_ROWS
from dlbricks_tui.tui.run.screen import brick_heading, brick_row, head_lines, model_heading, model_row
from dlbricks_tui.tui.run.status import HostNow, status_line
from tests.models.onnx_models import saved, small
from tests.runs.live_runs import MODELS, RUN, in_the_middle, loaded, measured, planned, started
from tests.store.samples import measurement, system
from tests.tui.application import row_of

WIDTHS = st.integers(40, 220)


def half_way() -> RunSnapshot:
    folding = SnapshotBuilder(RUN, MODELS)
    folding.take(in_the_middle())
    return folding.snapshot()


HALF_WAY = half_way()


def text_of(line: Line) -> str:
    return "".join(span.text for span in line)


def status(run: RunSnapshot, width: int) -> Line:
    """Return the line at the foot of the workbench."""
    return status_line(HostNow(run), width, has_keys=True)


def sources(*names: str) -> tuple[ModelSource, ...]:
    return tuple(Library(SAMPLE_MODELS, Path("nowhere")).find_all(names))


@given(WIDTHS, st.lists(st.floats(0, 1), min_size=1, max_size=40))
def test_lines_with_the_load_of_the_host_take_exactly_their_width(width: int, busy: list[float]) -> None:
    run = replace(HALF_WAY, drift=0.2, load=HostLoad(tuple(busy), (0.1,) * len(busy)))
    for each in (status(run, width), *head_lines(run, width)):
        assert width_of(each) == width


def test_no_phrase_about_an_ended_run_is_cut() -> None:
    ended = replace(HALF_WAY, state=State.INTERRUPTED, seconds_spent=55.0, interrupted=1)
    assert " 17 of 40 bricks, 1 of 2 models, 1 failed, in 55 s, 8 known before  " in text_of(status(ended, 120))
    assert " 17 of 40 bricks, 1 of 2 models  " in text_of(status(ended, 80))


def test_the_load_of_the_host_is_shown_beside_a_run_until_it_ends() -> None:
    busy = replace(HALF_WAY, load=HostLoad((1.0, 0.5), (0.0, 0.0)))
    assert "█▅ 1.5 of 2 cores busy " in text_of(status(busy, 160))
    assert "  1.5 of 2 cores busy " in text_of(status(busy, 120))
    assert "busy" not in text_of(status(busy, 80))
    ended = replace(busy, state=State.FINISHED)
    assert "busy" not in text_of(status(ended, 140))


@given(WIDTHS)
def test_cells_are_aligned_with_their_headings(width: int) -> None:
    known = [brick for brick in HALF_WAY.bricks if not brick.reason]
    assert {width_of(brick_row(brick, width)) for brick in known} == {width_of(brick_heading(width))} == {width}
    rows = [model_row(model, width) for model in HALF_WAY.estimates]
    assert {width_of(row) for row in rows} == {width_of(model_heading(width))} == {width}


def test_the_screen_of_a_run_says_what_it_does_now_how_the_host_changed_and_at_last_what_it_has_done() -> None:
    now = text_of(head_lines(replace(HALF_WAY, at_work="loading", drift=0.2), 80)[1])
    assert now.startswith(" loading  ") and now.endswith("host 20.0 % slower than at the start ")
    killed = replace(HALF_WAY, state=State.INTERRUPTED, message="its process was killed")
    assert "its process was killed  p resumes it  17 of 40 bricks" in text_of(head_lines(killed, 80)[1])


def test_the_line_says_what_measures_what_was_interrupted_and_how_busy_the_host_is() -> None:
    assert text_of(status_line(HostNow(), 80, has_keys=True)).strip() == "nothing measures"
    assert text_of(status_line(HostNow(load="host quiet"), 80, has_keys=True)).endswith("  host quiet ")
    replayed = HostNow(replace(HALF_WAY, replay=ReplayPace(4.0)), load="recorded results")
    assert "recorded" not in text_of(status_line(replayed, 120, has_keys=True))
    interrupted = replace(HALF_WAY, state=State.INTERRUPTED)
    assert text_of(status_line(HostNow(interrupted), 80, has_keys=True)).endswith("esc close  w p resume ")
    # Other screens do not have these keys.
    assert "resume" not in text_of(status_line(HostNow(interrupted), 80, has_keys=False))
    other = Place(1, "trace", "alexnet", measures=True, share=0.41, seconds_left=120.0)
    told = text_of(status_line(HostNow(interrupted, (other,)), 100, has_keys=False))
    assert told.startswith(f" trace of alexnet 41 %, 2 min; interrupted: {MODELS[0]}")
    # The time that the run takes counts for more than the names of what waits.
    line = (Place(2, "run", "alexnet", HALF_WAY.run), *(Place(3, "trace", "a-model-with-a-name") for _ in range(2)))
    told = text_of(status_line(HostNow(replace(HALF_WAY, load=None), line), 100, has_keys=True))
    assert " left; then 2 others" in told
    several = replace(interrupted, interrupted=2)
    told = text_of(status_line(HostNow(several), 80, has_keys=True))
    assert told.startswith(" 2 runs interrupted  ") and told.endswith("esc close  J jobs ")
    assert "; 2 runs interrupted" in text_of(status_line(HostNow(several, (other,)), 80, has_keys=False))


def estimate_of(model: str, sequential_ms: float, parallel_ms: float, sampled_layers: int, **others: Any) -> RunModel:
    given = {"low_ms": None, "high_ms": None, "measured_layers": 0, "missing_layers": 0, "unmeasurable_layers": 0}
    told = {"model": model, "sequential_ms": sequential_ms, "parallel_ms": parallel_ms}
    return RunModel(**{**given, **told, "sampled_layers": sampled_layers, **others})


def test_a_provisional_estimate_is_shown_before_any_brick_is_stored() -> None:
    model = MODELS[1]
    whole = RunBrick(9, f"{model} end to end", (model,), whole=True, latency_ms=5.451)
    early = replace(HALF_WAY, bricks=(whole,), estimates=())
    assert on_its_way(early, model) == "A run of this model is in progress: it took 5.451 ms end to end."
    assert under_way(early, model) == UnderWay(on_its_way(early, model), None, Latency(5.451, 5.451, 5.451))
    so_far = estimate_of(model, 5.486, 5.2, 39, low_ms=5.3, high_ms=5.7, half_widths=(0.036,))
    estimated = under_way(replace(early, estimates=(so_far,)), model)
    assert estimated.estimate == Latency(5.486, 5.3, 5.7) and estimated.has_figures
    # A sum that lacks layers is no answer, and none of several variants is.
    assert (
        under_way(replace(early, estimates=(replace(so_far, sampled_layers=9, missing_layers=30),)), model).estimate
        is None
    )
    sampled = replace(whole, samples_ms=(6.0,) * 20)
    assert under_way(replace(early, bricks=(sampled,)), model).end_to_end == Latency(6.0, 6.0, 6.0)
    assert not under_way(replace(early, bricks=(whole, replace(whole, number=10))), model).has_figures
    assert under_way(replace(early, state=State.FINISHED), model) == UnderWay()
    assert on_its_way(replace(early, estimates=(so_far,)), model) == (
        "A run of this model is in progress: it took 5.451 ms end to end, the estimate so far is 5.486 ms ±3.6 %."
    )


@pytest.mark.parametrize(
    ("latency_ms", "half_width", "stop", "sign", "shown"),
    [
        (10.0, 0.009, Stop.NARROW, "done", "0.9 %"),
        (10.0, 0.585, Stop.MOST_SAMPLES, "noisy", "58.5 %"),
        (10.0, 0.209, Stop.MOST_SAMPLES, "noisy", "20.9 %"),
        # Three microseconds are narrow enough; as a share they would look wide.
        (0.005, 0.585, Stop.NARROW, "done", "2.9 µs"),
    ],
)
def test_a_word_tells_how_narrow_the_interval_is(
    latency_ms: float, half_width: float, stop: Stop, sign: str, shown: str
) -> None:
    result = measured(
        0,
        trimmed_mean_ms=latency_ms,
        low_ms=latency_ms * (1 - half_width),
        high_ms=latency_ms * (1 + half_width),
        stop=stop.value,
    )
    folding = SnapshotBuilder(RUN, MODELS)
    folding.take([started(), planned(), loaded(0), result])
    (brick,) = folding.snapshot().bricks
    row = text_of(brick_row(brick, 80))
    assert row.startswith(sign) and row.endswith(f" {shown}")
    assert (brick.state.value == "noisy") is (sign == "noisy")


def test_a_summary_of_samples_is_their_median_and_needs_several() -> None:
    assert summary_of(RunBrick(1, "", samples_ms=(1.0,) * 5)) is None
    reading = summary_of(RunBrick(1, "", samples_ms=(1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 9.0)))
    assert reading is not None
    assert reading.latency_ms == 1.3


@given(st.lists(st.floats(0.001, 1e6), max_size=60), st.integers(0, 40))
def test_a_sparkline_has_one_cell_per_value_and_fits_its_width(values: list[float], width: int) -> None:
    drawn = sparkline(values, width)
    assert len(drawn) == min(len(values), width)
    if len(set(values[-width:])) > 1 and width:
        assert "▁" in drawn and "█" in drawn


def config(**run: object) -> Config:
    """The config with these settings of runs."""
    return Config({**Config().given, **{f"run.{name}": Given(value) for name, value in run.items()}})


@pytest.fixture
def data(tmp_path: Path) -> DataFolder:
    return DataFolder(tmp_path)


def register(data: DataFolder, *runtimes: Runtime) -> None:
    (data.path / "runtimes.json").write_text(json.dumps({"runtimes": [asdict(runtime) for runtime in runtimes]}))


PAPER = Runtime("paper", "/paper/bin/python", "mxnet", "1.5.1", "3.7.16")
OTHER_FORMAT = Runtime("other", "/other/bin/python", "onnxruntime", "1.23.0", "3.12.1")


def test_only_a_few_models_are_measured_end_to_end_by_default(data: DataFolder) -> None:
    few, many = sources("alexnet"), sources("alexnet", "vgg16", "vgg11", "vgg13")
    first = settings_for(Choices(), few, data, Config())
    assert first.end_to_end
    assert not settings_for(Choices(), many, data, Config()).end_to_end
    declined = replace(first, end_to_end=False, target_interval=0.05)
    again = settings_for(Choices(granularity=2), few, data, Config(), declined)
    assert again == replace(declined, granularity=2)


@pytest.mark.openvino
def test_a_framework_in_the_config_stands_for_its_runtime(data: DataFolder) -> None:
    source, named = source_of(saved(data.path, small())), config(runtime="openvino")
    last = replace(settings_for(Choices(), [source], data, Config()), runtime=("of another format",))
    assert settings_for(Choices(), [source], data, named, last).runtime == ("default-openvino",)
    assert first_settings(data, source, Choices(), named).runtime == "default-openvino"


def test_several_values_of_a_setting_are_measured_in_one_run(data: DataFolder) -> None:
    register(data, PAPER)
    found = [replace(source, twin=None) for source in sources("alexnet")]
    settings = replace(
        settings_for(Choices(), found, data, Config()),
        runtime=("default", "paper"),
        threads=(1, 2),
        batch=(1, 8),
        method=Method.ALONE,
    )
    request = request_for(found, {}, settings, data)
    parts = [(it.runtime.name, it.runtime.settings.threads, it.method) for it in request.parts]
    assert parts == [(name, threads, Method.ALONE) for name in ("default", "paper") for threads in (1, 2)]
    assert request.batch_sizes == (1, 8)
    assert [row_of(RUN_ROWS, it).shown(settings) for it in (RUNTIME, THREADS, BATCH)] == ["MXNet, paper", "1,2", "1,8"]


@pytest.mark.openvino
def test_a_method_that_cannot_time_the_layers_is_refused(data: DataFolder) -> None:
    source = source_of(saved(data.path, small()))
    first = settings_for(Choices(), [source], data, Config())
    settings = replace(first, runtime=("default-openvino",), method=Method.ALONE)
    with pytest.raises(JobError, match="OpenVINO times fused layers by method inside only"):
        request_for([source], {}, settings, data)


def test_limits_on_kernels_are_measured_in_one_run(data: DataFolder) -> None:
    path = saved(data.path, small())
    first = settings_for(Choices(), [source_of(path)], data, Config())
    assert [row_of(RUN_ROWS, it).shown(first) for it in (INSTRUCTIONS, OPTIMISATION)] == ["all", "all"]
    several = replace(first, runtime=("default-onnx",), optimisation=(Optimisation.BASIC, Optimisation.ALL))
    assert row_of(RUN_ROWS, OPTIMISATION).shown(several) == "basic,all"
    request = request_for([source_of(path)], {}, several, data)
    assert [it.runtime.kernels.optimisation for it in request.parts] == [Optimisation.BASIC, Optimisation.ALL]
    basic = replace(several, optimisation=(Optimisation.BASIC,))
    (measured,) = request_for([source_of(path)], {}, basic, data).parts
    shown = Choices(runtime=measured.runtime.identity, format=Format.ONNX)
    # The limit in view is that of the next run.
    assert settings_for(shown, [source_of(path)], data, Config(), first).optimisation == (Optimisation.BASIC,)
    assert settings_for(Choices(), [source_of(path)], data, Config(), basic).optimisation == ()


def test_limits_that_a_runtime_lacks_are_refused_with_one_line(data: DataFolder) -> None:
    path = saved(data.path, small())
    settings = settings_for(Choices(), [source_of(path)], data, Config())
    narrow = replace(settings, runtime=("default-onnx",), instructions=(InstructionSet.AVX2,))
    with pytest.raises(RegistryError, match="has no choice of instruction sets: leave avx2 out"):
        request_for([source_of(path)], {}, narrow, data)
    few = replace(settings, runtime=("default-onnx",), probe_seconds=20.0, optimisation=tuple(Optimisation))
    with pytest.raises(JobError, match="a probe measures one combination"):
        request_for([source_of(path)], {}, few, data)


def test_precisions_are_measured_in_one_run(data: DataFolder) -> None:
    path = saved(data.path, small())
    first = settings_for(Choices(), [source_of(path)], data, Config())
    both = replace(first, precision=(Precision.F32, Precision.INT8))
    request = request_for([source_of(path)], {}, both, data)
    assert [it.runtime.settings.precision for it in request.parts] == [Precision.F32, Precision.INT8]
    assert [request.part_label(it) for it in request.parts] == ["f32", "int8"]
    int8 = replace(first, precision=(Precision.INT8,))
    shown = Choices().of_precision(Precision.INT8)
    # The precision in view is that of the next run.
    assert settings_for(shown, [source_of(path)], data, Config(), first).precision == (Precision.INT8,)
    with pytest.raises(RegistryError, match="computes in f32 and not in int8"):
        request_for(sources("alexnet"), {}, replace(int8, runtime=("default",)), data)


def test_a_probe_of_the_start_box_measures_as_other_systems_did(data: DataFolder) -> None:
    found = sources("alexnet")
    ordinary = settings_for(Choices(level=Level.WRITTEN), found, data, Config())
    settings = replace(ordinary, probe_seconds=20.0, threads=(2,))
    with pytest.raises(JobError, match="no results of another system"):
        request_for(found, {}, settings, data)
    runtime = Registry(data.path).find(settings.runtime[0]).with_threads(2).identity
    found_there = measurement(system="c5.xlarge", runtime=runtime, level=Level.WRITTEN, protocol=Method.ALONE.id)
    with ResultsDatabase(data.store) as store:
        store.add(system("c5.xlarge"), found_there)
    request = request_for(found, {id_of(found[0]): {"data": (8, 3, 224, 224)}}, settings, data)
    assert (request.level, request.method, request.time_budget_seconds) == (Level.WRITTEN, Method.ALONE, 20.0)
    assert (request.probe_bricks, request.end_to_end) == (30, False)
    assert dict(request.inputs) == {"data": (8, 3, 224, 224)}
    # A probe is for one run only.
    assert settings_for(Choices(), found, data, Config(), settings).probe_seconds is None
    for refused, reason in (
        (replace(settings, threads=(1, 2)), "one combination"),
        (replace(settings, granularity=2), "granularity 1"),
    ):
        with pytest.raises(JobError, match=reason):
            request_for(found, {}, refused, data)


def test_the_variant_in_view_is_that_of_the_next_run_and_of_the_last_one(data: DataFolder) -> None:
    found = sources("alexnet")
    settings = settings_for(Choices(batch=8, threads=2), found, data, Config())
    assert (settings.batch, settings.threads) == ((8,), (2,))
    # A list of the last run stays if the variant in view is one of it.
    several = replace(settings, batch=(1, 8), threads=())
    assert settings_for(Choices(batch=8), found, data, Config(), several).batch == (1, 8)
    assert settings_for(Choices(batch=4), found, data, Config(), several).batch == (4,)
    assert settings_for(Choices(), found, data, Config(), several).batch == ()


def test_settings_of_a_run_belong_to_its_models_and_general_ones_to_the_session(data: DataFolder) -> None:
    register(data, PAPER)
    first = settings_for(Choices(), sources("squeezenet1.1"), data, Config())
    assert len(first.registered) > 1
    last = replace(first, runtime=first.registered, threads=(1, 2), batch=(4,), target_interval=0.05, end_to_end=False)
    other = settings_for(Choices(), sources("alexnet"), data, Config(), None, last)
    assert (other.runtime, other.threads, other.batch) == (other.registered[:1], (), None)
    assert (other.target_interval, other.end_to_end) == (0.05, False)
    # Its own settings come back, with what another model's run has changed for the session.
    later = replace(other, target_interval=0.02)
    again = settings_for(Choices(batch=4), sources("squeezenet1.1"), data, Config(), last, later)
    assert (again.runtime, again.threads, again.batch, again.target_interval) == (last.runtime, (1, 2), (4,), 0.02)


def test_cells_of_the_matrix_are_measured_in_as_few_runs_as_measure_no_others(data: DataFolder) -> None:
    register(data, PAPER)
    settings = settings_for(Choices(), sources("squeezenet1.1"), data, Config())
    usual = Registry(data.path).find(settings.registered[0])

    def runs(*cells: tuple[Runtime, int | None, int]) -> list[tuple[object, ...]]:
        wanted = [
            WantedCombination(
                runtime.with_threads(threads).identity, Variant(threads=threads, batch=batch), Level.FUSED, again=True
            )
            for runtime, threads, batch in cells
        ]
        found = exactly(settings, wanted, data)
        assert all(it.end_to_end and it.again and it.level is Level.FUSED for it in found)
        return [(it.runtime, it.threads, it.batch) for it in found]

    both = usual.name, PAPER.name
    assert runs((PAPER, 2, 4)) == [(("paper",), (2,), (4,))]
    every = [(it, threads, batch) for it in (usual, PAPER) for threads in (1, 2) for batch in (4, 8)]
    assert runs(*every) == [(both, (1, 2), (4, 8))]
    assert runs((PAPER, 1, 4), (PAPER, 2, 8)) == [(("paper",), (1,), (4,)), (("paper",), (2,), (8,))]
    assert runs((usual, 1, 4), (PAPER, 2, 4)) == [((usual.name,), (1,), (4,)), (("paper",), (2,), (4,))]
    assert runs((PAPER, None, 4), (PAPER, 2, 4)) == [(("paper",), (), (4,)), (("paper",), (2,), (4,))]
    (int8,) = exactly(
        settings, [WantedCombination(PAPER.identity, Variant(precision=Precision.INT8, threads=1), Level.FUSED)], data
    )
    assert (int8.precision, int8.again) == ((Precision.INT8,), False)
    with pytest.raises(RegistryError, match="this host has no runtime mxnet-9"):
        exactly(settings, [WantedCombination("mxnet-9 threads-1", Variant(), Level.FUSED)], data)


def test_only_runtimes_of_the_format_are_offered_and_the_default_comes_first(data: DataFolder) -> None:
    register(data, OTHER_FORMAT, PAPER)
    found = [replace(source, twin=None) for source in sources("alexnet")]
    settings = settings_for(Choices(), found, data, config(runtime="other"))
    assert settings.runtime == settings.registered[:1] == (Registry(data.path).runtime_for().name,)
    assert sorted(settings.registered) == ["default", "paper"]
    last = replace(settings, runtime=("other",))
    assert settings_for(Choices(), found, data, config(runtime="paper"), last).runtime == ("paper",)


def test_models_run_together_if_they_share_a_format(data: DataFolder) -> None:
    found = (*sources("alexnet"), source_of(data.path / "mine.onnx"))
    settings = settings_for(Choices(), found, data, Config())
    assert settings.runtime == ("default-onnx",)
    request = request_for(found, {}, settings, data)
    assert [model.path.name for model in request.models] == ["alexnet.onnx", "mine.onnx"]
    with pytest.raises(RegistryError, match="choose models of one format"):
        settings_for(Choices(), [source_of(data.path / name) for name in ("a-symbol.json", "b.onnx")], data, Config())


def test_a_run_refuses_models_with_different_input_shapes(data: DataFolder) -> None:
    found = sources("alexnet", "vgg16")
    shapes = {id_of(found[0]): {"data": (8, 3, 224, 224)}}
    with pytest.raises(JobError, match="alexnet has other input shapes"):
        request_for(found, shapes, settings_for(Choices(), found, data, Config()), data)
