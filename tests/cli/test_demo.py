import json
import subprocess
import sys
from pathlib import Path

import pytest

from dlbricks_tui.answers.demonstration import Demonstration, open_demonstration
from dlbricks_tui.cli.main import main
from dlbricks_tui.config.config import Sources
from dlbricks_tui.recorded_host import recorded_host
from tests.cli.people import Command, one_line

ROOT = Path(__file__).parents[2]
FAST = ("--speed", "100000")
# Frameworks that are asked for are missing, and so is every other program.
BLOCKED = """
import importlib.abc, subprocess, sys

class Blocker(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name.partition(".")[0] in ("mxnet", "onnxruntime", "openvino", "distributed", "mlperf_loadgen"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Blocker())

def refuse(*_, **__):
    raise AssertionError("a process was started")

subprocess.Popen.__init__ = refuse
from dlbricks_tui.cli.main import main
sys.exit(main(sys.argv[1:]))
"""


def test_it_needs_no_framework_and_starts_no_process(tmp_path: Path) -> None:
    command = [sys.executable, "-c", BLOCKED, "--data-dir", str(tmp_path / "data"), "demo", "--json", *FAST]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    found = json.loads(ran.stdout)
    assert found["state"] == "finished" and len(found["models"]) >= 3
    assert all(it["sequential_ms"] > 0 < it["measured_ms"] for it in found["models"])
    assert not (tmp_path / "data").exists()
    assert "a demonstration: all numbers were recorded on " in ran.stderr


def test_in_a_terminal_it_opens_the_workbench_on_the_recorded_results(tmp_path: Path) -> None:
    opened = []

    def demonstrate(found: Demonstration, sources: Sources, speed: float) -> int:
        opened.append((found.data.store.is_dir(), recorded_host() is found.host, speed))
        assert sources.read().theme == "light"
        return 7

    arguments = ["--data-dir", str(tmp_path), "--set", "workbench.theme=light", "demo", "--speed", "2"]
    assert main(arguments, demonstrate=demonstrate) == 7
    assert opened == [(True, True, 2.0)]
    assert recorded_host() is None


@pytest.mark.parametrize("speed", ["0", "-3", "nan", "fast"])
def test_a_wrong_speed_is_one_line(speed: str, dlbricks: Command) -> None:
    one_line(dlbricks("demo", f"--speed={speed}"))


def test_the_measured_models_are_estimated_from_results_of_this_method(capsys: pytest.CaptureFixture[str]) -> None:
    with open_demonstration() as found:
        assert main(["--data-dir", str(found.data.path), "estimate", "squeezenet1.1", "--measured-only", "--json"]) == 0
    (estimate,) = json.loads(capsys.readouterr().out)
    assert recorded_host() is None
    anew = "the method has changed: python -m docs.recording FOLDER records the demonstration anew"
    assert estimate["coverage"]["missing"] == 0, anew
    assert estimate["sequential_ms"] > 0 < estimate["measured_ms"], anew
