"""Looking up a known model: the libraries that read and cut models, and the modules that predict, do not load."""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from onnx.helper import make_node

from dlbricks_tui.bricks.decomposition import decompose
from tests.estimate.stored import brick_records, store_of
from tests.estimate.table1 import table1
from tests.models.onnx_models import floats, model, saved
from tests.store.samples import runtime, system

LOOK_UPS = (("tree", "MODEL"), ("tree", "MODEL", "--json"), ("estimate", "MODEL", "--level", "written"))
# Runs commands one after another, and prints after each what has been loaded.
PROGRAM = """
import contextlib, json, sys
from dlbricks_tui.cli.main import main
for command in json.loads(sys.argv[1]):
    with contextlib.suppress(SystemExit):
        main(command)
    libraries = {"networkx", "onnx", "google.protobuf"} & set(sys.modules)
    predicting = [name for name in sys.modules if name.startswith("dlbricks_tui.estimate.prediction")]
    print("loaded:", *sorted(libraries), *predicting, file=sys.stderr)
"""


def loaded_by(data: Path, *commands: Sequence[str]) -> list[set[str]]:
    """The libraries for reading and cutting, and the modules for predicting, loaded by the end of each command."""
    asked = json.dumps([["--data-dir", str(data), *command] for command in commands])
    ran = subprocess.run([sys.executable, "-c", PROGRAM, asked], capture_output=True, text=True, check=True)
    return [set(line.split()[1:]) for line in ran.stderr.splitlines() if line.startswith("loaded:")]


def libraries_of(loaded: set[str]) -> set[str]:
    """Those that are not of dlbricks."""
    return {name for name in loaded if not name.startswith("dlbricks_tui.")}


def look_ups_of(model: str) -> list[list[str]]:
    return [[word.replace("MODEL", model) for word in look_up] for look_up in LOOK_UPS]


@pytest.fixture
def onnx_model(tmp_path: Path) -> str:
    nodes = [make_node("Conv", ["x", "w"], ["a"]), make_node("Relu", ["a"], ["y"])]
    return str(saved(tmp_path, model(nodes, {"x": (1, 3, 8, 8)}, ["y"], [floats("w", (8, 3, 3, 3))])))


@pytest.mark.mxnet
def test_a_known_mxnet_model_is_looked_up_without_networkx_and_estimated_without_predicting(tmp_path: Path) -> None:
    measured = decompose(table1()["16"])
    on: dict[str, Any] = {"system": "c5.xlarge", "runtime": "mxnet-1.5.1"}
    store_of(tmp_path / "store", system("c5.xlarge"), runtime("mxnet-1.5.1"), *brick_records(measured, **on)).close()
    how = ("--level", "written", "--system", "c5.xlarge")
    known, same = ("estimate", "table1:16", *how), ("estimate", "table1:16", *how, "--json")
    trees = (("tree", "table1:16"), ("tree", "table1:16", "--json"))
    (first,) = loaded_by(tmp_path, ("tree", "table1:16"))
    assert libraries_of(first) == {"networkx"}
    # VGG has other bricks.
    *look_ups, other = loaded_by(tmp_path, *trees, known, same, ("estimate", "table1:17", *how))
    assert look_ups == [set()] * 4
    assert "dlbricks_tui.estimate.prediction.nearest" in other


def test_a_known_onnx_model_is_looked_up_without_networkx_and_onnx(tmp_path: Path, onnx_model: str) -> None:
    asked = look_ups_of(onnx_model)
    first, *_ = loaded_by(tmp_path / "data", *asked)
    assert libraries_of(first) >= {"networkx", "onnx"}
    known = loaded_by(tmp_path / "data", *asked)
    assert [libraries_of(each) for each in known] == [set()] * len(asked)


def test_modules_of_commands_are_not_searched_for_garbage() -> None:
    program = (
        "import contextlib, gc\n"
        "from dlbricks_tui.cli.main import main\n"
        "with contextlib.suppress(SystemExit): main(['estimate', '--help'])\n"
        "print(gc.isenabled(), gc.get_freeze_count() > len(gc.get_objects()))"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout.splitlines()[-1] == "True True"
