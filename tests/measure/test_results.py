import subprocess
from pathlib import Path

import pytest

from dlbricks_tui.host.fingerprint import fingerprint
from dlbricks_tui.measure.results import runtime_record
from dlbricks_tui.runtime.registry import Registry
from dlbricks_tui.runtime.runtime import Runtime, Settings
from dlbricks_tui.runtime.traits import MXNET

# MXNet and we have one OpenMP, as a process has the libraries of a name once.
ASKING = """
import ctypes, os
from dlbricks_tui.runtime.inside.mxnet_framework import load_mxnet
load_mxnet()
with open("/proc/self/maps") as maps:
    paths = {line.split()[-1] for line in maps if "omp" in os.path.basename(line.split()[-1])}
print(max(ctypes.CDLL(path).omp_get_max_threads() for path in paths))
"""


def of(framework: str, settings: Settings) -> Runtime:
    return Runtime("it", "/python", framework, "1.0", "3.11.2", settings)


def test_the_record_of_a_runtime_has_its_threads_or_none_where_they_are_not_known() -> None:
    assert runtime_record(of(MXNET.framework, Settings(threads=3)), fingerprint()).threads == 3
    assert runtime_record(of(MXNET.framework, Settings()), fingerprint()).threads == 0


@pytest.mark.mxnet
@pytest.mark.soak
def test_mxnet_starts_as_many_threads_as_its_record_says(tmp_path: Path) -> None:
    our_runtime = Registry(tmp_path).default()
    asked = subprocess.run(
        [our_runtime.python, "-c", ASKING], env=our_runtime.environment({}), capture_output=True, text=True, check=True
    )
    assert int(asked.stdout.split()[-1]) == runtime_record(our_runtime, fingerprint()).threads
