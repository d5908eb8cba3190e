"""A session of many questions about one data folder: access to models, estimates and store, from any thread."""

from __future__ import annotations

from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

from dlbricks_tui.errors import UserError
from dlbricks_tui.folders import SAMPLE_MODELS, DataFolder

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dlbricks_tui.api.estimating import Answer, ThreadSafeEstimator
    from dlbricks_tui.api.model_reading import ModelReader, Refusal
    from dlbricks_tui.api.open_models import Choices, ModelSpec
    from dlbricks_tui.api.scope import EstimateOptions
    from dlbricks_tui.bricks.decomposition import Decomposition
    from dlbricks_tui.config.config import Config
    from dlbricks_tui.estimate.score import Score
    from dlbricks_tui.store.database import ResultsDatabase


# From malloc.h of glibc.
_M_MMAP_THRESHOLD = -3
_LARGE_BYTES = 128 * 1024


def return_large_blocks() -> None:
    """Let glibc return large blocks of memory to the system when they are freed.

    Otherwise it raises the size from which it does so to that of the largest block freed so far. It would keep the
    columns of each closed store, once for each thread. Other C libraries lack the setting.
    """
    # Loaded here: the first picture needs none of it.
    import ctypes

    with suppress(AttributeError, OSError):
        ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, _LARGE_BYTES)


def options_of(spec: ModelSpec, choices: Choices, config: Config) -> EstimateOptions:
    """Return the options of the estimates that the workbench shows."""
    from dlbricks_tui.bricks.decomposition import Cutting

    return choices.options(
        inputs=spec.shapes,
        usual_cutting=Cutting(config.granularity, config.cut, config.order),
        usual_runtime=config.runtime,
        usual_threads=config.threads,
    )


class SharedStore:
    """A store that one thread at a time uses; opened at the first use."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._lock = Lock()
        self._store: ResultsDatabase | None = None

    @contextmanager
    def held(self, *, refresh: bool = False) -> Iterator[ResultsDatabase]:
        """Lock and return the store; `refresh` reads what other processes have stored since."""
        with self._lock:
            if self._store is None:
                from dlbricks_tui.store.database import ResultsDatabase

                return_large_blocks()
                self._store = ResultsDatabase(self.folder)
            if refresh:
                self._store.refresh()
            yield self._store

    def close(self) -> None:
        with self._lock:
            if self._store is not None:
                self._store.close()
                self._store = None


class WorkbenchSession:
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

    @property
    def is_new(self) -> bool:
        """Return whether nothing was ever measured or imported."""
        return not self.data.store.exists()

    @property
    def reader(self) -> ModelReader:
        from dlbricks_tui.api.model_reading import ModelReader

        with self._lock:
            self._reader = self._reader or ModelReader(self.data, self._samples)
            return self._reader

    @property
    def estimator(self) -> ThreadSafeEstimator:
        from dlbricks_tui.api.estimating import ThreadSafeEstimator

        with self._lock:
            self._estimator = self._estimator or ThreadSafeEstimator(self.store, self.data)
            return self._estimator

    def answer(self, spec: ModelSpec, choices: Choices) -> Answer:
        """Return the answer of a model; the framework reads it if necessary. Raise UserError if it cannot be read."""
        decompose = self.reader.decompose_model
        return self.estimator.answer(spec.source, choices, lambda reading: decompose(spec.read_as(reading)))

    def read(self, spec: ModelSpec, choices: Choices) -> Decomposition | Refusal:
        """Read a model as the runtime of its answer does, and decompose it."""
        from dlbricks_tui.api.model_reading import refusal_of

        try:
            return self.reader.open(spec.read_as(self.answer(spec, choices).reading))
        except UserError as error:
            return refusal_of(error, spec)

    def scores(self, specs: Sequence[ModelSpec], choices: Choices) -> tuple[Score, ...]:
        """Return how well the models that were read before would have been predicted."""
        from dlbricks_tui.estimate.score import scores_on

        found = ((self.reader.decompose_cached(spec), choices.runtime) for spec in specs)
        models = [(model, runtime) for model, runtime in found if model is not None]
        with self.store.held(refresh=True) as store:
            return tuple(score for _, score in scores_on(store, choices.system or self.estimator.host, models))

    def close(self) -> None:
        """End all work in progress."""
        with self._lock:
            if self._reader is not None:
                self._reader.close()
        self.store.close()
