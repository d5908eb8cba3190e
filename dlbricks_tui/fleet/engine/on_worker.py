"""Functions that dask calls on a host: each returns text, so that no object of ours is pickled on the way home.

The text is `answer` or `error`, a space, and the answer as JSON or the reason in one line.
"""

import json
import os
from collections.abc import Callable
from importlib import import_module
from types import ModuleType

from dlbricks_tui.errors import UserError
from dlbricks_tui.fleet.engine.quiet_worker import quiet, slow_down
from dlbricks_tui.folders import data_folder

# Letters of a reason.
_LONGEST_REASON = 500
_ANSWER, _ERROR = "answer", "error"


def report() -> str:
    """Return the report of this host."""
    return _answer(lambda: _at_host().report(_data()))


def missing(hashes: list[str]) -> str:
    """Return the parcels of these that this host lacks."""
    return _answer(lambda: json.dumps(_at_host().missing(_data(), hashes)))


def take(sha256: str, suffix: str, content: bytes) -> str:
    """Store a parcel."""
    return _answer(lambda: json.dumps(_at_host().take(_data(), sha256, suffix, content)))


def carry_out(task: str, topic: str, token: str) -> str:
    """Carry out a task, and log what is measured under a topic, with the token that only this task knows."""
    from distributed import get_worker

    worker = get_worker()
    with quiet(worker):
        return _answer(lambda: _at_host().carry_out(_data(), task, lambda text: worker.log_event(topic, [token, text])))


def control(task: str, what: str) -> str:
    """Pause, continue or cancel a task, while its thread waits for the end of the run."""
    return _answer(lambda: _at_host().control(_data(), task, what))


def calm(dask_worker: object) -> None:
    """Let the process that watches a worker look rarely; dask fills in the process."""
    slow_down(dask_worker)


def parted(text: object, longest: int) -> tuple[str, str]:
    """Return the answer and the reason in a text of this module, one of them empty; raise ValueError for another."""
    if not isinstance(text, str) or len(text) > longest:
        raise ValueError("the host answered with something else than text")
    kind, _, rest = text.partition(" ")
    if kind == _ERROR:
        return "", rest[:_LONGEST_REASON] or "no reason given"
    if kind != _ANSWER:
        raise ValueError("the host answered with something else than an answer")
    return rest, ""


def _at_host() -> ModuleType:
    """Load the host's side, which driver and scheduler do without: they load this module to name its functions."""
    return import_module("dlbricks_tui.fleet.at_host")


def _data() -> str:
    return str(data_folder().path)


def _answer(question: Callable[[], str]) -> str:
    _drop_presets()
    try:
        return f"{_ANSWER} {question()}"
    except UserError as error:
        reason = str(error)
    # A fault must not travel as an object.
    except Exception as error:  # noqa: BLE001
        reason = f"{type(error).__name__}: {error}"
    return f"{_ERROR} {' '.join(reason.split())[:_LONGEST_REASON]}"


def _drop_presets() -> None:
    """Remove the variables that dask sets for its workers, such as OMP_NUM_THREADS=1: a run here inherits them."""
    import dask.config

    for key in ("pre-spawn-environ", "environ"):
        for name, value in (dask.config.get(f"distributed.nanny.{key}", None) or {}).items():
            if os.environ.get(name) == str(value):
                del os.environ[name]
