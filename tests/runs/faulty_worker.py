"""The real worker with ONNX Runtime, in which networks with some operators misbehave when they are run.

FAULTS is a JSON object that says, by the name of an operator, how and from which run on: `["segfault", 1]`.
"""

import ctypes
import json
import os
import runpy
import sys
import time
from base64 import b64decode
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

INSIDE = Path(__file__).resolve().parents[2] / "dlbricks_tui" / "runtime" / "inside"
# Of one array: 16 GiB of double precision.
MOST_ELEMENTS = (1 << 31) - 2


def main() -> None:
    worker = runpy.run_path(str(INSIDE / "__main__.py"))
    sys.path.insert(0, str(INSIDE))
    worker["make_package_known"]()
    spoil_networks()
    # It puts itself in order once more.
    sys.path.insert(0, str(INSIDE))
    worker["main"]()


def spoil_networks() -> None:
    """Let networks with some operators misbehave from some run on."""
    import numpy
    import onnxruntime

    from dlbricks_tui.runtime.inside.ort_backend import _BoundModel
    from dlbricks_tui.runtime.inside.ort_session import ask
    from dlbricks_tui.runtime.protocol import Reason

    def break_values(network: Any) -> None:
        (shape,) = {tuple(it.shape()) for it in network.outputs}
        network.outputs[0].update_inplace(numpy.full(shape, numpy.nan, "float32"))

    faults: dict[str, Callable[[Any], object]] = {
        "segfault": lambda _: ctypes.string_at(0),
        "sleep": lambda _: time.sleep(1e6),
        "devour": lambda _: onnxruntime.OrtValue.ortvalue_from_shape_and_type((MOST_ELEMENTS,), "float64"),
        "not a number": break_values,
    }
    bound: Any = _BoundModel
    asked, run, runs = json.loads(os.environ["FAULTS"]), bound.run, Counter[int]()

    def run_badly(network: Any) -> None:
        run(network)
        runs[id(network)] += 1
        content = b64decode(network.network.symbol)
        for operator, (fault, number) in asked.items():
            if operator.encode() in content and runs[id(network)] >= number:
                ask(onnxruntime, lambda chosen=faults[fault]: chosen(network), Reason.UNBUILDABLE)  # type: ignore[misc]

    bound.run = run_badly


if __name__ == "__main__":
    main()
