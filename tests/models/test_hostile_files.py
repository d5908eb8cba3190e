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

from tests.models.hostile_files import hostile_onnx, hostile_symbols

ROOT = Path(__file__).parents[2]
MOST_MIB = 500
# Processor time, which does not depend on other processes.
MOST_SECONDS = 10
# All control characters except tabs and line ends.
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def read_by_a_child(folder: Path, files: Mapping[str, bytes], suffix: str) -> list[Any]:
    """Return the output of `dlbricks tree` for each file, and the resources that it took."""
    models = folder / "models"
    models.mkdir()
    for number, content in enumerate(files.values()):
        (models / f"{number:03}{suffix}").write_bytes(content)
    command = [sys.executable, "-m", "tests.models.reading_child", str(models), str(folder / "data")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2_000:]
    read = map(json.loads, done.stdout.splitlines())
    return [{**it, "name": name} for it, name in zip(read, files, strict=True)]


@pytest.mark.parametrize(
    ("make", "suffix"), [(hostile_onnx, ".onnx"), (hostile_symbols, "-symbol.json")], ids=["onnx", "symbols"]
)
# Files of one kind are next to each other, so that every fourth has most kinds; the soak reads them all.
@pytest.mark.parametrize("step", [4, pytest.param(1, marks=pytest.mark.soak)])
def test_hundreds_of_hostile_files_are_read_or_refused_in_one_line_each(
    make: Callable[[], Mapping[str, bytes]], suffix: str, step: int, tmp_path: Path
) -> None:
    every = make()
    assert len(every) >= 200
    files = dict(list(every.items())[::step])
    read = read_by_a_child(tmp_path, files, suffix)
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


def on_a_terminal(arguments: Sequence[str]) -> bytes:
    """Return the output of the command with both streams on a terminal."""
    above, below = pty.openpty()
    command = [sys.executable, "-m", "dlbricks_tui", *arguments]
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
    chosen = {"model": "escapes wherever it says graph node0 name", "refusal": "escapes in graph node0 input0"}
    files = hostile_onnx()
    data = ["--data-dir", str(tmp_path / "data")]
    for called, name in chosen.items():
        path = named / f"\x1b[31m{called}.onnx"
        path.write_bytes(files[name])
        written = OWN_CODES.sub(b"", on_a_terminal([*data, "tree", str(path)]))
        assert len(written) > 20
        assert CONTROL.search(written.decode()) is None
    on_a_terminal([*data, "models", "add", str(named)])
    listed = OWN_CODES.sub(b"", on_a_terminal([*data, "models"]))
    assert b"refusal" in listed
    assert CONTROL.search(listed.decode()) is None


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
