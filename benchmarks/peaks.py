"""Compare the measured peaks of this host with another measurement of the same.

usage: python -m benchmarks.peaks [--threads N ...] [--rounds N]

Arithmetic is compared with a large matrix product through oneDNN, in a worker of MXNet or OpenVINO with the same
threads and instruction set. Bandwidth of memory is compared with copy and triad as in STREAM, in C, for which a
compiler is needed. Both take turns, and the highest of each counts. The difference is that from the copy.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from base64 import b64encode
from collections.abc import Iterator, Mapping
from pathlib import Path

from dlbricks_tui.host import processor
from dlbricks_tui.host.host_files import HostFiles
from dlbricks_tui.host.peaks import MEMORY, measure_peaks
from dlbricks_tui.runtime.process import Worker
from dlbricks_tui.runtime.protocol import ArrayType, Load, Network, Program, Sample
from dlbricks_tui.runtime.registry import Registry
from dlbricks_tui.runtime.runtime import Runtime
from dlbricks_tui.runtime.variant import InstructionSet

SECONDS = 120.0
# Agreement within this share is asked for.
AGREEMENT = 0.1
COPY = "copy"
# The instruction sets of the peaks by their names, and the limits of oneDNN.
LIMITS = {"avx512": InstructionSet.ALL, "avx2": InstructionSet.AVX2}
SIZES = (768, 1152)
RUNS = 200
# Together the arrays are this large.
ARRAY_BYTES = 1 << 30

STREAM = r"""
#include <immintrin.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

int main(int count, char **words) {
    long bytes = atol(words[1]), n = bytes / 3 / sizeof(float) / 16 * 16;
    float *a = aligned_alloc(64, n * 4), *b = aligned_alloc(64, n * 4), *c = aligned_alloc(64, n * 4);
    double copied = 0, combined = 0;
    #pragma omp parallel for schedule(static)
    for (long i = 0; i < n; i++) { a[i] = 1; b[i] = 2; c[i] = 0; }
    // Slices are short, so that some meet no other program.
    long slice = n / 32 / 4 * 4;
    for (int round = 0; round < 10; round++) {
        for (long from = 0; from + slice <= n; from += slice) {
            double begin = omp_get_wtime();
            #pragma omp parallel for schedule(static)
            for (long i = from; i < from + slice; i += 4) _mm_stream_ps(c + i, _mm_load_ps(a + i));
            double speed = 2.0 * 4 * slice / (omp_get_wtime() - begin);
            if (speed > copied) copied = speed;
        }
        for (long from = 0; from + slice <= n; from += slice) {
            double begin = omp_get_wtime();
            #pragma omp parallel for schedule(static)
            for (long i = from; i < from + slice; i += 4)
                _mm_stream_ps(c + i, _mm_add_ps(_mm_load_ps(a + i), _mm_mul_ps(_mm_set1_ps(3), _mm_load_ps(b + i))));
            double speed = 3.0 * 4 * slice / (omp_get_wtime() - begin);
            if (speed > combined) combined = speed;
        }
    }
    printf("%f %f\n", copied / 1e9, combined / 1e9);
}
"""


def main() -> int:
    """Print the peaks and the other measurements for each number of threads."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, nargs="*", default=[1, os.cpu_count() or 1])
    parser.add_argument("--rounds", type=int, default=4)
    args = parser.parse_args()
    agree = True
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        stream = _compiled_stream(folder)
        for threads in dict.fromkeys(args.threads):
            ours: dict[str, float] = {}
            theirs: dict[str, dict[str, float]] = {}
            for _ in range(args.rounds):
                peaks = measure_peaks("here", threads)
                for what, value in (*peaks.arithmetic, (MEMORY, dict(peaks.bandwidth)[MEMORY])):
                    ours[what] = max(ours.get(what, 0.0), value)
                for what, how, value in (*_products(folder, threads, ours), *_streams(stream, threads)):
                    held = theirs.setdefault(what, {})
                    held[how] = max(held.get(how, 0.0), value)
            agree = _told(threads, ours, theirs) and agree
    return 0 if agree else 1


