"""The store of a session, which threads take turns at."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock

from dlbricks_tui.store.store import Store


class SharedStore:
    """Opened by the first who needs it; each holds it for as long as it reads."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._lock = Lock()
        self._store: Store | None = None

    @contextmanager
    def held(self) -> Iterator[Store]:
        """The store, for one thread at a time."""
        with self._lock:
            if self._store is None:
                self._store = Store(self.folder)
            yield self._store

    def close(self) -> None:
        """Leaves the store as whoever opens it next likes it."""
        with self._lock:
            if self._store is not None:
                self._store.close()
                self._store = None
