"""The events of runs, traces, fleets and load tests."""

from dataclasses import replace
from typing import Any

from dlbricks_tui.fleet.request import FleetHostState, FleetProgress, HostBrickFailed, HostChanged
from dlbricks_tui.host.noise import HostLoad
from dlbricks_tui.host.queue import Place
from dlbricks_tui.jobs.events import Event, Paused, Resumed, Waiting
from dlbricks_tui.jobs.folder import State
from dlbricks_tui.measure.events import BatchStarted, DriftNoted, RoundRepeated
from dlbricks_tui.runs.events import (
    Disturbances,
    EstimateChanged,
    FailedBefore,
    LayerUnmeasurable,
    LevelLowered,
    ModelLeftOut,
    ModelLoading,
    PartStarted,
    RunProgress,
    ShapesRemembered,
    WorkerReplaced,
)
from dlbricks_tui.scenarios.kinds import ScenarioKind
from dlbricks_tui.scenarios.scenario import LoadReady, LoadTestsKept, LoadTestStarted, Scenario
from dlbricks_tui.traces.trace import LevelDone, LevelStarted, RoundStarted, TraceLevel
from dlbricks_tui.wording.events import (
    all_combinations,
    counts_of,
    doing_now,
    estimate_so_far,
    noise_counts,
    noise_note,
    note_of,
)
from dlbricks_tui.wording.events import measured as timed
from dlbricks_tui.wording.jobs import (
    fleet_line,
    host_line,
    message_line,
    note_line,
    progress_line,
    scenario_line,
    settled_line,
    trace_line,
    trace_question,
)
from dlbricks_tui.wording.numbers import signed_ms
from dlbricks_tui.wording.runs import NONE_DONE, Done, host_in_words, how_far, line_of_work, load_in_words
from tests.documents.snapshots import check
from tests.runs.live_runs import (
    at,
    ended,
    estimate,
    failed,
    in_the_middle,
    loaded,
    measured,
    planned,
    round_done,
    started,
)

PLANNED = replace(
    planned(bricks=9, reused=1, expected_seconds=200.0),
    bricks_failed_before=2,
    models=5,
    models_reused=1,
    models_failed_before=2,
    bricks_imprecise=2,
    bricks_of_slow_host=3,
    combination="two threads",
)
FEW = planned(bricks=3, reused=1)
EVENTS: tuple[Event, ...] = (
    started(),
    ModelLoading(model="m", number=1, of=2),
    ModelLeftOut(model="m", reason="it is empty"),
    ModelLeftOut(model="m", reason="m: it is empty"),
    ShapesRemembered(model="m", shapes="d=1,3"),
    LevelLowered(model="m", reason="why"),
    LayerUnmeasurable(model="m", layer="fc", reason="why"),
    Waiting(holder="run x of ada"),
    PLANNED,
    replace(FEW, models_reused=1),
    replace(FEW, bricks_reused=3),
    replace(FEW, bricks=0, bricks_reused=0, models=0),
    PartStarted(part="two threads", number=1, of=2, later_seconds=9),
    replace(failed(1), brick="b" * 64),
    FailedBefore(brick="b", context="", model="", label="conv", reason="hung"),
    replace(loaded(0), allocates=True),
    WorkerReplaced(message="it died"),
    Paused(),
    Resumed(),
    ended(seconds=100.0),
    ended(State.FAILED, "why"),
)


def test_events_have_sentences_unless_lists_and_counters_show_them() -> None:
    told = []
    for event in EVENTS:
        note = note_of(event)
        assert note is not None and note.when == event.when
        told.append(f"{note.tone.value}: {note.text}")
    check("events", {"of a run": told, "of all combinations": all_combinations(2, PLANNED)}, width=200)
    shown: list[Event] = [estimate("m", 0.1), RoundRepeated(reason="noise", seconds_left=1.0)]
    assert [note_of(event) for event in shown] == [None, None]
    assert timed(measured(1)).startswith("measured: ") and timed(measured(1)).endswith(")")


def test_a_run_does_one_thing_at_a_time() -> None:
    progress, other = RunProgress(), RunProgress()
    assert counts_of(other) == (NONE_DONE, NONE_DONE)
    few = [BatchStarted(number=1, of=1, programs=2), loaded(1), round_done([1], 0), loaded(2), round_done([1, 2], 1)]
    done: list[list[str]] = []
    for of, events in ((progress, [*in_the_middle(), ended()]), (other, [planned(bricks=2, reused=0), *few])):
        done.append([])
        for event in events:
            of.take(event)
            done[-1].append(doing_now(of) or "nothing")
    check("doing-now", {"a run": dict.fromkeys(done[0]), "of two bricks": done[1]}, width=140)
    assert counts_of(other)[1] == Done(0, 2)
    other.take(Paused(when=at(1)))
    assert doing_now(other) == ""


