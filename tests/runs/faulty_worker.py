"""The real worker with its real framework, in which networks with some operators misbehave when they are run.

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
# Of one array, by MXNet's own rules: 16 GiB of double precision.
MOST_ELEMENTS = (1 << 31) - 2
Fault = Callable[[Any], object]


def main() -> None:
    worker = runpy.run_path(str(INSIDE / "__main__.py"))
    sys.path.insert(0, str(INSIDE))
    worker["make_package_known"]()
    spoil_onnx_runtime()
    # It puts itself in order once more.
    sys.path.insert(0, str(INSIDE))
    worker["main"]()


def spoil_onnx_runtime() -> None:
    import numpy
    import onnxruntime

    from dlbricks_tui.runtime.inside.ort_backend import _BoundModel
    from dlbricks_tui.runtime.inside.ort_session import ask
    from dlbricks_tui.runtime.protocol import Reason

    def break_values(network: Any) -> None:
        (shape,) = {tuple(it.shape()) for it in network.outputs}
        network.outputs[0].update_inplace(numpy.full(shape, numpy.nan, "float32"))

    def operators(network: Any) -> list[str]:
        content = b64decode(network._network.symbol)
        return [name for name in asked_faults() if name.encode() in content]

    faults: dict[str, Fault] = {
        **FAULTS,
        "devour": lambda _: onnxruntime.OrtValue.ortvalue_from_shape_and_type((MOST_ELEMENTS,), "float64"),
        "not a number": break_values,
    }
    spoil(_BoundModel, faults, operators, lambda _, fault: ask(onnxruntime, fault, Reason.UNBUILDABLE))


def spoil(
    networks: Any,
    faults: dict[str, Fault],
    operators: Callable[[Any], list[str]],
    guarded: Callable[[Any, Callable[[], object]], object],
) -> None:
    """Let networks with some operators misbehave from some run on."""
    run, asked = networks.run, asked_faults()
    runs: Counter[int] = Counter()

    def run_badly(network: Any) -> None:
        run(network)
        runs[id(network)] += 1
        for operator in operators(network):
            fault, number = asked.get(operator, ("", 0))
            if fault and runs[id(network)] >= number:
                guarded(network, lambda chosen=faults[fault]: chosen(network))  # type: ignore[misc]

    networks.run = run_badly


def asked_faults() -> dict[str, tuple[str, int]]:
    return {operator: (fault, number) for operator, (fault, number) in json.loads(os.environ["FAULTS"]).items()}


FAULTS: dict[str, Fault] = {"segfault": lambda _: ctypes.string_at(0), "sleep": lambda _: time.sleep(1e6)}


if __name__ == "__main__":
    main()
