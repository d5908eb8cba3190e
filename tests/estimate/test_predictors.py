import gc
import math
import os
import pickle
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from dlbricks_tui.bricks.decomposition import Decomposition, decompose
from dlbricks_tui.estimate import nearest, predictors, transfer
from dlbricks_tui.estimate.inquiry import Inquiry, Predictors
from dlbricks_tui.estimate.knowledge import Latency, Pair, Unmeasured
from dlbricks_tui.estimate.nearest import NearestBricks
from dlbricks_tui.estimate.predictors import (
    FEWEST_IN_COMMON,
    PRIORS,
    OtherSystems,
    Trained,
    examples_of,
    read_trained,
    results_of,
    with_others,
    write_trained,
)
from dlbricks_tui.estimate.system_estimate import SystemEstimate
from dlbricks_tui.estimate.transfer import KnownBrick
from dlbricks_tui.models.graph import Level
from dlbricks_tui.runtime.traits import MXNET, Traits
from dlbricks_tui.store.index import kind_of_label, label_of
from dlbricks_tui.store.records import ANY_CONTEXT, BrickForm, Record, utc_now
from dlbricks_tui.store.selections import Way
from tests.estimate.knowledge_of import Guessing
from tests.estimate.simulated import ON, conv, example, latency_ms, law_ms, models, moment, records_of, relu
from tests.estimate.stored import store_of, timed
from tests.estimate.table1 import table1
from tests.store.samples import measurement, runtime

ON_HOST = Way(ON["system"], ON["runtime"], ON["level"], ON["protocol"])
# A framework without a prior.
UNKNOWN: Traits = replace(MXNET, framework="other")
MODELS = list(models(1, 12))
WANTED = [Unmeasured(conv(80, 80, 28), "plain")]


