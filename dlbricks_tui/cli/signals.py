"""Signals that end a command which follows another process."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def signals_interrupt() -> Iterator[None]:
    """Let SIGTERM and SIGHUP end the block as ctrl+c does, so that no process is left."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    # What `nohup` lets a program ignore stays ignored.
    taken = [it for it in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(it) is not signal.SIG_IGN]
    before = {number: signal.signal(number, interrupt) for number in taken}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
