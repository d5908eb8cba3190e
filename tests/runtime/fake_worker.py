"""A fake worker that speaks the real protocol and fails on demand, without a framework.

The variable FAKE_WORKER is the kind of failure. Otherwise it answers each request like `Describe`.
"""

import argparse
import os
import signal
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from dlbricks_tui.runtime.lines import encode
from dlbricks_tui.runtime.protocol import Described, Inferred, Reason, Refused

DESCRIBED = Described("3.7.16", "mxnet", "1.0")


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--requests", type=int)
    parser.add_argument("--replies", type=int)
    parser.add_argument("--framework")
    parser.add_argument("--die-with", type=int)
    parser.add_argument("--memory-limit", type=int)
    arguments = parser.parse_args()
    manner = os.environ.get("FAKE_WORKER", "")
    say("the framework greets")
    if manner == "slow start":
        time.sleep(0.05)
    if manner == "deaf":
        time.sleep(600)
    with os.fdopen(arguments.requests, "rb") as requests, os.fdopen(arguments.replies, "wb") as replies:
        for _ in requests:
            replies.write(answer(manner))
            replies.flush()


def answer(manner: str) -> bytes:
    if manner == "crash":
        say("the last words")
        say("  [bt] (0) somewhere")
        os.kill(os.getpid(), signal.SIGSEGV)
    if manner == "exit":
        sys.exit("no more")
    if manner == "hang":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        time.sleep(600)
    if manner == "temporary file":
        return encode(Described("3.7.16", "mxnet", tempfile.mkstemp()[1]))
    if manner == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if manner == "garbage":
        return b"\xff what?\n"
    if manner == "two answers":
        return encode(DESCRIBED) * 2
    if manner == "endless line":
        return b"x" * 100_000
    if manner == "another answer":
        return encode(Inferred((), ()))
    if manner == "refuse":
        return encode(Refused(Reason.INCONSISTENT, "it does not fit", 3))
    if manner == "no framework":
        return encode(Refused(Reason.NO_FRAMEWORK, "No module named 'mxnet'"))
    return encode(DESCRIBED)


if __name__ == "__main__":
    main()
