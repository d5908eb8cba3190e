"""Signals that end a command."""

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

# True since SIGINT has arrived.
_interrupted = False


@contextmanager
def interrupts_raise(leave: Callable[[], None]) -> Iterator[None]:
    """Let SIGINT raise KeyboardInterrupt in the block, and be remembered; `leave` ends the program at once."""

    def interrupt(*_: object) -> None:
        global _interrupted
        _interrupted = True
        raise KeyboardInterrupt

    def unraisable(told: "sys.UnraisableHookArgs") -> None:
        # Python would print a traceback, and go on as if nothing had happened.
        if issubclass(told.exc_type, KeyboardInterrupt):
            leave()
        hook(told)

    before, hook = signal.signal(signal.SIGINT, interrupt), sys.unraisablehook
    sys.unraisablehook = unraisable
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        sys.unraisablehook = hook


def was_interrupted() -> bool:
    """Return whether SIGINT has arrived: modules that are imported then may raise something else in its place."""
    return _interrupted


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
