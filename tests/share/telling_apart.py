"""An attack on suites: learn from suites with keys, and guess the decoys of other suites."""

import json
import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dlbricks_tui.share.suites.exporting import Assembled

Numbers = NDArray[np.float64]
_OPS = ("Convolution", "FullyConnected", "BatchNorm", "Activation", "Pooling", "Concat", "elemwise_add", "Flatten")
_STEPS, _RATE, _RIDGE = 400, 0.5, 1e-3


@dataclass(frozen=True)
class Told:
    """Every brick of some suites: all its fields as numbers, its file, and whether it is real."""

    fields: Numbers
    files: Sequence[bytes]
    real: NDArray[np.bool_]


@dataclass(frozen=True)
class Exported:
    """A suite, and the pairs of brick and context that its decoys are made of."""

    suite: Assembled
    decoys: frozenset[tuple[str, str]]

    def is_both(self, name: str) -> bool:
        """True if a brick belongs to both a private model and a decoy: no guess about it is right or wrong."""
        meaning = self.suite.key.meanings.get(name)
        return meaning is not None and (meaning.brick, meaning.context) in self.decoys


def told(exported: Sequence[Exported], of_file: Callable[[bytes], Sequence[float]] | None = None) -> Told:
    """Return the features of suites and the truth about their bricks."""
    rows, files, real, described = [], [], [], of_file or _of_file
    for each in exported:
        suite, bricks = each.suite, each.suite.manifest.bricks
        for place, brick in enumerate(bricks):
            if each.is_both(brick.id):
                continue
            content = suite.networks[brick.id]
            where = place / len(bricks)
            about = [where, len(bricks), brick.layers, int(brick.cold), brick.bytes]
            rows.append([*about, *_of_id(brick.id), *described(content)])
            files.append(content)
            real.append(brick.id in suite.key.meanings)
    return Told(np.array(rows, dtype=np.float64), files, np.array(real))


def by_regression(seen: Told, other: Told) -> float:
    """Return the accuracy of logistic regression on all fields, with as many real bricks as decoys."""
    mean, scale = seen.fields.mean(axis=0), seen.fields.std(axis=0)
    known, unknown = ((it.fields - mean) / np.where(scale > 0, scale, 1.0) for it in (seen, other))
    # Both kinds count alike, however many there are.
    importance = np.where(seen.real, 0.5 / seen.real.sum(), 0.5 / (~seen.real).sum())
    slope, offset = np.zeros(known.shape[1]), 0.0
    for _ in range(_STEPS):
        error = importance * (1 / (1 + np.exp(-(np.einsum("ij,j->i", known, slope) + offset))) - seen.real)
        slope -= _RATE * (np.einsum("ij,i->j", known, error) + _RIDGE * slope)
        offset -= _RATE * error.sum()
    return _balanced(other, np.einsum("ij,j->i", unknown, slope) + offset > 0)


def by_memory(seen: Told, other: Told) -> float:
    """Return the accuracy of naive Bayes on the files: more often real, or more often a decoy."""
    real, decoys = Counter[bytes](), Counter[bytes]()
    for file, is_real in zip(seen.files, seen.real, strict=True):
        (real if is_real else decoys)[file] += 1
    odds = sum(real.values()) / sum(decoys.values())
    return _balanced(other, np.array([real[file] + odds / 2 > odds * (decoys[file] + 0.5) for file in other.files]))


def _balanced(other: Told, guessed_real: NDArray[np.bool_]) -> float:
    right_of_real, right_of_decoys = guessed_real[other.real].mean(), (~guessed_real)[~other.real].mean()
    return float(right_of_real + right_of_decoys) / 2


def _of_id(name: str) -> list[float]:
    return [int(name[start : start + 2], 16) / 255 for start in range(0, len(name), 2)]


@cache
def _of_file(content: bytes) -> list[float]:
    document: dict[str, Any] = json.loads(content)
    nodes = document["nodes"]
    ops = Counter(node["op"] for node in nodes)
    shapes = [_numbers(node["attrs"]["__shape__"]) for node in nodes if node["op"] == "null"]
    kernels = [_numbers(node["attrs"]["kernel"]) for node in nodes if "kernel" in node["attrs"]]
    inputs = [_numbers(node["attrs"]["__shape__"]) for node in nodes if node["name"].startswith("data")]
    first = (inputs or [(1,)])[0]
    axes = [math.log(size) for size in (*first, 1, 1, 1, 1)[:4]]
    return [
        len(nodes),
        len(document["heads"]),
        len(inputs),
        len(shapes),
        sum(map(math.log, map(math.prod, shapes))),
        max(map(math.prod, shapes)) ** 0.25,
        *axes,
        *(first[-1] % divisor == 0 for divisor in (7, 8, 16, 32)),
        *((*first, 1)[1] % divisor == 0 for divisor in (3, 8, 16, 32)),
        kernels[-1][0] if kernels else 0,
        *(ops[op] for op in _OPS),
        sum(ops.values()) - sum(ops[op] for op in _OPS),
    ]


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(each) for each in text.strip("()").split(",") if each.strip())