def _told(threads: int, ours: Mapping[str, float], theirs: Mapping[str, Mapping[str, float]]) -> bool:
    agree = True
    for what, value in ours.items():
        others = dict(theirs.get(what, {}))
        told = ", ".join(f"{how} {each:.1f}" for how, each in others.items())
        if not told:
            print(f"{threads} threads, {what}: {value:.1f}, nothing to compare with", flush=True)
            continue
        difference = value / (others.get(COPY) or max(others.values())) - 1
        agree = agree and abs(difference) <= AGREEMENT
        print(f"{threads} threads, {what}: {value:.1f} billion per second; {told}; {difference:+.1%}", flush=True)
    return agree


def _products(folder: Path, threads: int, wanted: Mapping[str, float]) -> Iterator[tuple[str, str, float]]:
    """Yield the operations per second of the fastest matrix product, for each instruction set and runtime."""
    widest = processor.vector_instructions(HostFiles())
    for runtime in Registry(folder).all():
        for what, limit in LIMITS.items():
            if what in wanted and runtime.has_kernels(InstructionSet.AVX2, None):
                its = limit if what == widest else InstructionSet(what)
                limited = runtime.with_threads(threads).with_instructions(its)
                yield what, runtime.framework, max(_product(limited, size, folder) for size in SIZES) / 1e9


def _product(runtime: Runtime, size: int, folder: Path) -> float:
    with Worker(runtime, folder / "log") as worker:
        network = _multiplying(size) if runtime.framework == "mxnet" else _multiplying_in_onnx(size)
        worker.ask(Load("product", Program(network), check_values=False), SECONDS)
        (durations_ns,) = worker.ask(Sample(("product",), 3, RUNS), SECONDS).durations_ns
    return 2.0 * size**3 / min(durations_ns) * 1e9


def _multiplying(size: int) -> Network:
    """Return a fully connected layer, which MXNet hands to oneDNN."""
    attributes = {"num_hidden": str(size), "no_bias": "True"}
    nodes = [
        {"op": "null", "name": "data", "inputs": []},
        {"op": "null", "name": "weight", "inputs": []},
        {"op": "FullyConnected", "name": "product", "attrs": attributes, "inputs": [[0, 0, 0], [1, 0, 0]]},
    ]
    square = ArrayType((size, size), "float32")
    return Network(json.dumps({"nodes": nodes, "heads": [[2, 0, 0]]}), {"data": square}, {"weight": square})


def _multiplying_in_onnx(size: int) -> Network:
    """Return a matrix product in ONNX."""
    from onnx import TensorProto
    from onnx.helper import make_graph, make_model, make_node, make_opsetid, make_tensor_value_info

    names = "data", "other", "product"
    typed = [make_tensor_value_info(name, TensorProto.FLOAT, (size, size)) for name in names]
    graph = make_graph([make_node("MatMul", names[:2], names[2:], name="node0")], "product", typed[:2], typed[2:])
    model = make_model(graph, opset_imports=[make_opsetid("", 13)], ir_version=8)
    square = ArrayType((size, size), "float32")
    return Network(b64encode(model.SerializeToString()).decode(), dict.fromkeys(names[:2], square), {})


def _compiled_stream(folder: Path) -> Path | None:
    compiler = shutil.which("cc")
    if compiler is None:
        print("no C compiler `cc`: bandwidths are not compared", file=sys.stderr)
        return None
    source, program = folder / "stream.c", folder / "stream"
    source.write_text(STREAM)
    subprocess.run([compiler, "-O2", "-fopenmp", str(source), "-o", str(program)], check=True)
    return program


def _streams(program: Path | None, threads: int) -> Iterator[tuple[str, str, float]]:
    """Yield the bytes per second of copy and triad."""
    if program is None:
        return
    variables = {**os.environ, "OMP_NUM_THREADS": str(threads), "OMP_PROC_BIND": "true"}
    asked = [str(program), str(ARRAY_BYTES)]
    done = subprocess.run(asked, env=variables, capture_output=True, text=True, check=True)
    copied, combined = map(float, done.stdout.split())
    yield MEMORY, COPY, copied
    yield MEMORY, "triad", combined


if __name__ == "__main__":
    raise SystemExit(main())
