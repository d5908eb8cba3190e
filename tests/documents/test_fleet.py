from dataclasses import replace

from dlbricks_tui.answers.fleets.results import FleetEstimate, FleetModel, FleetResult, LeftOutModel, fleet_result
from dlbricks_tui.documents.fleet import (
    dollars,
    fastest_sentence,
    fleet_parts,
    host_columns,
    hosts_sentence,
    latency_on,
)
from dlbricks_tui.documents.parts import Table
from dlbricks_tui.fleet.events import HostState, ModelLeftOut
from dlbricks_tui.fleet.progress import FleetProgress, HostRow
from dlbricks_tui.host.queue import this_process
from dlbricks_tui.runs.run_folder import RunState, State
from tests.documents.test_layout import texts
from tests.fleet.sample_fleet import EVENTS, MODELS, RUN, STARTED


def estimate(
    ms: float | None, host: str = "a", *, predicted: int = 0, missing: int = 0, price: float | None = None
) -> FleetEstimate:
    return FleetEstimate(
        host=host,
        system="",
        sequential_ms=ms,
        low_ms=None,
        high_ms=None,
        measured_layers=1,
        predicted_layers=predicted,
        missing_layers=missing,
        per_second=None,
        dollars_per_million=price,
    )


def model(*order: tuple[str, ...], settled: bool = False, estimates: tuple[FleetEstimate, ...] = ()) -> FleetModel:
    return FleetModel(model="m", runtime="r", order=order, settled=settled, estimates=estimates)


def sample() -> tuple[FleetResult, tuple[HostRow, ...]]:
    progress = FleetProgress()
    for event in EVENTS:
        progress.take(event)
    progress.take(ModelLeftOut(model="gpt", reason="it needs a text"))
    state = RunState(RUN, State.RUNNING, this_process(), MODELS, STARTED, STARTED)
    return fleet_result(state, progress), tuple(progress.hosts.values())


def test_a_fleet_run_has_its_hosts_the_estimates_on_them_and_their_order() -> None:
    found, hosts = sample()
    assert found.left_out == (LeftOutModel(model="gpt", reason="it needs a text"),)
    assert texts(100, *fleet_parts(found, hosts)) == [
        "host  state      system    bricks  failed  disturbed  left",
        "c7i   measuring  c7i     45 of 60       1   3 rounds  42 s",
        "m8g   probing    m8g     12 of 60       1   3 rounds  42 s",
        "old   refused    old",
        "old refused: it has dlbricks 0.1.0, and 0.2.0 is needed",
        "gpt is left out: it needs a text",
        "",
        "model          host  latency   95 % interval  per second  price",
        "resnet50_v1    m8g    ~31.00  29.45 to 32.55        32.3  $1.21",
        "               c7i     40.00  38.00 to 42.00        25.0  $1.98",
        "squeezenet1.1  c7i     9.000  8.550 to 9.450       111.1  $0.45",
        "               m8g         -",
        "by onnxruntime-1.32.0 threads-1; latencies in milliseconds; ~ is predicted in part; prices are of a",
        "million inferences",
        "resnet50_v1: m8g < c7i (settled with 95 % confidence)",
        "squeezenet1.1: c7i < m8g (not settled)",
        "a < b: a is faster; a = b: equally fast, within 2 %",
    ]


def test_models_by_several_runtimes_have_their_runtime() -> None:
    found, hosts = sample()
    first, second = found.models
    both = replace(found, models=(first, replace(second, runtime="mxnet-1.9.1")))
    told = texts(120, *fleet_parts(both, hosts))
    assert told[8].startswith("resnet50_v1    onnxruntime-1.32.0 threads-1  m8g ")
    assert "squeezenet1.1 by mxnet-1.9.1: c7i < m8g (not settled)" in told
    assert not any("; latencies in milliseconds" in line for line in told)


def test_a_panel_tells_the_reasons_for_states_beside_the_hosts_and_draws_bars() -> None:
    _, hosts = sample()
    titles, first, _, last = texts(120, Table(host_columns(hosts, in_panel=True), hosts))
    assert titles.endswith("left  reports") and "█" in first
    assert last.endswith("it has dlbricks 0.1.0, and 0.2.0 is needed")
    (styled,) = [it.style for it in host_columns(hosts) if it.title == "state"]
    assert [styled(it) for it in hosts] == ["good", "good", "bad"] if callable(styled) else False


def test_only_a_host_at_work_has_time_left() -> None:
    done = (HostRow("a", state=HostState.DONE, bricks=4, of=4, seconds_left=100.0),)
    assert [it.title for it in host_columns(done)][-1] == "disturbed"


def test_a_latency_is_marked_where_it_is_predicted_or_lacks_layers() -> None:
    found = [latency_on(it) for it in (estimate(2.0), estimate(2.0, predicted=1), estimate(2.0, missing=1))]
    assert found == ["2.000", "~2.000", "…2.000"]
    assert latency_on(estimate(None)) == "-"


def test_a_price_is_in_dollars() -> None:
    assert [dollars(estimate(2.0, price=1234.5)), dollars(estimate(2.0))] == ["$1,234.50", ""]


def test_hosts_are_fastest_so_far_until_that_is_final() -> None:
    assert fastest_sentence([model(("a",)), model(("a",))], is_final=True) == "a is fastest for every model"
    assert fastest_sentence([model(("a",)), model(("a",))], is_final=False) == "a is fastest for every model so far"
    told = fastest_sentence([model(("a", "b")), model()], is_final=True)
    assert told == "a and b are fastest for every model so far"
    told = fastest_sentence([model(("a",)), model(("b",))], is_final=False)
    assert told.startswith("The fastest host so far differs: ")


def test_a_model_is_fastest_on_the_first_host_while_there_is_no_order() -> None:
    estimates = estimate(2.0, "b"), estimate(3.0, "a"), estimate(None, "c")
    assert hosts_sentence(model(estimates=estimates)) == "b: 2.000 ms; a takes 1.50 times as long; the order is open."
    settled = model(("b", "a"), settled=True, estimates=estimates)
    assert hosts_sentence(settled) == "b and a: 2.000 ms; the order is settled."
    assert hosts_sentence(model(estimates=estimates[2:])) == "No host has an estimate yet."
