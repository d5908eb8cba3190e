"""What dask calls on a host: each function takes and returns text, so that no object of a host is loaded at home.

A fault is returned as text, too.
"""

import json
from collections.abc import Callable
from typing import Any

from dlbricks_tui.errors import UserError
from dlbricks_tui.fleet import at_host
from dlbricks_tui.folders import data_folder

# Letters of a reason.
_LONGEST_REASON = 500


def report() -> str:
    """Return the report of this host."""
    return _answer(lambda: json.loads(at_host.report(_data())))


def missing(hashes: list[str]) -> str:
    """Return the parcels of these that this host lacks."""
    return _answer(lambda: at_host.missing(_data(), hashes))


def take(sha256: str, suffix: str, content: bytes) -> str:
    """Store a parcel."""
    return _answer(lambda: at_host.take(_data(), sha256, suffix, content))


def carry_out(task: str, topic: str) -> str:
    """Carry out a task, and log what is measured under a topic that only this task knows."""
    from distributed import get_worker

    worker = get_worker()
    return _answer(lambda: at_host.carry_out(_data(), task, lambda text: worker.log_event(topic, text)))


def control(task: str, what: str) -> str:
    """Pause, continue or cancel a task, while its thread waits for the end of the run."""
    return _answer(lambda: at_host.control(_data(), task, what))


def _data() -> str:
    return str(data_folder().path)


def _answer(question: Callable[[], Any]) -> str:
    try:
        return json.dumps({"answer": question()})
    except UserError as error:
        return json.dumps({"error": str(error)[:_LONGEST_REASON]})
