"""The estimates that the list of models shows, kept in the cache from one session to the next."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import asdict
from threading import Lock
from typing import TYPE_CHECKING

from dlbricks_tui import __version__
from dlbricks_tui.atomic_write import write_atomically
from dlbricks_tui.tui.widgets.models.entries import Standing

if TYPE_CHECKING:
    from dlbricks_tui.settings import DataFolder
    from dlbricks_tui.tui.choices import Choices
    from dlbricks_tui.tui.opened import Wish

_MOST_KEPT = 5000


class KeptStandings:
    """Estimates by model and settings; all of them are dropped when the store or the runtimes have changed.

    The cache saves work, no more: if it cannot be read or written, the models are estimated again.
    """

    def __init__(self, data: DataFolder) -> None:
        self._data = data
        self._file = data.cache / "standings.json"
        self._lock = Lock()
        self._state = ""
        self._known: dict[str, Standing] = {}

    def begin(self, *state: str) -> None:
        """Use what was kept in this state, with these results and runtimes; drop what was kept in another one."""
        now = repr((__version__, state, self._settings_files()))
        with self._lock:
            if now != self._state:
                self._state, self._known = now, self._read(now)

    def of(self, wish: Wish, choices: Choices) -> Standing | None:
        """Return the kept estimate of a model; None where none was kept, or the file has changed since."""
        with self._lock:
            return self._known.get(_key(wish, choices))

    def keep(self, wish: Wish, choices: Choices, standing: Standing) -> None:
        """Keep an estimate until the next `save`."""
        with self._lock:
            if len(self._known) >= _MOST_KEPT:
                self._known.clear()
            self._known[_key(wish, choices)] = standing

    def save(self) -> None:
        """Write what is known for the next session."""
        with self._lock:
            known = {key: asdict(standing) for key, standing in self._known.items()}
            with suppress(OSError):
                write_atomically(self._file, json.dumps({"state": self._state, "known": known}))

    def _read(self, state: str) -> dict[str, Standing]:
        try:
            document = json.loads(self._file.read_bytes())
            if document["state"] != state:
                return {}
            return {str(key): Standing(**values) for key, values in document["known"].items()}
        except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
            return {}

    def _settings_files(self) -> list[tuple[str, int, int]]:
        """The lists of runtimes and of input shapes, by when they were written."""
        found = []
        for path in sorted(self._data.path.glob("*.json")):
            with suppress(OSError):
                known = path.stat()
                found.append((path.name, known.st_mtime_ns, known.st_size))
        return found


def _key(wish: Wish, choices: Choices) -> str:
    path = wish.source.path
    try:
        known = path.stat()
        file = (known.st_mtime_ns, known.st_size)
    except OSError:
        file = (0, 0)
    return repr((str(path), wish.source.name, file, sorted(wish.shapes.items()), choices))
