"""Trained predictors, bricks in common with other systems, and the prior, in files: a look-up need not train."""

import json
import math
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from io import BytesIO
from pathlib import Path
from statistics import median
from typing import BinaryIO, NamedTuple
from zipfile import BadZipFile, ZipFile

import numpy as np

from dlbricks_tui.estimate.knowledge import Latency, Unmeasured
from dlbricks_tui.estimate.prediction.nearest import (
    FEWEST,
    NearestBricks,
    Numbers,
    OperatorBricks,
    Roofline,
    first_known,
)
from dlbricks_tui.estimate.prediction.transfer import BrickInCommon, KnownBrick
from dlbricks_tui.files import open_regular, read_json, replace_file, write_atomically
from dlbricks_tui.models.graph import Level

# Files of another format are trained again.
_FORMAT = 1
_UNREADABLE = (OSError, ValueError, LookupError, TypeError, EOFError, ArithmeticError, BadZipFile, zlib.error)


class Trained(NamedTuple):
    """The measured bricks of a store, and how many times as long they take as by the prior; None if not known."""

    own: NearestBricks
    speed: float | None = None


def write_trained(path: Path, trained: Trained, state: str = "") -> None:
    """Write a predictor, and the state of the results that it was trained with."""
    predictor = trained.own
    held = list(predictor.operators.values())
    about = {
        "format": _FORMAT,
        "state": state,
        "speed": trained.speed,
        "vocabulary": predictor.vocabulary,
        "shared": predictor.shared,
        "operators": [
            [name, len(each.excess), each.usual_error, each.width, *each.roofline]
            for name, each in predictor.operators.items()
        ],
    }

    def write(file: BinaryIO) -> None:
        # In memory first: an archive on a full disk would complain on standard error once more when it is discarded.
        archive = BytesIO()
        np.savez_compressed(
            archive,
            about=np.frombuffer(json.dumps(about).encode(), dtype=np.uint8),
            shapes=_joined([each.shapes for each in held]),
            traits=np.packbits(_joined([each.traits for each in held]).astype(bool), axis=1),
            excess=np.concatenate([np.zeros(0), *(each.excess for each in held)]),
        )
        file.write(archive.getbuffer())

    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, write)


def read_trained(path: Path, state: str = "") -> Trained | None:
    """Return the predictor in a file; None if it was trained with other results, or cannot be read."""
    try:
        with open_regular(path) as file:
            content = file.read()
        # NumPy parses the heads of arrays before it compares their sums, and fails in many ways on damaged ones.
        if ZipFile(BytesIO(content)).testzip() is not None:
            return None
        with np.load(BytesIO(content), allow_pickle=False) as arrays:
            about = json.loads(arrays["about"].tobytes())
            if (about["format"], about["state"]) != (_FORMAT, state):
                return None
            vocabulary = tuple(about["vocabulary"])
            shapes, excess = arrays["shapes"].astype(float), arrays["excess"].astype(float)
            traits = np.unpackbits(arrays["traits"], axis=1, count=len(vocabulary)).astype(float)
    except _UNREADABLE:
        return None
    operators: dict[str, OperatorBricks] = {}
    first = 0
    for name, count, usual_error, width, *rates in about["operators"]:
        rows = slice(first, first := first + count)
        operators[name] = OperatorBricks(Roofline(*rates), shapes[rows], traits[rows], excess[rows], usual_error, width)
    return Trained(NearestBricks(operators, vocabulary, about["shared"]), about["speed"])


def write_in_common(path: Path, bricks: Iterable[BrickInCommon], state: str) -> None:
    """Write the bricks that other systems have measured, too, and the state of the results."""
    write_atomically(path, json.dumps({"format": _FORMAT, "state": state, "bricks": list(bricks)}))


def read_in_common(path: Path, state: str) -> tuple[BrickInCommon, ...] | None:
    """Return the bricks in a file; None if results have changed since, or it cannot be read."""
    try:
        about = read_json(path)
        if (about["format"], about["state"]) != (_FORMAT, state):
            return None
        return tuple(
            [
                BrickInCommon(KnownBrick((key, context), kind, work, {**latencies_ms}), latency_ms)
                for ((key, context), kind, work, latencies_ms), latency_ms in about["bricks"]
            ]
        )
    except _UNREADABLE:
        return None


def _joined(arrays: Sequence[Numbers]) -> Numbers:
    return np.concatenate(arrays) if arrays else np.zeros((0, 1))


PRIORS = Path(__file__).parent / "priors"
# A system of which nothing is known takes up to so many times as long as by the prior, or as little.
_UNKNOWN_SYSTEM = 3.0


@lru_cache(maxsize=8)
def prior_of(framework: str, level: Level) -> NearestBricks | None:
    """Return the prior of a framework at a level; None if the committed results have none."""
    found = read_trained(PRIORS / f"{framework}-{level.value}.npz")
    return None if found is None else found.own


def speed_by(prior: NearestBricks | None, measured: Sequence[tuple[Unmeasured, float]]) -> float | None:
    """Return how many times as long measured bricks take as by the prior; None if too few can be compared."""
    if prior is None:
        return None
    expected = prior.from_alike([brick for brick, _ in measured])
    ratios = [
        latency_ms / each.value_ms
        for (_, latency_ms), each in zip(measured, expected, strict=True)
        if each is not None and latency_ms
    ]
    return median(ratios) if len(ratios) >= FEWEST else None


@dataclass(frozen=True, slots=True, eq=False)
class WithPrior:
    """Predicts by the measured bricks of a store, and operators of which these are too few by the prior."""

    own: NearestBricks
    prior: NearestBricks
    # How many times as long bricks take on the system as by the prior; None if not known.
    speed: float | None

    @property
    def shared(self) -> float:
        """The share of the half intervals that all predictions of a model have in common."""
        return max(self.own.shared, self.prior.shared) if self.speed is not None else 1.0

    def predict(self, bricks: Sequence[Unmeasured]) -> list[Latency | None]:
        """Return the latency of each brick, of which neither may know any like it; None if its shapes are not known."""
        return first_known(
            bricks,
            self.own.from_alike,
            lambda left: [None if it is None else self._scaled(it) for it in self.prior.predict(left)],
        )

    def _scaled(self, latency: Latency) -> Latency:
        speed, unknown = (1.0, _UNKNOWN_SYSTEM) if self.speed is None else (self.speed, 1.0)
        # Both errors are independent.
        below, above = (
            math.exp(math.hypot(math.log(ratio), math.log(unknown)))
            for ratio in (latency.value_ms / latency.low_ms, latency.high_ms / latency.value_ms)
        )
        value_ms = speed * latency.value_ms
        return Latency(value_ms, value_ms / below, value_ms * above)
