"""Looking up a known model: the libraries that read and cut models, and the modules that predict, do not load."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from onnx.helper import make_node

from dlbricks_tui.bricks.decomposition import decompose
from tests.estimate.stored import brick_records, store_of
from tests.estimate.table1 import table1
from tests.models.onnx_models import floats, model, saved
from tests.store.samples import runtime, system

LOOK_UPS = (["tree", "MODEL"], ["tree", "MODEL", "--json"], ["estimate", "MODEL", "--level", "written"])
PROGRAM = """
import contextlib, sys
from dlbricks_tui.cli.main import main
with contextlib.suppress(SystemExit):
    main(sys.argv[1:])
libraries = {"networkx", "onnx", "google.protobuf"} & set(sys.modules)
predicting = [name for name in sys.modules if name.startswith("dlbricks_tui.estimate.prediction")]
print(*sorted(libraries), *predicting, file=sys.stderr)
"""


def loaded_by(data: Path, *arguments: str) -> set[str]:
    """The libraries for reading and cutting, and the modules for predicting, that a command loads."""
    command = [sys.executable, "-c", PROGRAM, "--data-dir", str(data), *arguments]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    return set(ran.stderr.splitlines()[-1].split())


def libraries_of(loaded: set[str]) -> set[str]:
    """Those that are not of dlbricks."""
    return {name for name in loaded if not name.startswith("dlbricks_tui.")}


@pytest.fixture
def onnx_model(tmp_path: Path) -> str:
    nodes = [make_node("Conv", ["x", "w"], ["a"]), make_node("Relu", ["a"], ["y"])]
    return str(saved(tmp_path, model(nodes, {"x": (1, 3, 8, 8)}, ["y"], [floats("w", (8, 3, 3, 3))])))


@pytest.mark.mxnet
@pytest.mark.parametrize("look_up", LOOK_UPS, ids=" ".join)
def test_a_known_mxnet_model_is_looked_up_without_networkx(look_up: list[str], tmp_path: Path) -> None:
    command = [word.replace("MODEL", "squeezenet1.1") for word in look_up]
    assert libraries_of(loaded_by(tmp_path / "data", *command)) == {"networkx"}
    assert libraries_of(loaded_by(tmp_path / "data", *command)) == set()


@pytest.mark.parametrize("look_up", LOOK_UPS, ids=" ".join)
def test_a_known_onnx_model_is_looked_up_without_networkx_and_onnx(
    look_up: list[str], tmp_path: Path, onnx_model: str
) -> None:
    command = [word.replace("MODEL", onnx_model) for word in look_up]
    assert libraries_of(loaded_by(tmp_path / "data", *command)) >= {"networkx", "onnx"}
    assert libraries_of(loaded_by(tmp_path / "data", *command)) == set()


@pytest.mark.parametrize("output", [["--json"], []], ids=["json", "text"])
def test_a_measured_model_is_estimated_without_the_modules_that_predict(output: list[str], tmp_path: Path) -> None:
    measured = decompose(table1()["16"])
    on: dict[str, Any] = {"system": "c5.xlarge", "runtime": "mxnet-1.5.1"}
    store_of(tmp_path / "store", system("c5.xlarge"), runtime("mxnet-1.5.1"), *brick_records(measured, **on)).close()
    command = ("--level", "written", "--system", "c5.xlarge", *output)
    # The first look-up cuts the model, which takes networkx.
    assert loaded_by(tmp_path, "estimate", "table1:16", *command) <= {"networkx"}
    # VGG has other bricks.
    assert "dlbricks_tui.estimate.prediction.nearest" in loaded_by(tmp_path, "estimate", "table1:17", *command)


def test_modules_of_commands_are_not_searched_for_garbage() -> None:
    program = (
        "import contextlib, gc\n"
        "from dlbricks_tui.cli.main import main\n"
        "with contextlib.suppress(SystemExit): main(['estimate', '--help'])\n"
        "print(gc.isenabled(), gc.get_freeze_count() > len(gc.get_objects()))"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout.splitlines()[-1] == "True True"
