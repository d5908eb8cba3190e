"""The other end of a worker: reads requests from one pipe and writes replies to another, until the first closes."""

from __future__ import annotations

import argparse
import ctypes
import os
import resource
import select
import signal
import sys
import threading
import types
from pathlib import Path

SET_PARENT_DEATH_SIGNAL = 1


def main() -> None:
    """Answers until nobody asks any more."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--requests", type=int, required=True)
    parser.add_argument("--replies", type=int, required=True)
    parser.add_argument("--die-with", type=int)
    parser.add_argument("--memory-limit", type=int)
    parser.add_argument("--framework", default="mxnet")
    arguments = parser.parse_args()
    if arguments.die_with is not None:
        _die_with(arguments.die_with)
    if arguments.memory_limit is not None:
        _limit_memory(arguments.memory_limit)
    threading.Thread(target=_end_when_closed, args=(arguments.requests,), daemon=True).start()
    _make_package_known()
    from dlbricks_tui.runtime.inside.answering import answer_all

    with os.fdopen(arguments.requests, "rb") as requests, os.fdopen(arguments.replies, "wb") as replies:
        answer_all(requests, replies, arguments.framework)


def _die_with(parent: int) -> None:
    # Frees the machine of a worker that neither answers nor lets another thread run.
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)
        if os.getppid() != parent:
            sys.exit()


def _limit_memory(limit_bytes: int) -> None:
    # Elsewhere the system does not keep to it, or refuses to set it.
    if sys.platform == "linux":
        _, most = resource.getrlimit(resource.RLIMIT_AS)
        if most != resource.RLIM_INFINITY:
            limit_bytes = min(limit_bytes, most)
        resource.setrlimit(resource.RLIMIT_AS, (limit_bytes, most))


def _end_when_closed(requests: int) -> None:
    # A worker that computes reads nothing, and would outlive those who asked.
    watched = select.poll()
    watched.register(requests, 0)
    watched.poll()
    os._exit(0)


def _make_package_known() -> None:
    # Only our code: the folder that holds our package may hold an interpreter's worth of others, and the folder of
    # this script, which Python puts on the path, would shadow modules of the framework.
    package_folder = Path(__file__).resolve().parents[2]
    sys.path.pop(0)
    package = types.ModuleType("dlbricks_tui")
    package.__path__ = [str(package_folder)]
    sys.modules["dlbricks_tui"] = package


if __name__ == "__main__":
    main()
