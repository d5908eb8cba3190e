"""Runs `dlbricks tree` for every file of a folder, in a process of its own, for tests.

Prints a line of JSON for each file, with the peak of memory so far.
"""

import io
import json
import resource
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

from dlbricks_tui.api.session import Session
from dlbricks_tui.cli.main import main
from dlbricks_tui.models.cache import GraphAnswer
from dlbricks_tui.models.graph import Shape
from dlbricks_tui.models.loading import Loader
from dlbricks_tui.runtime.errors import WorkerRefusedError
from dlbricks_tui.runtime.protocol import Reason
from tests.models.table_framework import TableFramework

# A file that fills the memory ends this process only.
_MOST_BYTES = 4 * 2**30


class _StrictTable(TableFramework):
    """Refuses parameters that it cannot read, as MXNet does."""

    def infer(self, symbol: str, shapes: Mapping[str, Shape]) -> GraphAnswer:
        try:
            return super().infer(symbol, shapes)
        except (ArithmeticError, LookupError, SyntaxError, TypeError, ValueError) as error:
            raise WorkerRefusedError(Reason.MALFORMED, type(error).__name__, None) from None


def read_all(folder: Path, data: Path) -> None:
    """Read each model of the folder."""
    resource.setrlimit(resource.RLIMIT_AS, (_MOST_BYTES, _MOST_BYTES))

    @contextmanager
    def loader(*_: object) -> Iterator[Loader]:
        yield Loader(data / "cache", _StrictTable())

    setattr(Session, "open_loader", loader)  # noqa: B010 - which a type checker would refuse
    for path in sorted(folder.iterdir()):
        if path.name.endswith((".onnx", ".json")):
            print(json.dumps(_read(path, data)), flush=True)  # noqa: T201 - read by the test


def _read(path: Path, data: Path) -> dict[str, Any]:
    out, err = io.StringIO(), io.StringIO()
    begin = time.process_time()
    with redirect_stdout(out), redirect_stderr(err):
        status = main(["--data-dir", str(data), "tree", str(path)])
    seconds = time.process_time() - begin
    found = {"status": status, "out": out.getvalue(), "err": err.getvalue()}
    return {"file": path.name, **found, "seconds": seconds, "peak_mib": _peak_mib()}


def _peak_mib() -> int:
    # On Linux only: the peak of getrusage includes the memory of the parent at the fork.
    status = Path("/proc/self/status")
    lines = status.read_text().splitlines() if status.exists() else []
    return next((int(line.split()[1]) // 1024 for line in lines if line.startswith("VmHWM")), 0)


if __name__ == "__main__":
    read_all(Path(sys.argv[1]), Path(sys.argv[2]))
