"""The worker: reads requests from one pipe and writes replies to another, until the first one closes."""

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
    """Answer requests until the pipe closes."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--requests", type=int, required=True)
    parser.add_argument("--replies", type=int, required=True)
    parser.add_argument("--die-with", type=int)
    parser.add_argument("--memory-limit", type=int)
    parser.add_argument("--framework", required=True)
    arguments = parser.parse_args()
    # Other systems ignore a limit of the memory, or refuse to set it.
    if sys.platform == "linux":
        if arguments.die_with is not None:
            # Ends the worker with its parent, also while it computes and cannot notice the closed pipe.
            ctypes.CDLL(None).prctl(SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)
            if os.getppid() != arguments.die_with:
                sys.exit()
        if arguments.memory_limit is not None:
            _, most = resource.getrlimit(resource.RLIMIT_AS)
            wanted = [arguments.memory_limit, *([most] if most != resource.RLIM_INFINITY else [])]
            resource.setrlimit(resource.RLIMIT_AS, (min(wanted), most))
    threading.Thread(target=_end_when_closed, args=(arguments.requests,), daemon=True).start()
    make_package_known()
    from dlbricks_tui.runtime.inside.answering import answer_all

    with os.fdopen(arguments.requests, "rb") as requests, os.fdopen(arguments.replies, "wb") as replies:
        answer_all(requests, replies, arguments.framework)


def _end_when_closed(requests: int) -> None:
    # While the worker computes, it reads nothing and would not notice that the pipe was closed.
    watched = select.poll()
    watched.register(requests, 0)
    watched.poll()
    os._exit(0)


def make_package_known() -> None:
    # Only our package becomes importable: the folder around it may hold the packages of another interpreter. The folder
    # of this script, which Python puts on the path, would shadow modules of the framework.
    package_folder = Path(__file__).resolve().parents[2]
    sys.path.pop(0)
    package = types.ModuleType("dlbricks_tui")
    package.__path__ = [str(package_folder)]
    sys.modules["dlbricks_tui"] = package


if __name__ == "__main__":
    main()
