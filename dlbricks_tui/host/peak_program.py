"""The program that measures peaks: it runs in a separate process, because BLAS reads its settings when it is loaded.

usage: peak_program.py THREADS SECONDS BYTES...

It prints a JSON document: `flops` is the 32-bit floating-point operations per second of all threads together, and
`bandwidth` the bytes read per second from arrays of each of these sizes, one array per thread. BLAS itself must have
one thread. Each thread works on its own arrays in calls that hold no lock of the interpreter.
"""

import json
import sys
import time
from collections.abc import Callable
from threading import Barrier, Thread

import numpy as np

# Large enough for the full speed of a matrix product, small enough for the caches.
_ROWS = 768
# Each call of the interpreter reads so many bytes: its own time does not count then.
_BYTES_PER_CALL = 32 << 20
# The highest of several speeds counts: noise only makes a program slower.
_TRIES = 3

# Prepares the arrays of a thread, and returns a function that does some work and returns its amount.
Work = Callable[[], Callable[[], float]]


def main(threads: int, seconds: float, *sizes: int) -> None:
    """Print the peaks of so many threads, each measured for so many seconds."""
    bandwidth = [_speed(threads, seconds, _reading(size)) for size in sizes]
    print(json.dumps({"flops": _speed(threads, seconds, _multiplying), "bandwidth": bandwidth}))  # noqa: T201


def _speed(threads: int, seconds: float, work: Work) -> float:
    """Return the highest amount of work per second that the threads reach together."""
    began, ended = [0.0] * _TRIES, [0.0] * _TRIES
    amounts = [[0.0] * _TRIES for _ in range(threads)]
    barrier = Barrier(threads)

    def run(own: list[float]) -> None:
        step = work()
        step()
        for number in range(_TRIES):
            barrier.wait()
            began[number] = begin = time.perf_counter()
            while time.perf_counter() - begin < seconds / _TRIES:
                own[number] += step()
            ended[number] = max(ended[number], time.perf_counter())
            barrier.wait()

    running = [Thread(target=run, args=(own,)) for own in amounts]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    return max(sum(own[number] for own in amounts) / (ended[number] - began[number]) for number in range(_TRIES))


def _multiplying() -> Callable[[], float]:
    one, other = np.ones((_ROWS, _ROWS), np.float32), np.ones((_ROWS, _ROWS), np.float32)
    product = np.empty((_ROWS, _ROWS), np.float32)

    def multiply() -> float:
        np.matmul(one, other, out=product)
        return 2.0 * _ROWS**3

    return multiply


def _reading(size: int) -> Work:
    def prepare() -> Callable[[], float]:
        half = max(1, size // 8)
        one, other = np.ones((1, half), np.float32), np.ones((half, 1), np.float32)
        times = max(1, _BYTES_PER_CALL // (8 * half))
        rows, products = np.broadcast_to(one, (times, 1, half)), np.empty((times, 1, 1), np.float32)

        def read() -> float:
            np.matmul(rows, other, out=products)
            return 8.0 * half * times

        return read

    return prepare


if __name__ == "__main__":
    main(int(sys.argv[1]), float(sys.argv[2]), *map(int, sys.argv[3:]))
