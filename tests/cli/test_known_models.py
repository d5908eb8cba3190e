"""Looking up a model that was read before: the libraries that read and cut models stay out of the way."""

import subprocess
import sys
from pathlib import Path

import pytest
from onnx.helper import make_node

from tests.models.onnx_models import floats, model, saved

LOOK_UPS = (["tree", "MODEL"], ["tree", "MODEL", "--json"], ["estimate", "MODEL", "--level", "written"])
PROGRAM = """
import contextlib, sys
from dlbricks_tui.cli.main import main
with contextlib.suppress(SystemExit):
    main(sys.argv[1:])
print(*sorted({"networkx", "onnx", "google.protobuf"} & set(sys.modules)), file=sys.stderr)
"""


def loaded_by(data: Path, *arguments: str) -> set[str]:
    """The libraries for reading and cutting that a command loads."""
    command = [sys.executable, "-c", PROGRAM, "--data-dir", str(data), *arguments]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    return set(ran.stderr.splitlines()[-1].split())


@pytest.fixture
def onnx_model(tmp_path: Path) -> str:
    nodes = [make_node("Conv", ["x", "w"], ["a"]), make_node("Relu", ["a"], ["y"])]
    return str(saved(tmp_path, model(nodes, {"x": (1, 3, 8, 8)}, ["y"], [floats("w", (8, 3, 3, 3))])))


@pytest.mark.mxnet
@pytest.mark.parametrize("look_up", LOOK_UPS, ids=" ".join)
def test_a_known_mxnet_model_is_looked_up_without_networkx(look_up: list[str], tmp_path: Path) -> None:
    command = [word.replace("MODEL", "squeezenet1.1") for word in look_up]
    assert loaded_by(tmp_path / "data", *command) == {"networkx"}
    assert loaded_by(tmp_path / "data", *command) == set()


@pytest.mark.parametrize("look_up", LOOK_UPS, ids=" ".join)
def test_a_known_onnx_model_is_looked_up_without_networkx_and_onnx(
    look_up: list[str], tmp_path: Path, onnx_model: str
) -> None:
    command = [word.replace("MODEL", onnx_model) for word in look_up]
    assert loaded_by(tmp_path / "data", *command) >= {"networkx", "onnx"}
    assert loaded_by(tmp_path / "data", *command) == set()
