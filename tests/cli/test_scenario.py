"""`dlbricks scenario`: predictions from a store, and measurements by code that pretends to run LoadGen or an engine."""

import io
import json
import os
import re
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta, timezone
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from rich.console import Console

from dlbricks_tui.api.jobs import JobWords
from dlbricks_tui.api.loads import TokenLoadAnswer, TokenLoadOptions
from dlbricks_tui.bricks.decomposition import decompose
from dlbricks_tui.bricks.identity import whole_model
from dlbricks_tui.cli.progress import JobNarration
from dlbricks_tui.estimate import predictors as predictions
from dlbricks_tui.host.fingerprint import fingerprint
from dlbricks_tui.jobs.events import Event
from dlbricks_tui.language.architecture import WeightPrecision
from dlbricks_tui.language.orders import LanguageFailed, LanguageMeasured
from dlbricks_tui.models.graph import Level
from dlbricks_tui.scenarios.kinds import ScenarioKind
from dlbricks_tui.scenarios.scenario import LoadProgress, LoadTestDone, LoadTestStarted, Scenario
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.records import LoadTest
from dlbricks_tui.wording.jobs import LoadWords
from tests.api.language_answers import token_load_answer
from tests.cli.people import Command, document, one_line, schema_kept
from tests.cli.people import Command as Answer
from tests.estimate.stored import results_of
from tests.estimate.table1 import table1
from tests.jobs.carrying import stands_for_processes
from tests.models.onnx_models import saved, small
from tests.store.samples import load_test, system

pytestmark = pytest.mark.usefixtures("rough_predictions", "shared_cache")

FAKE = Path(__file__).parents[1] / "jobs" / "pretending.py"
SQUEEZENET = decompose(table1()["16"])
MXNET = "mxnet-1.9.1 python-3.11 threads-1"
WHERE: dict[str, Any] = {"system": "c5.xlarge", "runtime": MXNET}
CONTRACT = {"p50_ms", "p90_ms", "p99_ms", "p999_ms", "per_second", "valid", "queries"}
# The whole model as MXNet runs it, 8 ms.
TIMED = results_of(SQUEEZENET, MXNET, 8.0)
SERVER = ("--kind", "server", "--bound-ms", "20")


@pytest.fixture
def predict(with_records: Answer) -> Answer:
    """Predict a scenario of SqueezeNet from these records, and return the status and both outputs."""

    where = ("--system", "c5.xlarge", "--runtime", MXNET)
    return lambda records, *words: with_records(records, "scenario", "table1:16", "--predict", *where, *words)


@pytest.fixture
def measure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dlbricks: Answer) -> Answer:
    """Measure a scenario of a tiny model on this host by the fake process, which ends in a manner."""
    # The fake process does without it, and Python 3.14 has to.
    monkeypatch.setitem(sys.modules, "mlperf_loadgen", ModuleType("mlperf_loadgen"))
    model = saved(tmp_path, small())
    with ResultsDatabase(tmp_path / "data" / "store") as store:
        store.add(system(fingerprint().id))

    def run(manner: str, *arguments: str) -> tuple[int, str, str]:
        stands_for_processes(monkeypatch, FAKE, "scenario", manner=manner)
        return dlbricks("scenario", model, "--runtime", "onnxruntime", "--threads", "1", *arguments)

    return run


def stored(**fields: Any) -> LoadTest:
    """A stored load test of the model."""
    known = {"model": whole_model(SQUEEZENET.graph).key, "name": SQUEEZENET.graph.name, "level": Level.WRITTEN}
    return load_test(**{**WHERE, **known, **fields})


def test_a_prediction_has_the_keys_of_the_contract_with_intervals(predict: Answer) -> None:
    found = document(predict(TIMED, *SERVER, "--json"))
    assert (found["kind"], found["measured"], found["stored"], found["bound_ms"]) == ("server", None, None, 20.0)
    schema = schema_kept(found, "scenario")
    assert {"kind", "predicted", "measured"} <= set(schema["$defs"]["ScenarioResult"]["required"])
    assert found["predicted"].keys() >= CONTRACT
    low, high = found["predicted"]["intervals"]["p99_ms"]
    assert low <= found["predicted"]["p99_ms"] <= high
    assert 0 < found["predicted"]["per_second"] < 125
    # A rate beyond the bound is a negative verdict.
    status, out, _ = predict([], *SERVER, "--rate", "124", "--json")
    assert (status, json.loads(out)["predicted"]["valid"]) == (1, False)
    # Figures are told to the microsecond.
    status, out, _ = predict([], "--kind", "single")
    line = next(line for line in out.splitlines() if line.startswith("p99 "))
    assert (status, len(line.split()[1].removeprefix("~").partition(".")[2])) == (0, 3)
    assert "predicted p90" not in out, "a picture is for servers"


