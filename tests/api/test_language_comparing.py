"""Executions of language models compared by one rule, and what-ifs, which are predicted from what was known before."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dlbricks_tui.api import language_models
from dlbricks_tui.api.language_answers import LanguageOptions, LanguageWhatIf, known_execution
from dlbricks_tui.api.language_models import changes_from_best, named_variants, variants_of, what_ifs_of
from dlbricks_tui.errors import UserError
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.language.architecture import LanguagePhase, WeightPrecision
from dlbricks_tui.language.composing import BrickTime, PhaseTimes, StepTime
from dlbricks_tui.language.opening import NamedModel
from dlbricks_tui.language.orders import LanguageQuestion
from dlbricks_tui.language.predicting import BrickPredictor, BrickWork, HostRates, usual_ms
from dlbricks_tui.recorded_host import Processors
from dlbricks_tui.runtime.runtime import Runtime, Settings
from dlbricks_tui.runtime.variant import CachePrecision, Precision
from dlbricks_tui.store.change import Verdict
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.wording.answers import what_if_words
from tests.language.stored import RATES, bricks_of, peaks_of
from tests.language.test_decoder import library
from tests.store.samples import system

WHEN = "2026-11-28T20:46:00+00:00"
SYSTEM = system()
MODEL = NamedModel("smollm2-135m", library("smollm2-135m"))
ONNX_RUNTIME = Runtime("here", "python", "onnxruntime", "1.32.0", "3.11", Settings(2))
OPENVINO = replace(ONNX_RUNTIME, name="ov", framework="openvino", version="2026.4.0")
ASKED = LanguageQuestion(MODEL, ONNX_RUNTIME, WeightPrecision.INT8, 64, 16)


@pytest.fixture(autouse=True)
def _two_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(language_models, "processors_here", lambda: Processors(2, "x86_64", hyper_threading=False))


def step(*bricks: BrickTime) -> StepTime:
    when = "" if any(it.is_predicted for it in bricks) else WHEN
    return StepTime(sum(it.ms for it in bricks), 0.0, {}, float(bool(when)), when, dict.fromkeys(bricks, 1))


def times(*bricks: BrickTime) -> PhaseTimes:
    return dict.fromkeys(LanguagePhase, step(*bricks))


def brick(ms: float, share: float = 0.02, slowdown: float = 1.0) -> BrickTime:
    return BrickTime(ms, share * ms, share * ms, WHEN, slowdown)


def verdicts(*executions: PhaseTimes) -> list[tuple[Verdict, str]]:
    """Return the verdict and its reason for each execution, compared with the first one."""
    found = language_models.changes_to(executions[0], executions[1:], [""] * (len(executions) - 1))
    return [(it[0].verdict, it[0].reason) for it in found]


def test_bricks_that_both_executions_have_are_as_wrong_in_both() -> None:
    common, head, last = brick(90.0, 0.1), brick(10.0), brick(0.5)
    ((faster, _),) = verdicts(times(common, head), times(common, last))
    assert faster is Verdict.FASTER
    # The same figures without a brick in common.
    ((unsure, reason),) = verdicts(times(common, head), times(brick(90.1, 0.1), last))
    assert unsure is Verdict.UNKNOWN and "chance" in reason
    assert verdicts(times(common, head), times(common, head)) == [(Verdict.SAME, "")]


def test_a_host_that_was_slower_for_one_of_them_makes_the_verdict_unknown() -> None:
    assert [it for it, _ in verdicts(times(brick(100.0)), times(brick(120.0)), times(brick(80.0)))] == [
        Verdict.SLOWER,
        Verdict.FASTER,
    ]
    assert verdicts(times(brick(100.0)), times(brick(120.0, slowdown=1.2)))[0][0] is Verdict.UNKNOWN
    # The same slowness of both tells nothing about one of them.
    slow = times(brick(100.0, slowdown=1.2)), times(brick(120.0, slowdown=1.2))
    assert verdicts(*slow)[0][0] is Verdict.SLOWER


def test_the_best_that_was_measured_comes_first_and_predictions_have_no_verdict() -> None:
    executions = [times(brick(it)) for it in (100.0, 70.0, 130.0, 20.0)]
    found = changes_from_best(executions, [True, False, True, True], [True, True, True, False], LanguagePhase.PREFILL)
    assert [place for place, _ in found] == [0, 1, 2, 3], "the last one does not fit"
    assert [it and (it[1].verdict, it[1].reason) for _, it in found] == [
        (),
        (Verdict.UNKNOWN, "it is predicted"),
        (Verdict.SLOWER, ""),
        (Verdict.FASTER, ""),
    ]
    assert [it.of for it in found[1][1]] == list(LanguagePhase)
    none_measured = changes_from_best(executions, [False] * 4, [True] * 4, LanguagePhase.TOTAL)
    assert [place for place, _ in none_measured] == [3, 1, 0, 2]
    assert {it[0].verdict for _, it in none_measured[1:]} == {Verdict.UNKNOWN}


def test_a_file_counts_in_place_of_the_model_of_the_library_that_is_called_so(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(language_models, "stored_answers", lambda models, *_, **__: models)
    own = replace(ASKED.model, path="smollm2-135m/config.json")
    found: Any = language_models.library_answers(LanguageOptions(), DataFolder(tmp_path), (own,))
    assert [it for it in found if it.name == own.name] == [own]


def test_what_ifs_change_one_choice_and_have_names_and_words() -> None:
    found = {it.id: it for it in variants_of(ASKED, (ONNX_RUNTIME, OPENVINO))}
    assert {name: what_if_words(name) for name in found} == {
        "weights-int4": "weights as int4",
        "threads-1": "use 1 thread",
        "threads-2-1": "2 threads, 1 for decode",
        "threads-1-2": "1 thread, 2 for decode",
        "runtime-openvino": "run it in OpenVINO",
        "head-last": "score the last token",
        "vocabulary-half": "halve the vocabulary",
    }
    assert what_if_words("runtime-llama.cpp") == "run it in llama.cpp"
    own = replace(ASKED, runtime=OPENVINO.with_cache(CachePrecision.F32))
    caches = [it for it in variants_of(own, (OPENVINO,)) if it.id.startswith("cache")]
    assert ("cache-int8", "--cache int8") in [(it.id, it.how) for it in caches]
    assert found["runtime-openvino"].how == "--runtime ov"
    assert [it.threads for it in found["threads-2-1"].questions] == [2, 1]
    assert len(found["weights-int4"].questions) == 1
    with pytest.raises(UserError, match="no what-if 'faster' of smollm2-135m; there are weights-int4, threads-1"):
        named_variants(ASKED, (), ["threads-1", "faster"])
    assert len(named_variants(ASKED, (), ["all"])) == len(found) - 1


class Store:
    """A store with peaks for one thread and two, and bricks that take a multiple of the usual time."""

    def __init__(self, folder: Path) -> None:
        self.database = ResultsDatabase(folder)
        self.database.add(*(peaks_of(SYSTEM.id, it, it) for it in (1, 2)))

    def measure(self, asked: LanguageQuestion, factor: Callable[[BrickWork], float] = lambda _: 1.0) -> None:
        rates = HostRates(asked.threads * RATES.bytes_per_ms, asked.threads * RATES.operations_per_ms)
        decoders, runtime = map(asked.decoder, asked.steps), asked.runtime.identity
        own = {"system": SYSTEM.id, "runtime": runtime}
        self.database.add(*bricks_of(decoders, lambda work: factor(work) * usual_ms(work, rates), **own))

    def what_ifs(self) -> dict[str, LanguageWhatIf]:
        identity = ONNX_RUNTIME.identity
        host = BrickPredictor.of_host(self.database, SYSTEM.id, identity, 2)
        own = known_execution(ASKED, self.database, SYSTEM, host)
        found = what_ifs_of(own, (ONNX_RUNTIME, OPENVINO))
        assert [it.predicted[0].ratio for it in found] == sorted(it.predicted[0].ratio for it in found)
        return {it.id: it for it in found}


def test_another_runtime_of_which_nothing_is_known_may_be_faster_or_slower(tmp_path: Path) -> None:
    own, store = replace(ASKED, precision=WeightPrecision.F32), Store(tmp_path).database
    host = BrickPredictor.of_host(store, SYSTEM.id, ONNX_RUNTIME.identity, 2)
    changes = {it.id: it.predicted for it in what_ifs_of(known_execution(own, store, SYSTEM, host), (OPENVINO,))}
    decode = changes["runtime-openvino"][2]
    assert decode.ratio == pytest.approx(1.0, abs=0.01) and decode.interval[0] < 0.6 and decode.interval[1] > 1.6
    # What stays the same in one runtime stays as wrong.
    low, high = changes["vocabulary-half"][1].interval
    assert high - low < 0.5


def test_the_runtime_of_a_what_if_computes_as_its_weights_are_stored() -> None:
    in_bf16 = OPENVINO.with_precision(Precision.BF16)
    for weights, runtime in ((WeightPrecision.F32, OPENVINO), (WeightPrecision.BF16, in_bf16)):
        own = replace(ASKED, runtime=runtime, precision=weights)
        changes = [it.prefill for it in variants_of(own, ()) if it.id.startswith("weights")]
        assert {it.precision for it in changes} == {*WeightPrecision} & {"int4", "int8", "bf16"} - {weights}
        for it in changes:
            assert it.runtime.identity == (in_bf16 if it.precision is WeightPrecision.BF16 else OPENVINO).identity


def test_what_ifs_are_predicted_from_the_bricks_of_the_execution_and_proved_by_their_own(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.measure(ASKED, lambda work: 3.0)
    before = store.what_ifs()
    assert not any(it.measured for it in before.values())
    total, prefill, decode = before["threads-1"].predicted
    # Bricks are as far from the usual ones as with two threads, and the interval is wide.
    assert total.ratio == pytest.approx(2.0, rel=0.1)
    assert total.interval[1] / total.interval[0] > 1.5
    assert {it.verdict for it in (total, prefill, decode)} == {Verdict.UNKNOWN}
    assert before["weights-int4"].predicted[2].ratio < 0.75
    assert before["threads-2-1"].predicted[1].ratio == 1.0
    # Only the head is another one.
    head = before["head-last"].predicted
    assert head[1].ratio < 0.9 and head[1].interval[1] < 1.0 and head[2].ratio == pytest.approx(1.0, abs=0.01)

    store.measure(replace(ASKED, precision=WeightPrecision.INT4), lambda work: 6.0 if work.bits == 4 else 3.0)
    store.measure(replace(ASKED, runtime=ONNX_RUNTIME.with_threads(1)), lambda work: 3.0)
    after = store.what_ifs()
    proved = {name for name, it in after.items() if it.measured}
    assert proved == {"weights-int4", "threads-1", "threads-1-2", "threads-2-1"}
    for name in proved:
        for now, was in zip(after[name].predicted, before[name].predicted, strict=True):
            assert now.interval == pytest.approx(was.interval), "a proof does not change its prediction"
            assert now.ratio == pytest.approx(was.ratio) and now.verdict is was.verdict
    assert after["weights-int4"].measured[0].ratio > before["weights-int4"].predicted[0].ratio * 1.3
    assert after["threads-1"].measured[0].verdict is Verdict.SLOWER
