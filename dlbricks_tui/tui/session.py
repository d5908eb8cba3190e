"""The session: access to models, estimates, store and runs, from any thread."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

from dlbricks_tui.folders import SAMPLE_MODELS, DataFolder

if TYPE_CHECKING:
    from dlbricks_tui.store.database import ResultsDatabase
    from dlbricks_tui.tui.estimator import LatencyCache, ThreadSafeEstimator
    from dlbricks_tui.tui.model_reader import ModelReader
    from dlbricks_tui.tui.run.runs import Runs


class SharedStore:
    """A store that one thread at a time uses; opened at the first use."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._lock = Lock()
        self._store: ResultsDatabase | None = None

    @contextmanager
    def held(self) -> Iterator[ResultsDatabase]:
        """Lock and return the store."""
        with self._lock:
            if self._store is None:
                from dlbricks_tui.store.database import ResultsDatabase
                from dlbricks_tui.tui.memory import return_large_blocks

                return_large_blocks()
                self._store = ResultsDatabase(self.folder)
            yield self._store

    def close(self) -> None:
        with self._lock:
            if self._store is not None:
                self._store.close()
                self._store = None


class Session:
    """One session with one data folder.

    Its parts are imported in the thread that needs them first, so that the first screen appears at once.
    """

    def __init__(self, data: DataFolder, samples: Path = SAMPLE_MODELS) -> None:
        self.data = data
        self.store = SharedStore(data.store)
        self._samples = samples
        self._lock = Lock()
        self._reader: ModelReader | None = None
        self._estimator: ThreadSafeEstimator | None = None
        self._latencies: LatencyCache | None = None

    @property
    def is_new(self) -> bool:
        """Return whether nothing was ever measured or imported."""
        return not self.data.store.exists()

    @property
    def reader(self) -> ModelReader:
        from dlbricks_tui.tui.model_reader import ModelReader

        with self._lock:
            self._reader = self._reader or ModelReader(self.data, self._samples)
            return self._reader

    @property
    def estimator(self) -> ThreadSafeEstimator:
        from dlbricks_tui.tui.estimator import ThreadSafeEstimator

        with self._lock:
            self._estimator = self._estimator or ThreadSafeEstimator(self.store, self.data)
            return self._estimator

    @property
    def latencies(self) -> LatencyCache:
        from dlbricks_tui.tui.estimator import LatencyCache

        with self._lock:
            self._latencies = self._latencies or LatencyCache(self.data)
            return self._latencies

    @property
    def runs(self) -> Runs:
        from dlbricks_tui.tui.run.runs import Runs

        return Runs(self.data)

    def close(self) -> None:
        """End all work in progress."""
        with self._lock:
            if self._reader is not None:
                self._reader.close()
        self.store.close()