def test_the_tested_figure_is_the_answer_and_the_prediction_stands_second(predict: Answer) -> None:
    _, out, _ = predict(TIMED, *SERVER)
    assert re.fullmatch(r"~[\d.]+ requests/s \(.*\) with p99 within 20 ms", out.splitlines()[1])
    assert "~ predicted p99   ─ bound 20 ms" in out and "│ highest rate ~" in out
    # The table says what the picture means.
    assert "p99 is ~" not in out
    when = (datetime.now(timezone.utc) - timedelta(minutes=4)).isoformat()
    tests = [stored(rate=38.04, when=when), stored(rate=90.0, valid=False), stored(rate=70.0, bound_ms=30.0)]
    _, out, _ = predict(tests, *SERVER)
    assert out.splitlines()[1] == "38.04 requests/s with p99 within 20 ms, measured 4 min ago"
    assert re.fullmatch(r"predicted ~[\d.]+/s \([\d.]+ to [\d.]+\)", out.splitlines()[2])
    assert json.loads(predict([], *SERVER, "--json")[1])["stored"]["rate"] == 38.04


def test_an_impossible_bound_is_a_negative_verdict_in_one_line(predict: Answer) -> None:
    status, out, err = predict(TIMED, "--kind", "server", "--bound-ms", "1", "--json")
    assert (status, json.loads(out)["predicted"]) == (1, None)
    assert "give a higher --bound-ms" in err


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ((), "--kind"),
        (("--kind", "burst"), "burst"),
        (("--kind", "server"), "--bound-ms"),
        (("--kind", "single", "--rate", "10"), "--rate"),
        (("--kind", "single", "--batch", "4"), "batch"),
        ((*SERVER, "--both"), "--both"),
    ],
)
def test_bad_input_gets_one_line(predict: Answer, arguments: Sequence[str], complaint: str) -> None:
    assert complaint in one_line(predict(TIMED, *arguments))


