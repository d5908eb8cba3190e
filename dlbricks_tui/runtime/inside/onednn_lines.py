"""The lines that oneDNN prints about its kernels while a network runs, with the operators that they belong to.

oneDNN prints to the standard output of the process, through the buffer of the C library.
"""

from __future__ import annotations

import ctypes
import os
import re
import tempfile
from collections.abc import Callable
from typing import Any

from dlbricks_tui.runtime.protocol import Said

_STANDARD_OUTPUT = 1
_LINE = re.compile(r"(?:dnnl|onednn|mkldnn)_verbose,")
# Written between the lines where an operator has ended.
_MARK = "dlbricks,ran,"


def lines_printed(run: Callable[[], Any]) -> tuple[Said, ...]:
    """Return the lines that oneDNN prints while a function runs."""
    before = os.dup(_STANDARD_OUTPUT)
    with tempfile.TemporaryFile() as file:
        try:
            _flush()
            os.dup2(file.fileno(), _STANDARD_OUTPUT)
            run()
        finally:
            _flush()
            os.dup2(before, _STANDARD_OUTPUT)
            os.close(before)
        file.seek(0)
        return lines_in(file.read().decode(errors="replace"))


def mark(node: int) -> None:
    """Note in the output that the operator of this number has run."""
    _flush()
    os.write(_STANDARD_OUTPUT, f"{_MARK}{node}\n".encode())


def lines_in(text: str) -> tuple[Said, ...]:
    """Return the lines of oneDNN in an output. Those in front of a mark belong to its operator."""
    found: list[Said] = []
    unowned = 0
    for line in text.splitlines():
        if line.startswith(_MARK):
            node = int(line[len(_MARK) :])
            found[unowned:] = [Said(it.line, node) for it in found[unowned:]]
            unowned = len(found)
        elif _LINE.match(line):
            found.append(Said(line, None))
    return tuple(found)


def _flush() -> None:
    ctypes.CDLL(None).fflush(None)
