"""Systems, their noise, and fleets."""

from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest

from dlbricks_tui.api.fleets import FleetEstimate, FleetModel, FleetResult, fleet_result
from dlbricks_tui.api.store_contents import KnownSystem
from dlbricks_tui.documents.fleet import (
    dollars,
    estimate_columns,
    fastest_sentence,
    fleet_parts,
    fleet_question,
    host_columns,
    hosts_picture,
    hosts_sentence,
    latency_on,
)
from dlbricks_tui.documents.parts import Part, Table
from dlbricks_tui.documents.systems import comparison_parts, finding_parts, system_columns, system_parts
from dlbricks_tui.fleet.request import FleetHostState, FleetProgress, HostChanged
from dlbricks_tui.host.noise import Finding, NoiseVerdict
from dlbricks_tui.host.queue import this_process
from dlbricks_tui.jobs.folder import JobState, State
from dlbricks_tui.models.graph import Level
from dlbricks_tui.runs.events import ModelLeftOut
from dlbricks_tui.store.selections import Combination
from dlbricks_tui.wording import numbers
from tests.documents.snapshots import check
from tests.estimate.test_comparison import incomplete, on, ranked
from tests.fleet.sample_fleet import EVENTS, MODELS, RUN, STARTED
from tests.store.samples import WHEN, peaks, runtime, system

WAYS = (
    Combination("c5.xlarge", "mxnet-1.9.1", Level.FUSED, "hot", 3, 4, 1),
    Combination("c5.xlarge", "unknown-1", Level.WRITTEN, "alone", 1, 1, 2),
)
HOST = KnownSystem(system(), 0.17, WAYS, is_host=True, peaks=(peaks(),), newest=WHEN, models=2)
OTHER = KnownSystem(system("bare", cpu="", cores=0, memory_bytes=0, instance_type="", facts=()), None, ())


@pytest.fixture(autouse=True)
def _an_hour_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numbers, "now", lambda: datetime.fromisoformat(WHEN).timestamp() + 3600)


def table(*known: KnownSystem) -> Part:
    return Table(system_columns(known), known)


def test_systems_have_a_row_each_and_all_that_is_known_of_one() -> None:
    facts = (("smt", True), ("turbo_boost", False), ("governor", None), ("numa", 2))
    named = replace(HOST, system=system(facts=facts))
    check(
        "systems",
        {
            "with peaks": [table(HOST, OTHER)],
            "without peaks": [table(replace(HOST, peaks=(), is_host=False), OTHER)],
            "the host": system_parts(named, {"mxnet-1.9.1": runtime()}),
            "a bare one": system_parts(OTHER, {}),
        },
    )


def test_models_on_systems_are_a_list_or_a_grid() -> None:
    lacking = replace(incomplete(), end_to_end=None)
    of_one = ranked(on("c5.xlarge", 6), on("c5.2xlarge", 4), lacking)
    of_other = ranked(on("c5.xlarge", 2), on("mine", 1))
    check(
        "systems-compared",
        {
            "one model": comparison_parts({"net": of_one}),
            "one system": comparison_parts({"one": ranked(on("c5.xlarge", 6)), "two": ranked(on("c5.xlarge", 5))}),
            "several of both": comparison_parts({"one": of_one, "two": of_other, "none": ranked(on("mine", 3))}),
        },
    )


def test_a_disturbance_has_its_effect_and_cure_below_and_others_a_line() -> None:
    cases = {
        "noisy": Finding("other load", "90 % busy", NoiseVerdict.NOISY, "outliers", "end what computes"),
        "quiet": Finding("clock", "tsc", NoiseVerdict.QUIET, "none", ""),
        "unknown": Finding("turbo", "unknown", NoiseVerdict.UNKNOWN, "samples drift", ""),
    }
    check("noise", {name: finding_parts(it) for name, it in cases.items()}, width=80)


def estimate(
    ms: float | None, host: str = "a", *, predicted: int = 0, missing: int = 0, price: float | None = None
) -> FleetEstimate:
    unknown: dict[str, Any] = dict.fromkeys(("low_ms", "high_ms", "per_second"))
    layers: dict[str, Any] = {"measured_layers": 1, "predicted_layers": predicted, "missing_layers": missing}
    return FleetEstimate(host=host, system="", sequential_ms=ms, dollars_per_million=price, **unknown, **layers)


def model(*order: tuple[str, ...], settled: bool = False, estimates: tuple[FleetEstimate, ...] = ()) -> FleetModel:
    return FleetModel(model="m", runtime="r", order=order, settled=settled, estimates=estimates)


def sample() -> tuple[FleetResult, tuple[HostChanged, ...]]:
    progress = FleetProgress()
    for event in EVENTS:
        progress.take(event)
    progress.take(ModelLeftOut(model="gpt", reason="it needs a text"))
    state = JobState(RUN, State.RUNNING, this_process(), MODELS, STARTED, STARTED)
    return fleet_result(state, progress), tuple(progress.hosts.values())


def test_a_fleet_run_has_its_hosts_the_estimates_on_them_and_their_order() -> None:
    found, hosts = sample()
    first, second = found.models
    lacking = estimate(7.0, "m8g", missing=1)
    mixed = replace(found, models=(first, replace(second, runtime="mxnet-1.9.1", estimates=(lacking,), settled=True)))
    check(
        "fleet",
        {
            "of one runtime": fleet_parts(found, hosts),
            "of several runtimes": fleet_parts(mixed, hosts[1:]),
            "without models": fleet_parts(replace(found, models=()), hosts[:1]),
            "in a panel": [Table(host_columns(hosts, in_panel=True), hosts)],
            "in a panel without reports": [Table(host_columns(hosts[:1], in_panel=True), hosts[:1])],
            "estimates with bars": [Table(estimate_columns(40.0), first.estimates)],
            "the picture": hosts_picture(first),
            "the picture of a part": hosts_picture(replace(second, estimates=(lacking, estimate(8.0, price=2.0)))),
            "no picture": hosts_picture(replace(first, estimates=(estimate(None),))),
        },
    )
    check("fleet-narrow", {"estimates": [Table(estimate_columns(), first.estimates)]}, width=42)
    # Only a host at work has time left.
    done = (HostChanged(host="a", state=FleetHostState.DONE, bricks=4, of=4, seconds_left=100.0),)
    assert [it.title for it in host_columns(done)][-1] == "disturbed"


def test_fleets_are_told_in_sentences() -> None:
    estimates = estimate(2.0, "b"), estimate(3.0, "a"), estimate(None, "c")
    latencies = estimate(2.0), estimate(2.0, predicted=1), estimate(2.0, missing=1), estimate(None)
    alike, apart = [model(("a",)), model(("a",))], [model(("a",)), model(("b",))]
    of_order = model(estimates=estimates), model(("b", "a"), settled=True, estimates=estimates)
    check(
        "fleet-words",
        {
            "questions": [fleet_question("which-host", ["a", "b"], 2), fleet_question("how-fast", ["a"], 1)],
            "latencies": map(latency_on, latencies),
            "prices": [dollars(estimate(2.0, price=1234.5)), dollars(estimate(2.0))],
            "the fastest": fastest_sentence(alike, is_final=True),
            "the fastest so far": fastest_sentence(alike, is_final=False),
            "two of one model": fastest_sentence([model(("a", "b")), model()], is_final=True),
            "others for other models": fastest_sentence(apart, is_final=False),
            "orders": [*map(hosts_sentence, of_order), hosts_sentence(model(estimates=estimates[2:]))],
        },
    )