def test_a_measurement_has_verdict_confidence_and_logs_and_narrates_its_progress(
    measure: Answer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(predictions, "prior_of", lambda *_: None)
    status, out, err = measure("done", *SERVER, "--both", "--json")
    found = json.loads(out)
    measured = found["measured"]
    # Nothing is stored to predict from, and the measurement takes place all the same.
    assert (status, found["predicted"], found["stored"]) == (0, None, None)
    assert measured.keys() >= CONTRACT
    assert (measured["valid"], measured["bound_met"], measured["confidence"]) == (True, True, 0.99)
    assert (measured["rate"], measured["passing_ms"]) == (40.0, 0.15)
    assert measured["logs"] == str(tmp_path / "data" / "scenarios" / measured["id"])
    assert [(it["rate"], it["passed"]) for it in found["tests"]] == [(40.0, True), (44.0, False)]
    assert found["warnings"] == ["the clock was set while the test ran"]
    for said in (
        "no prediction: ",
        "waiting for another run",
        "test 1: 40.00/s, p99 12.00 ms, 40.00/s served, passed",
    ):
        assert said in err
    assert "\x1b" not in err + out


def test_the_threads_of_the_settings_are_those_of_each_instance(dlbricks: Command, tmp_path: Path) -> None:
    model, threads = saved(tmp_path, small()), fingerprint().cores
    asked = ("scenario", model, "--kind", "offline", "--batch", "1", "--instances", "2", "--predict")
    _, _, told = dlbricks("--set", f"run.threads={threads}", *asked)
    assert told.startswith(f"{2 * threads} threads on ")


def test_a_bound_that_is_not_met_is_status_1(measure: Answer) -> None:
    status, out, _ = measure("invalid", *SERVER)
    assert status == 1 and "failed (LoadGen: invalid)" in out and "the test had too few requests" in out
    status, out, err = measure("done", "--kind", "single", "--bound-ms", "9", "--precision", "int8", "--quiet")
    assert status == 1 and "the bound of 9 ms is not met: p90 is 11." in out
    # A quiet measurement narrates warnings only.
    accuracy, clock = err.splitlines()
    assert accuracy.startswith("int8: accuracy was not checked")
    assert clock == "the clock was set while the test ran"


def test_a_measurement_that_fails_is_status_1_with_one_line_and_a_document(measure: Answer) -> None:
    status, out, err = measure("fails", *SERVER, "--quiet", "--json")
    found = json.loads(out)
    assert (status, found["measured"], err.count("\n")) == (1, None, 1)
    assert found["obstacle"] == "the scenario was not measured: the worker was lost: killed by signal 9"
    assert found["obstacle"] in err
    assert [it["rate"] for it in found["tests"]] == [40.0, 44.0]
    status, out, err = measure("dies", *SERVER, "--quiet")
    assert (status, out, err.count("\n")) == (1, "", 1) and "there is no room for the model" in err


def test_without_loadgen_one_line_says_how_to_install_it(measure: Answer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mlperf_loadgen", None)
    err = one_line(measure("done", *SERVER))
    assert "pip install 'dlbricks-tui[scenarios]'" in err


def test_scenarios_of_other_systems_are_predicted_only(measure: Answer, tmp_path: Path) -> None:
    with ResultsDatabase(tmp_path / "data" / "store") as store:
        store.add(system("c5.xlarge"))
    status, _, err = measure("done", *SERVER, "--system", "c5.xlarge")
    assert (status, err.count("\n")) == (2, 1)
    assert "name no system, or predict only" in err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_the_measurement_and_its_process(measure: Answer, tmp_path: Path, number: int) -> None:
    file, ended = tmp_path / "data" / "fake.pid", tmp_path / "data" / "ended"

    over = threading.Event()

    def interrupt() -> None:
        while not file.exists() or not file.read_text():
            if over.wait(0.01):
                return
        os.kill(os.getpid(), number)

    thread = threading.Thread(target=interrupt)
    thread.start()
    status, out, err = measure("waits", *SERVER)
    over.set()
    thread.join()
    assert (status, out) == (130, ""), err
    assert err.endswith("stored 1 test that had ended\ndlbricks: interrupted\n")
    # The process took the signal, and is waited for: it is no zombie.
    assert ended.exists()
    with pytest.raises(ProcessLookupError):
        os.kill(int(file.read_text()), 0)


def test_a_terminal_shows_how_far_a_test_is() -> None:
    screen = io.StringIO()
    scenario = Scenario(kind=ScenarioKind.SERVER, percentile=99.0, bound_ms=20.0)
    console = Console(file=screen, force_terminal=True, width=100)
    narration = JobNarration(JobWords(LoadWords(scenario), (LoadProgress,), ()), console)
    narration.take(LoadTestStarted(number=3, rate=41.25, batch_size=1, queries=662, seconds_left=12.0))
    latencies = (*[8.0] * 199, 25.0)
    narration.take(LoadProgress(number=3, queries=200, seconds=3.0, latencies_ms=latencies))
    narration.take(LoadTestDone(number=3, rate=41.25, batch_size=1, passed=True, percentile_ms=19.0, per_second=41.0))
    narration.close()
    assert "test 3: 41.25/s, 200 of 662 requests, 0.50 % over 20 ms, about 7 s left" in screen.getvalue()
    assert "test 3: 41.25/s, p99 19.00 ms, 41.00/s served, passed" in screen.getvalue()


ASKING = "dlbricks_tui.api.loads"
USERS = ("scenario", "smollm2-135m", "--kind", "tokens")


class AskedLoad:
    """Pretends to answer, and keeps what it was asked."""

    def __init__(self) -> None:
        self.options = TokenLoadOptions()
        self.message: Event = LanguageMeasured("smollm2-135m: measured in 42 s")
        self.has_measured = False

    def stored(self, _: Any, options: TokenLoadOptions, __: Any) -> TokenLoadAnswer:
        self.options = options
        bounds: dict[str, Any] = {"first_token_ms": options.first_token_ms, "per_token_ms": options.per_token_ms}
        return token_load_answer(options.users, is_driven=self.has_measured, **bounds)

    def measure(
        self, model: Any, options: TokenLoadOptions, data: Any, take: Callable[[Event], None]
    ) -> TokenLoadAnswer:
        self.has_measured = True
        take(self.message)
        return self.stored(model, options, data)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> AskedLoad:
    asked = AskedLoad()
    monkeypatch.setattr(f"{ASKING}.token_load", asked.stored)
    monkeypatch.setattr(f"{ASKING}.measure_token_load", asked.measure)
    monkeypatch.setenv("COLUMNS", "80")
    return asked


def test_users_are_measured_and_driven_unless_a_prediction_is_enough(dlbricks: Command, asked: AskedLoad) -> None:
    status, out, told = dlbricks(*USERS, "--first-token-ms", "4000")
    assert (status, asked.has_measured) == (0, True)
    assert "by static batches" in out and "driven: onnxruntime-genai" in out
    assert "measured in 42 s" in told
    asked.has_measured = False
    status, out, told = dlbricks(*USERS, "--first-token-ms", "4000", "--predict")
    assert (status, asked.has_measured, told) == (0, False, "")
    assert "driven:" not in out


def test_every_option_counts(dlbricks: Command, asked: AskedLoad) -> None:
    words = "--users 1,4 --prompt 64 --generate 16 --first-token-ms 1500 --per-token-ms 50 --think-s 5 --batch 4"
    more = "--percentile 95 --precision int8 --threads 2 --runtime onnxruntime"
    dlbricks(*USERS, *words.split(), *more.split())
    assert asked.options == TokenLoadOptions(
        prompt=64,
        generate=16,
        precisions=(WeightPrecision.INT8,),
        threads=(2,),
        runtimes=("onnxruntime",),
        first_token_ms=1500.0,
        per_token_ms=50.0,
        percentile=95.0,
        think_s=5.0,
        batch=4,
        users=(1, 4),
    )
    # As in `dlbricks llm`.
    dlbricks("--set", "run.threads=3", *USERS)
    assert asked.options.threads == (3,)


def test_json_keeps_its_schema(dlbricks: Command, asked: AskedLoad) -> None:
    found = document(dlbricks(*USERS, "--users", "2", "--first-token-ms", "4000", "--json"))
    schema_kept(found, "scenario")
    assert [it["serving"] for it in found["ways"]] == ["single", "static", "continuous"]
    load = found["ways"][1]["loads"][0]
    assert load["predicted"]["users"] == load["driven"]["load"]["users"] == 2


@pytest.mark.parametrize(
    ("words", "status"),
    [("--users 4 --first-token-ms 4000", 0), ("--users 40 --first-token-ms 4000", 1), ("--first-token-ms 9", 1)],
)
def test_the_status_says_whether_the_users_are_served(
    dlbricks: Command, asked: AskedLoad, words: str, status: int
) -> None:
    assert dlbricks(*USERS, *words.split(), "--predict")[0] == status


def test_users_are_not_served_by_a_model_that_does_not_fit(
    dlbricks: Command, asked: AskedLoad, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = token_load_answer((), is_driven=False, host_memory_bytes=100_000_000)
    monkeypatch.setattr(f"{ASKING}.token_load", lambda *_: small)
    status, out, _ = dlbricks(*USERS, "--predict")
    assert status == 1 and "\ndoes not fit: 0.35 GB of 0.10 GB; with enough memory ~" in out


def test_an_engine_that_failed_is_told_and_the_prediction_shown(dlbricks: Command, asked: AskedLoad) -> None:
    asked.message = LanguageFailed("smollm2-135m: not measured: no room")
    status, out, told = dlbricks(*USERS, "--first-token-ms", "4000", "--quiet")
    assert status == 1 and "no room" in told and "static" in out


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("smollm2-135m --kind tokens --rate 3", "--rate is not for --kind tokens: leave it out"),
        ("smollm2-135m --kind tokens --bound-ms 3", "--bound-ms is not for --kind tokens: leave it out"),
        ("smollm2-135m --kind tokens --both", "--both is not for --kind tokens: leave it out"),
        ("smollm2-135m --kind tokens --input a=1", "--input is not for --kind tokens: leave it out"),
        ("smollm2-135m --kind tokens --batch 2,4", "give one number"),
        (
            "smollm2-135m --kind tokens --precision bf16",
            "ONNX Runtime stores weights as int4, int8, f32, and not as bf16",
        ),
        ("squeezenet1.1 --kind single --users 3", "--users is for --kind tokens: leave it out"),
        ("squeezenet1.1 --kind single --precision int4", "--precision int4 is for --kind tokens"),
        ("no-such-model --kind tokens", "no language model 'no-such-model'"),
    ],
)
def test_what_does_not_go_together_is_refused_in_a_line(dlbricks: Command, words: str, told: str) -> None:
    assert told in one_line(dlbricks("scenario", *words.split()))
