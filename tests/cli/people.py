"""Commands and their answers."""

import io
import json
import os
from collections.abc import Callable
from contextlib import redirect_stdout
from typing import Any

import pytest

from dlbricks_tui.cli.main import main
from tests.api.validation import faults

# Takes the words of a command line; gives its exit status, standard output and standard error.
Command = Callable[..., tuple[int, str, str]]


def one_line(answer: tuple[int, str, str]) -> str:
    """Return the complaint of a command that refused its arguments."""
    status, out, told = answer
    assert (status, out, told.count("\n")) == (2, "", 1), answer
    return told


def document(answer: tuple[int, str, str], status: int = 0) -> Any:
    """Return the JSON document of a command that ended with this status."""
    assert answer[0] == status, answer
    return json.loads(answer[1])


def schema_kept(found: Any, *command: str) -> Any:
    """Return the schema that a command prints, to which this document keeps."""
    with redirect_stdout(io.StringIO()) as out, pytest.raises(SystemExit):
        main([*command, "--json-schema"])
    schema = json.loads(out.getvalue())
    assert faults(found, schema, schema) == []
    return schema


def hurry(patch: pytest.MonkeyPatch) -> None:
    """Take few samples inside of networks, without waiting for calm: figures do not matter in tests of commands."""
    patch.setattr("dlbricks_tui.measure.inside._MOST_PLAIN_RUNS", 12)
    patch.setattr("dlbricks_tui.measure.inside.most_seconds_per_carrier", lambda _: 0.3)
    patch.setattr("dlbricks_tui.measure.inside.PATIENCE_SECONDS", 0.0)
    patch.setattr("dlbricks_tui.measure.supervised_worker.SupervisedWorker.contention", lambda _: None)
    patch.setattr("dlbricks_tui.host.noise.SECONDS_TO_WATCH", 0.01)
    # No power fails here; tests of the store and of runs prove what survives.
    patch.setattr(os, "fsync", lambda _: None)
