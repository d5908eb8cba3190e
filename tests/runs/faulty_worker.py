"""The real worker with its real framework, in which networks with some operators misbehave when they are run.

FAULTS is a JSON object that says, by the name of an operator, how and from which run on: `["segfault", 1]`.
"""

import ctypes
import json
import os
import runpy
import sys
import time
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

INSIDE = Path(__file__).resolve().parents[2] / "dlbricks_tui" / "runtime" / "inside"
# Of one array, by MXNet's own rules: 16 GiB of double precision.
MOST_ELEMENTS = (1 << 31) - 2


def main() -> None:
    worker = runpy.run_path(str(INSIDE / "__main__.py"))
    sys.path.insert(0, str(INSIDE))
    worker["_make_package_known"]()
    from dlbricks_tui.runtime.inside.mxnet_framework import load_mxnet

    # Our modules need the names that numpy lacks.
    mxnet = load_mxnet()
    from dlbricks_tui.runtime.inside import mxnet_backend

    faults = json.loads(os.environ["FAULTS"])
    run = mxnet_backend.BoundSymbol.run
    runs: Counter[int] = Counter()

    def run_badly(self: Any) -> None:
        run(self)
        runs[id(self)] += 1
        for operator in self._file.operators:
            fault, number = faults.get(operator, ("", 0))
            if fault and runs[id(self)] >= number:
                self._asked(partial(FAULTS[fault], mxnet, self))

    mxnet_backend.BoundSymbol.run = run_badly  # type: ignore[method-assign]
    # It puts itself in order once more.
    sys.path.insert(0, str(INSIDE))
    worker["main"]()


def segfault(mxnet: Any, network: Any) -> None:
    ctypes.string_at(0)


def sleep(mxnet: Any, network: Any) -> None:
    time.sleep(1e6)


def devour(mxnet: Any, network: Any) -> None:
    mxnet.nd.ones((MOST_ELEMENTS,), dtype="float64").wait_to_read()


def break_values(mxnet: Any, network: Any) -> None:
    network.outputs[0][:] = float("nan")


FAULTS = {"segfault": segfault, "sleep": sleep, "devour": devour, "not a number": break_values}


if __name__ == "__main__":
    main()
