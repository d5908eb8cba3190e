"""Stopping as a job of a shell does, until the shell wakes it, and noticing that the terminal is gone."""

import os
import select
import signal
import sys


def has_shell() -> bool:
    """Whether somebody could wake what stops: who leads the session was started by no shell."""
    return os.getsid(0) != os.getpgrp()


def stop_job() -> None:
    """Stops this process and all that the shell started with it, as make or a script; returns when they are woken.

    By the kernel's own rule, as a handler would stop this process only after the others: a shell that wakes them at
    once would be too early for it, and nobody would wake it again.
    """
    handler = signal.signal(signal.SIGTSTP, signal.SIG_DFL)
    try:
        os.killpg(0, signal.SIGTSTP)
    finally:
        signal.signal(signal.SIGTSTP, handler)


def is_hung_up(file: int) -> bool:
    """Whether nobody is at the other end of a terminal any more.

    The kernel tells only who leads the session; where that is make, it waits for us instead of passing it on.
    """
    poll = select.poll()
    poll.register(file, 0)
    return any(event & (select.POLLHUP | select.POLLERR | select.POLLNVAL) for _, event in poll.poll(0))


def let_go_of_what_is_hung_up() -> None:
    """Has nobody be written to any more who is gone.

    The interpreter writes what is left when it ends; where it cannot, the exit status is one of its own.
    """
    for stream in (sys.__stdout__, sys.__stderr__):
        if stream is not None and not stream.closed and is_hung_up(stream.fileno()):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
