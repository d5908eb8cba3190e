"""The two ways to time bricks, and the ids under which their results are stored.

`inside` times bricks where they stand in a network, by the runtime's own profiler. `alone` times each brick as a
program of its own, as the paper does.

An id is a hash of the code that decides what a latency is: results of another code are never taken for results of this
one. `tests/measure/test_method.py` fails when that code changes and the digest here does not, and says what is due.
"""

from enum import Enum


class Method(str, Enum):
    """A way to time bricks."""

    INSIDE = "inside"
    ALONE = "alone"

    @property
    def id(self) -> str:
        """The id that results of this method carry."""
        return f"{self.value}-{_DIGESTS[self]}"


# What both methods run: the worker, the programs that are written for it, and what is made of samples.
_COMMON = (
    "measure/stopping.py",
    "bricks/programs.py",
    "models/sheets.py",
    "runtime/inside/mxnet_binding.py",
    "runtime/inside/measuring.py",
    "runtime/inside/mxnet_backend.py",
    "runtime/inside/onnx_bytes.py",
    "runtime/inside/ort_backend.py",
    "runtime/inside/ort_session.py",
    "runtime/inside/values.py",
    "runtime/runtime.py",
    "runtime/traits.py",
    "store/statistics.py",
)
# The modules that decide what a latency is, by method.
DECIDING: dict[Method, tuple[str, ...]] = {
    Method.INSIDE: (
        *_COMMON,
        "measure/inside.py",
        "measure/timed_carrier.py",
        "measure/warming.py",
        "bricks/carriers.py",
        "runtime/inside/mxnet_profiler.py",
        "runtime/inside/ort_profiler.py",
    ),
    Method.ALONE: (
        *_COMMON,
        "measure/alone.py",
        "measure/rounds.py",
        "measure/warming.py",
        "bricks/contexts.py",
        "bricks/layouts.py",
        "bricks/feeding.py",
        "runtime/inside/backend.py",
    ),
}
_DIGESTS = {Method.INSIDE: "06bc8d95", Method.ALONE: "100ffc70"}