@pytest.fixture
def trainings(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of examples of each training."""
    counted: list[int] = []

    def train(examples: Any) -> Any:
        held = list(examples)
        counted.append(len(held))
        return original(held)

    original = nearest.train
    monkeypatch.setattr(predictors, "train", train)
    return counted


def test_a_predictor_is_trained_once_for_the_results_of_a_way_and_kept_in_the_cache(
    tmp_path: Path, trainings: list[int]
) -> None:
    cache = tmp_path / "cache"
    with store_of(tmp_path / "store", *records_of(MODELS[:6])) as store:
        predictors = Predictors(store, cache)
        first = predictors.of(ON_HOST, UNKNOWN).predict(WANTED)
        assert predictors.of(ON_HOST, UNKNOWN).predict(WANTED) == first != [None]
        assert Predictors(store, cache).of(ON_HOST, UNKNOWN).predict(WANTED) == first
        # Results by other ways train it no more.
        store.add(*records_of(MODELS, protocol="cold"), *records_of(MODELS, system="other", level=Level.WRITTEN))
        assert Predictors(store, cache).of(ON_HOST, UNKNOWN).predict(WANTED) == first
        assert len(trainings) == 1
        # A damaged file is trained again.
        (file,) = (cache / "predictions").glob("*.npz")
        for content in (b"", file.read_bytes()[:300], b"PK\x03\x04" + bytes(100)):
            file.write_bytes(content)
            assert Predictors(store, cache).of(ON_HOST, UNKNOWN).predict(WANTED) == first
        assert len(trainings) == 4
        # So is one that is older than the newest results.
        store.add(*records_of(MODELS))
        assert predictors.of(ON_HOST, UNKNOWN).predict(WANTED) != first
    assert trainings[0] < trainings[4]


def test_a_form_that_comes_after_its_results_trains_it_again(tmp_path: Path, trainings: list[int]) -> None:
    records = list(records_of(MODELS))
    forms = [it for it in records if isinstance(it, BrickForm)]
    with store_of(tmp_path / "store", *(it for it in records if it not in forms)) as store:
        assert Predictors(store, tmp_path / "cache").of(ON_HOST, UNKNOWN).predict(WANTED) == [None]
        store.add(*forms)
        assert Predictors(store, tmp_path / "cache").of(ON_HOST, UNKNOWN).predict(WANTED) != [None]
    assert trainings[0] == 0 < trainings[1]


def test_a_cache_that_cannot_be_written_is_no_obstacle(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file")
    with store_of(tmp_path / "store", *records_of(MODELS)) as store:
        assert Predictors(store, tmp_path / "cache").of(ON_HOST, UNKNOWN).predict(WANTED) != [None]


def test_the_newest_good_result_of_a_brick_counts(tmp_path: Path) -> None:
    brick = Unmeasured(relu(64, 28), "plain")
    known = example(brick, latency_ms(brick), "model")
    form = BrickForm(key=known.brick, canonical=known.canonical)
    results = [
        measurement(
            brick=known.brick, statistics=timed(value_ms), when=moment(hour), run=f"run {hour}", flags=flags, **ON
        )
        for hour, value_ms, flags in ((1, 1.0, ()), (3, 3.0, ()), (2, 2.0, ()), (4, 4.0, ("drift",)))
    ]
    with store_of(tmp_path / "store", form, *results) as store:
        (found,) = examples_of(store, results_of(store, ON_HOST))
    assert (found.latency_ms, found.group) == (3.0, "run 3")


def test_results_without_contexts_have_their_mean(tmp_path: Path) -> None:
    known = example(Unmeasured(relu(64, 28), ANY_CONTEXT), 1.0)
    form = BrickForm(key=known.brick, canonical=known.canonical)
    results = [
        measurement(
            brick=known.brick, context=ANY_CONTEXT, statistics=timed(value_ms), occurrence=(("model", "a"),), **ON
        )
        for value_ms in (1.0, 2.0, 6.0)
    ]
    with store_of(tmp_path / "store", form, *results) as store:
        (found,) = examples_of(store, results_of(store, ON_HOST))
    assert (found.latency_ms, found.group) == (3.0, "a")


def test_a_full_disk_is_an_error_and_no_complaint_on_standard_error(monkeypatch: pytest.MonkeyPatch) -> None:
    complaints: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", complaints.append)
    # More than fits in the buffer of a file.
    vocabulary = tuple(os.urandom(8).hex() for _ in range(10_000))
    with pytest.raises(OSError, match="No space left on device"):
        write_trained(Path("/dev/full"), Trained(NearestBricks({}, vocabulary, 0.0)))
    gc.collect()
    assert complaints == []


@pytest.mark.parametrize("bit", [0, 7])
def test_a_predictor_with_a_flipped_bit_is_trained_anew(bit: int, tmp_path: Path) -> None:
    delivered = next(PRIORS.glob("*.npz"))
    content, damaged = delivered.read_bytes(), tmp_path / "damaged.npz"
    trained, refused = read_trained(delivered), 0
    assert trained is not None
    sound = pickle.dumps(trained)
    for place in range(100):
        changed = bytearray(content)
        changed[len(content) * place // 100] ^= 1 << bit
        damaged.write_bytes(changed)
        found = read_trained(damaged)
        # A few bits are those of dates.
        assert found is None or pickle.dumps(found) == sound
        refused += found is None
    assert refused > 90


MODEL, OTHER_MODEL = (decompose(table1()[number]) for number in ("16", "17"))


def forms_of(model: Decomposition) -> dict[Pair, str]:
    """The bricks of a model that compute something."""
    return {
        (it.brick.key, it.context): it.brick.canonical
        for it in model.occurrences
        if any(model.graph.layers[index].operators for index in it.sequence.layers)
    }


FORMS = forms_of(OTHER_MODEL) | forms_of(MODEL)
PAIRS = tuple(forms_of(MODEL))
FEW = PAIRS[::3]
RUNTIME = "mxnet-1.9.1 python-3.11 threads-2"
HERE = Way("here", RUNTIME, Level.WRITTEN, "hot")
# Each host has a factor for convolutions, and one for all other bricks.
Factors = Mapping[str, tuple[float, float]]
HOSTS: Factors = {"a": (1.0, 1.0), "b": (2.0, 0.8), "here": (3.0, 1.5)}


def host_ms(pair: Pair, system: str, hosts: Factors = HOSTS, noise: float = 0.0, seed: int = 0) -> float:
    is_convolution = kind_of_label(label_of(FORMS[pair])).value == "convolution"
    own = Random(f"{seed} {system} {pair}").gauss(0.0, noise)
    return law_ms(FORMS[pair], pair[1]) * hosts[system][0 if is_convolution else 1] * math.exp(own)


def results(system: str, pairs: Collection[Pair] = PAIRS, latencies: Any = host_ms, **fields: Any) -> list[Record]:
    where: dict[str, Any] = {"system": system, "runtime": RUNTIME, "level": Level.WRITTEN, "protocol": "hot"} | fields
    return [
        measurement(**{"brick": pair[0], "context": pair[1], "statistics": timed(latencies(pair, system)), **where})
        for pair in pairs
    ]


def one_ms(*_: Any) -> float:
    return 1.0


def forms() -> list[Record]:
    return [runtime(RUNTIME), *{it: BrickForm(key=it, canonical=form) for (it, _), form in FORMS.items()}.values()]


def asked(folder: Path, *records: Record) -> SystemEstimate:
    with store_of(folder / "store", *forms(), *records) as store:
        found = Inquiry(store, MODEL, None, Predictors(store, folder / "cache")).on("here", RUNTIME)
    assert found is not None
    return found


def truth_ms(latencies: Any = host_ms) -> float:
    used = [(it.brick.key, it.context) for it in MODEL.occurrences]
    return math.fsum(latencies(pair, "here") for pair in used if pair in PAIRS)


@pytest.mark.parametrize("others", ["ab", "b"])
def test_bricks_that_lack_here_are_predicted_from_systems_that_have_them(tmp_path: Path, others: str) -> None:
    known = [record for name in others for record in results(name)]
    found = asked(tmp_path / "few", *known, *results("here", FEW))
    assert found.estimate.coverage.predicted > 20
    assert not found.estimate.is_partial
    assert found.sequential_ms == pytest.approx(truth_ms(), rel=0.03)


def test_results_by_other_versions_levels_and_methods_are_not_compared(tmp_path: Path) -> None:
    unlike: list[dict[str, Any]] = [
        {"runtime": "mxnet-1.8.0 python-3.11 threads-2"},
        {"runtime": "mxnet-1.9.1 python-3.11 threads-1"},
        {"level": Level.FUSED},
        {"protocol": "cold"},
    ]
    records = [
        it for number, other in enumerate(unlike) for it in results(f"host {number}", FEW, lambda *_: 1.0, **other)
    ]
    with store_of(tmp_path, *forms(), *records, *results("here", FEW)) as store:
        assert OtherSystems(store, HERE).ways == ()
        usual = Guessing()
        assert with_others(store, HERE, usual) is usual


def test_another_version_of_python_is_compared_if_it_has_more_bricks(tmp_path: Path) -> None:
    other = "mxnet-1.9.1 python-3.7 threads-2"
    with store_of(tmp_path, *forms(), *results("a", FEW), *results("a", runtime=other)) as store:
        assert OtherSystems(store, HERE).ways == (Way("a", other, Level.WRITTEN, "hot"),)


def test_too_few_bricks_in_common_tell_nothing(tmp_path: Path) -> None:
    usual = Guessing()
    wanted = [Unmeasured(FORMS[pair], pair[1]) for pair in PAIRS[-3:]]
    for count in (FEWEST_IN_COMMON - 1, FEWEST_IN_COMMON):
        folder = tmp_path / str(count)
        with store_of(folder, *forms(), *results("a"), *results("here", PAIRS[:count])) as store:
            found = with_others(store, HERE, usual)
            assert (found.predict(wanted) == usual.predict(wanted)) is (count < FEWEST_IN_COMMON)
            assert (found.shared == usual.shared) is (count < FEWEST_IN_COMMON)


def test_bricks_in_common_are_compared_once_and_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted, saved = [Unmeasured(FORMS[pair], pair[1]) for pair in PAIRS[-3:]], tmp_path / "cache" / "common.json"
    compared: list[str] = []

    def known_brick(pair: Pair, *rest: Any) -> KnownBrick:
        compared.append(pair[0])
        return transfer.known_brick(pair, *rest)

    monkeypatch.setattr(predictors, "known_brick", known_brick)

    def predicted() -> tuple[Sequence[Latency | None], set[str]]:
        compared.clear()
        return with_others(store, HERE, Guessing(), saved).predict(wanted), set(compared) - {it.key for it in wanted}

    with store_of(tmp_path / "store", *forms(), *results("a"), *results("b"), *results("here", FEW)) as store:
        first, held = predicted()
        assert held
        assert predicted() == (first, set())
        for content in ("", "{}", saved.read_text()[:-9]):
            saved.write_text(content)
            assert predicted() == (first, held)
        store.add(*results("b", FEW, one_ms, when=utc_now()))
        again, held_again = predicted()
    assert again != first
    assert held_again == held


def test_a_result_without_a_context_is_of_the_brick_in_any_context(tmp_path: Path) -> None:
    brick, context = PAIRS[0]
    records = [
        it for ms in (3.0, 5.0) for it in results("a", [(brick, context)], lambda *_, ms=ms: ms, context=ANY_CONTEXT)
    ]
    with store_of(tmp_path, *forms(), *records) as store:
        (known,) = OtherSystems(store, HERE).known([Unmeasured(FORMS[brick, context], "any other")]).values()
    # The mean of its occurrences in a run.
    assert known.latencies_ms == {"a": 4.0}


@pytest.mark.parametrize("systems", [5, pytest.param(25, marks=pytest.mark.soak)])
def test_the_intervals_of_models_hold_on_simulated_systems(tmp_path: Path, systems: int) -> None:
    held = []
    for seed in range(systems):
        random = Random(seed)
        factors = {name: tuple(math.exp(random.gauss(0.0, 0.4)) for _ in range(2)) for name in HOSTS}

        def taken_ms(pair: Pair, system: str, factors: Any = factors, seed: int = seed) -> float:
            return host_ms(pair, system, factors, 0.1, seed)

        records = [*results("a", PAIRS, taken_ms), *results("b", PAIRS, taken_ms), *results("here", FEW, taken_ms)]
        found = asked(tmp_path / str(seed), *records).estimate.composed
        assert found is not None
        held.append(found.latency.low_ms <= truth_ms(taken_ms) <= found.latency.high_ms)
    assert sum(held) >= 0.92 * systems
