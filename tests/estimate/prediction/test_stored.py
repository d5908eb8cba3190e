import gc
import os
import pickle
import sys
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from dlbricks_tui.estimate.inquiry import Predictors
from dlbricks_tui.estimate.knowledge import Unmeasured
from dlbricks_tui.estimate.prediction import nearest, stored
from dlbricks_tui.estimate.prediction.nearest import NearestBricks
from dlbricks_tui.estimate.prediction.saved import PRIORS, Trained, read_trained, write_trained
from dlbricks_tui.estimate.prediction.stored import examples_of
from dlbricks_tui.models.graph import Level
from dlbricks_tui.runtime.traits import MXNET, Traits
from dlbricks_tui.store.records import ANY_CONTEXT, BrickForm
from dlbricks_tui.store.selections import Way
from tests.estimate.prediction.simulated import conv, example, latency_ms, models, relu
from tests.estimate.prediction.stored_models import ON, moment, records_of
from tests.estimate.stored import store_of, timed
from tests.store.samples import measurement

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
    monkeypatch.setattr(stored, "train", train)
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


def test_only_results_of_one_way_count(tmp_path: Path) -> None:
    others: list[dict[str, Any]] = [
        {"system": "other"},
        {"runtime": "mxnet-1.8"},
        {"level": Level.WRITTEN},
        {"protocol": "cold"},
    ]
    records = list(chain.from_iterable(records_of(MODELS, **other) for other in others))
    with store_of(tmp_path / "store", *records) as store:
        assert not list(examples_of(store, ON_HOST))
        assert Predictors(store, tmp_path / "cache").of(ON_HOST, UNKNOWN).predict(WANTED) == [None]


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
        (found,) = examples_of(store, ON_HOST)
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
        (found,) = examples_of(store, ON_HOST)
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
