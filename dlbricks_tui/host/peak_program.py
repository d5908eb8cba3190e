"""The program that measures peaks: it runs in a separate process, because BLAS reads its settings when it is loaded.

usage: peak_program.py THREADS SECONDS BYTES...

It prints a JSON document: `flops` is the 32-bit floating-point operations per second of all threads together, and
`bandwidth` the bytes per second that they move in arrays of each of these sizes for each thread, by reading or by
copying, whichever is faster. BLAS itself must have one thread. Each thread works on its own arrays in calls that hold
no lock of the interpreter.
"""

import json
import sys
import time
from collections.abc import Callable, Sequence
from itertools import cycle
from threading import Barrier, Thread
from typing import Any, NamedTuple

import numpy as np

# Products of matrices in the caches: their number, rows, columns and depth. Which of them is the fastest depends on the
# processor: for AVX-512, OpenBLAS multiplies small matrices without copying them, and 12 % faster.
_PRODUCTS = ((1, 768, 768, 384), (128, 96, 64, 128), (128, 96, 32, 256))
# A step moves so many bytes at most: the time of the interpreter does not count then, and steps stay short.
_BYTES_PER_STEP = 4 << 20
# The highest of many speeds counts: noise only makes a program slower, and other programs leave no long pauses.
_TRIES = 100
# In a short time there are fewer tries, so that each has this many seconds.
_LEAST_SECONDS = 0.003

# Prepares the arrays of a thread, and returns a function that does some work and returns its amount.
Work = Callable[[], Callable[[], float]]


def main(threads: int, seconds: float, *sizes: int) -> None:
    """Print the peaks of so many threads, each measured for so many seconds."""
    # A first impression is one kind of work each.
    kinds = len(_PRODUCTS) if _tries(seconds) == _TRIES else 1
    bandwidth = [max(_speed(threads, seconds, work(size)) for work in (_reading, _copying)[:kinds]) for size in sizes]
    flops = max(_speed(threads, seconds, _multiplying(*shape)) for shape in _PRODUCTS[:kinds])
    print(json.dumps({"flops": flops, "bandwidth": bandwidth}))  # noqa: T201


class _Window(NamedTuple):
    """The work of one thread in a short time."""

    began: float
    ended: float
    amount: float


def _speed(threads: int, seconds: float, work: Work) -> float:
    """Return the highest amount of work per second that the threads reach together."""
    windows: list[list[_Window]] = [[] for _ in range(threads)]
    tries = _tries(seconds)
    barrier = Barrier(threads)

    def run(own: list[_Window]) -> None:
        step = work()
        step()
        for _ in range(tries):
            barrier.wait()
            began, amount = time.perf_counter(), 0.0
            while time.perf_counter() - began < seconds / tries:
                amount += step()
            own.append(_Window(began, time.perf_counter(), amount))
            barrier.wait()

    running = [Thread(target=run, args=(own,)) for own in windows]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    return max(map(_together, zip(*windows, strict=True)))


def _tries(seconds: float) -> int:
    return min(_TRIES, max(1, round(seconds / _LEAST_SECONDS)))


def _together(windows: Sequence[_Window]) -> float:
    """Return the speed of threads from the first that began to the last that ended."""
    span = max(it.ended for it in windows) - min(it.began for it in windows)
    return sum(it.amount for it in windows) / span


def _multiplying(number: int, rows: int, columns: int, depth: int) -> Work:
    def prepare() -> Callable[[], float]:
        one, other = np.ones((rows, depth), np.float32), np.ones((depth, columns), np.float32)
        ones, others = np.broadcast_to(one, (number, *one.shape)), np.broadcast_to(other, (number, *other.shape))
        products = np.empty((number, rows, columns), np.float32)

        def multiply() -> float:
            np.matmul(ones, others, out=products)
            return 2.0 * number * rows * columns * depth

        return multiply

    return prepare


def _reading(size: int) -> Work:
    # Other products, such as `matmul` of vectors, hold the lock.
    return _moving(size, lambda one, other: np.dot(one, other))


def _copying(size: int) -> Work:
    return _moving(size, lambda one, other: np.copyto(other, one))


def _moving(size: int, move: Callable[[Any, Any], object]) -> Work:
    """Move two arrays of this size together, one part of both after another."""
    parts = max(1, size // _BYTES_PER_STEP)
    each = max(1, size // 8 // parts)

    def prepare() -> Callable[[], float]:
        one, other = np.ones((parts, each), np.float32), np.ones((parts, each), np.float32)
        turns = cycle(range(parts))

        def step() -> float:
            part = next(turns)
            move(one[part], other[part])
            return 8.0 * each

        return step

    return prepare


if __name__ == "__main__":
    main(int(sys.argv[1]), float(sys.argv[2]), *map(int, sys.argv[3:]))