def test_the_progress_of_a_run_and_the_load_of_its_host_are_told() -> None:
    layers: dict[str, Any] = {"measured_layers": 3, "missing_layers": 0, "unmeasurable_layers": 0}
    whole = EstimateChanged(model="m", parallel_ms=1.0, sequential_ms=5.8, low_ms=5.6, high_ms=5.9, **layers)
    gaps = replace(whole, missing_layers=1, unmeasurable_layers=2, sampled_layers=4)
    estimates = whole, gaps, replace(whole, predicted_layers=2, missing_layers=2)
    bricks = Done(8, 42)
    counts: list[tuple[Any, ...]] = [(bricks, NONE_DONE), (bricks, Done(0, 1)), (bricks, NONE_DONE, 1, 100.0, 2)]
    running = Place(1, title="squeezenet1.1", measures=True, share=0.41, seconds_left=120.0)
    waiting = [Place(2, title="alexnet"), Place(3, title="vgg16")]
    loads = ((0.1, 0.05), (0.0, 0.0)), ((0.4, 0.05), (0.0, 0.0)), ((0.0,), (0.3,)), ((1.0,), (0.01,))
    hosts = [HostLoad(*it) for it in (((0.9, 1.0), (0.0, 0.0)), *loads)]
    noise, noise_so_far = Disturbances(), [noise_note(Disturbances())]
    noise.take(RoundRepeated(when=at(1), reason="others", seconds=2.0, seconds_left=9.0))
    noise.take(DriftNoted(when=at(2), reference_ms=1.08, usual_ms=1.0))
    check(
        "progress",
        {
            "estimates": [estimate_so_far(it) or "" for it in estimates],
            **{f"counts {number}": [it.text for it in how_far(*each)] for number, each in enumerate(counts, 1)},
            "work on a host": map(line_of_work, ([running, *waiting], waiting, [replace(running, share=None)])),
            "loads": map(load_in_words, hosts),
            "hosts": map(host_in_words, hosts),
            "a note of noise": [*noise_so_far, noise_note(noise)],
            "noise": map(noise_counts, (Disturbances(batches=1, slower=-0.1), Disturbances(batches=2))),
        },
    )
    assert how_far(NONE_DONE, NONE_DONE) == []
    lacking: tuple[dict[str, Any], ...] = ({"sequential_ms": None}, {"low_ms": None}, {"high_ms": None})
    assert [estimate_so_far(replace(whole, **it)) for it in lacking] == [None] * 3


LAYER = TraceLevel.LAYER


def test_traces_and_fleets_have_lines() -> None:
    done = LevelDone(level=LAYER, inference_ms=3.6, overhead_ms=0.2)
    messages: tuple[Event, ...] = (
        Waiting(holder="run x"),
        RoundStarted(number=1, rounds=2),
        RoundStarted(number=1, rounds=1),
        LevelStarted(level=LAYER),
        done,
        replace(done, overhead_ms=None),
        replace(done, inference_ms=None, overhead_ms=None, missing="why"),
    )
    # Only a host that measures has time left.
    row = HostChanged(host="a", state=FleetHostState.MEASURING, bricks=3, of=1200, failed=2, seconds_left=100.0)
    hosts = row, HostChanged(host="a", state=FleetHostState.IDLE, bricks=3, of=4, seconds_left=100.0)
    lost, gone = (
        HostChanged(host="a", state=FleetHostState.LOST, message="no answer"),
        HostChanged(host="a", state=FleetHostState.LOST),
    )
    brick = HostBrickFailed(host="a", brick="b", label="conv", reason="why")
    measuring = HostChanged(host="a", state=FleetHostState.MEASURING, message="x")
    notes = [
        note_line(it, FleetProgress())
        for it in (ModelLeftOut(model="m", reason="m: why"), brick, lost, gone, measuring)
    ]
    # Attempts to reach a host have a line together.
    for before in (replace(row, message="x"), gone, replace(gone, message="x")):
        progress = FleetProgress()
        progress.hosts = {"a": before}
        notes.append(note_line(lost, progress))
    fleets = [fleet_of(names) for names in ("", "abcd", "abcdef")]
    check(
        "traces-and-fleets",
        {
            "a trace": map(trace_line, messages),
            "its question": trace_question("net\n"),
            "differences": [signed_ms(it) for it in (-0.2, 0.0, 0.2)],
            "settled orders": settled_line([True, False]),
            "hosts": map(host_line, hosts),
            "fleets": map(fleet_line, fleets),
            "what a user should know": [it or "nothing" for it in notes],
        },
    )


def fleet_of(names: str) -> FleetProgress:
    progress = FleetProgress()
    progress.hosts = {name: HostChanged(host=name) for name in names}
    return progress


SERVER = Scenario(kind=ScenarioKind.SERVER, percentile=99.0, bound_ms=50.0)


def test_scenarios_and_load_tests_are_told() -> None:
    offline = Scenario(kind=ScenarioKind.OFFLINE, percentile=99.0)
    scenarios = (
        SERVER,
        replace(SERVER, rate=41.25),
        replace(SERVER, rate=5.0, bound_ms=None, percentile=99.9),
        replace(SERVER, batch_sizes=(1, 2, 4), instances=2, full=True),
        Scenario(kind=ScenarioKind.SINGLE, percentile=90.0),
        Scenario(kind=ScenarioKind.MULTI, percentile=99.0, bound_ms=80.0),
        replace(offline, batch_sizes=(1, 2, 4)),
    )
    beginning = LoadTestStarted(number=2, rate=None, batch_size=4, queries=64, seconds_left=None)
    # Four more as long as this one of 8 s.
    search = replace(beginning, number=3, rate=41.25, tests=7, seconds_left=60.0)
    ready = LoadReady(service_ms=8.0, passing_ms=0.1234, wake_up_ms=0.9, logs="")
    check(
        "scenario-words",
        {
            "scenarios": map(scenario_line, scenarios),
            "tests": [message_line(it, SERVER) for it in (beginning, LoadTestsKept(tests=1), LoadTestsKept(tests=5))],
            "instances": message_line(ready, replace(SERVER, instances=2)),
            "progress": [
                progress_line(beginning, SERVER, 0, 0, 1.0),
                progress_line(beginning, SERVER, 16, 4, 2.0),
                progress_line(search, SERVER, 16, 0, 2.0),
                progress_line(search, SERVER, 0, 0, 0.0),
                progress_line(beginning, offline, 100, 0, 3.0),
            ],
        },
        width=140,
    )
