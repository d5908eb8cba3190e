"""Measure how much the latency of one model varies in ONNX Runtime, with its own number of threads and with one.

usage: python -m benchmarks.onnx_variation [--seconds S] [MODEL.onnx]

Nothing of dlbricks takes part. Each line has the median latency of each second. Where they jump, no estimate can be
closer than the jump.
"""

import argparse
import time
from pathlib import Path
from statistics import median

import numpy as np
import onnxruntime

from benchmarks.onnx_models import LIGHT


def main() -> None:
    """Runs the model in both ways."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", nargs="?", type=Path, default=LIGHT / "light_densenet121.onnx")
    parser.add_argument("--seconds", type=int, default=20)
    arguments = parser.parse_args()
    for threads in (0, 1):
        found = seconds(arguments.model, threads, arguments.seconds)
        print(f"{'one thread ' if threads else 'all threads'} " + " ".join(f"{each:.1f}" for each in found), flush=True)


def seconds(path: Path, threads: int, count: int) -> list[float]:
    """The median of each second, in milliseconds."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    given = session.get_inputs()[0]
    fed = {given.name: np.random.default_rng(0).random(given.shape, dtype=np.float32)}
    medians = []
    for _ in range(count):
        end = time.perf_counter() + 1.0
        taken = []
        while time.perf_counter() < end:
            begin = time.perf_counter()
            session.run(None, fed)
            taken.append((time.perf_counter() - begin) * 1000)
        medians.append(median(taken))
    return medians


if __name__ == "__main__":
    main()
