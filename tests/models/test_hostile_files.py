"""Hostile files: each is read or refused with little memory and time, and none controls the terminal."""

import json
import os
import pty
import re
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.models.hostile_files import ESCAPES, hostile_onnx, hostile_symbols
from tests.models.onnx_models import small

ROOT = Path(__file__).parents[2]
MOST_MIB = 500
# Processor time, which does not depend on other processes.
MOST_SECONDS = 10
# All control characters except tabs and line ends.
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


# Some of most kinds; the soak reads them all.
@pytest.mark.parametrize("step", [11, pytest.param(1, marks=pytest.mark.soak)])
def test_hundreds_of_hostile_files_are_read_or_refused_in_one_line_each(step: int, tmp_path: Path) -> None:
    models = tmp_path / "models"
    models.mkdir()
    names: list[str] = []
    for files, suffix in ((hostile_onnx(step), ".onnx"), (hostile_symbols(step), "-symbol.json")):
        for name, content in files.items():
            (models / f"{len(names):03}{suffix}").write_bytes(content)
            names.append(name)
    assert len(names) >= 600 // step
    command = [sys.executable, "-m", "tests.models.reading_child", str(models), str(tmp_path / "data")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2_000:]
    read = [{**json.loads(it), "name": name} for it, name in zip(done.stdout.splitlines(), names, strict=True)]
    # One process reads them all, so the first file over the limit is the culprit.
    assert [(it["name"], it["peak_mib"]) for it in read if it["peak_mib"] > MOST_MIB][:1] == []
    assert [it["name"] for it in read if it["seconds"] > MOST_SECONDS] == []
    assert [it["name"] for it in read if CONTROL.search(it["out"] + it["err"])] == []
    assert [(it["name"], it["err"][:300]) for it in read if not is_told_clearly(it)] == []


def is_told_clearly(read: Mapping[str, Any]) -> bool:
    """Return true if a file was shown as a model, or refused in one readable line."""
    if read["status"] == 0:
        return bool(read["out"])
    lines = read["err"].splitlines()
    one_line = len(lines) == 1 and lines[0].startswith("dlbricks: error: ") and len(lines[0]) < 1_000
    return read["status"] == 2 and one_line and not read["out"]


# Runs `dlbricks` once for each list of arguments.
_COMMANDS = "import json, sys; from dlbricks_tui.cli.main import main; [main(it) for it in json.loads(sys.argv[1])]"


def on_a_terminal(*commands: Sequence[str]) -> bytes:
    """Return the output of the commands with both streams on a terminal."""
    above, below = pty.openpty()
    command = [sys.executable, "-c", _COMMANDS, json.dumps(commands)]
    with subprocess.Popen(command, cwd=ROOT, stdin=below, stdout=below, stderr=below) as running:
        os.close(below)
        written = bytearray()
        # Reading from a closed terminal is an error on Linux, and the end of file elsewhere.
        with suppress(OSError):
            while part := os.read(above, 2**16):
                written += part
        running.wait()
    os.close(above)
    return bytes(written)


# The codes that rich writes: colours, and the line ends of a terminal.
OWN_CODES = re.compile(rb"\x1b\[[0-9;]*m|\r\n")


def test_names_in_files_send_no_control_codes_to_the_terminal(tmp_path: Path) -> None:
    named = tmp_path / "\x1b]0;owned\x07\x1b[2J"
    named.mkdir()
    made = small()
    made.graph.node[0].name = ESCAPES
    (named / "\x1b[31mmodel.onnx").write_bytes(made.SerializeToString())
    made.graph.node[0].input[0] = ESCAPES
    (named / "\x1b[31mrefusal.onnx").write_bytes(made.SerializeToString())
    data = ["--data-dir", str(tmp_path / "data")]
    trees = [[*data, "tree", str(path)] for path in sorted(named.iterdir())]
    written = OWN_CODES.sub(b"", on_a_terminal(*trees, [*data, "models", "add", str(named)], [*data, "models"]))
    assert b"refusal: node 0" in written
    assert written.count(b"owned") > 4
    assert CONTROL.search(written.decode()) is None


@pytest.mark.soak
@pytest.mark.parametrize(
    ("make", "suffix", "level"),
    [(hostile_onnx, ".onnx", "fused"), (hostile_symbols, "-symbol.json", "written")],
    ids=["onnx", "symbols"],
)
def test_the_frameworks_survive_hostile_files(
    make: Callable[[], Mapping[str, bytes]], suffix: str, level: str, tmp_path: Path
) -> None:
    """Each file by a command of its own, with the installed framework and a terminal."""
    path = tmp_path / f"net{suffix}"
    for name, content in make().items():
        path.write_bytes(content)
        arguments = ["--data-dir", str(tmp_path / "data"), "tree", str(path), "--level", level]
        written = OWN_CODES.sub(b"\n", on_a_terminal(arguments)).decode()
        assert CONTROL.search(written) is None, name
        assert "Traceback" not in written, name
        assert "fault of dlbricks" not in written, name
