"""Sessions: a data folder with its models, its results and all questions about them, also from several threads."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property, wraps
from importlib import import_module
from logging import getLogger
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Concatenate, NamedTuple, ParamSpec, TypeAlias, TypeVar

from dlbricks_tui.errors import UserError
from dlbricks_tui.folders import SAMPLE_MODELS, DataFolder, data_folder

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from dlbricks_tui.api import questions
    from dlbricks_tui.api.combinations import CompareOptions
    from dlbricks_tui.api.estimating import Answer, Estimator, ThreadSafeEstimator
    from dlbricks_tui.api.measuring import RunJob
    from dlbricks_tui.api.model_reading import ModelReader, Refusal
    from dlbricks_tui.api.open_models import Choices, ModelSpec
    from dlbricks_tui.api.scenarios import ScenarioAnswer, ScenarioOptions
    from dlbricks_tui.api.scope import EstimateOptions
    from dlbricks_tui.api.traces import TraceOptions
    from dlbricks_tui.bricks.decomposition import Decomposition
    from dlbricks_tui.config.config import Config
    from dlbricks_tui.estimate.ranking import Ranking
    from dlbricks_tui.estimate.score import Score
    from dlbricks_tui.models.library import Library, ModelSource
    from dlbricks_tui.models.loading import Loader
    from dlbricks_tui.runs.request import RunRequest
    from dlbricks_tui.runtime.runtime import Runtime
    from dlbricks_tui.share.spare import SpareRun
    from dlbricks_tui.store.database import ResultsDatabase
    from dlbricks_tui.traces.trace import TraceOrder

# A path, a name of the library, or `table1:ID`.
Model: TypeAlias = "str | os.PathLike[str]"
# A data folder, the user's own for None, or a session with one.
Data: TypeAlias = "DataFolder | os.PathLike[str] | str | Session | None"
Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")
_LOG = getLogger("dlbricks_tui")
# From malloc.h of glibc.
_M_MMAP_THRESHOLD = -3
_LARGE_BYTES = 128 * 1024


class Remarks(NamedTuple):
    """Functions that take what a person should know beside the answers."""

    # Takes a line of text, such as that a model takes long.
    tell: Callable[[str], None]
    # Words an error, with what to do about it.
    word_error: Callable[[UserError], str]
    # Takes a line about a model whose input shapes or values are those given in an earlier session.
    inputs_used: Callable[[str], None]
    # Takes a line about a run before it begins.
    warn: Callable[[str], None] = lambda _: None


SILENT = Remarks(lambda _: None, str, lambda _: None)
LOGGED = Remarks(_LOG.info, str, _LOG.info, _LOG.warning)


def names_of(models: Model | Sequence[Model]) -> list[str]:
    """Return the names or paths of one model or several."""
    return [os.fspath(it) for it in ([models] if isinstance(models, str | os.PathLike) else models)]


def asked(function: Callable[Arguments, Result]) -> Callable[Concatenate[Session, Arguments], Result]:
    """Return a function of the API as a method of a session, whose data it takes."""

    @wraps(function)
    def ask(session: Session, /, *args: Arguments.args, **options: Arguments.kwargs) -> Result:
        options["data"] = session
        return function(*args, **options)

    return ask


class Session:
    """A data folder, its library of models and its results. All functions of the API are methods of a session.

    They take the data of the session, and read its list of models once for several questions.
    """

    # What a person should know beside the answers.
    remarks = LOGGED

    def __init__(self, data: DataFolder | os.PathLike[str] | str | None = None) -> None:
        """`data` is a data folder, the user's own by default."""
        if not isinstance(data, DataFolder):
            data = data_folder(None if data is None else os.fspath(data))
        self.data = data

    # What the methods need is loaded at the first call: most commands call few of them.

    @cached_property
    def library(self) -> Library:
        """The models: the samples, and what the user has added."""
        from dlbricks_tui.api.opening import library

        return library(self.data)

    def results(self) -> ResultsDatabase:
        """Open the results of the folder."""
        from dlbricks_tui.store.database import ResultsDatabase

        return ResultsDatabase(self.data.store)

    def sources(self, models: Model | Sequence[Model]) -> tuple[ModelSource, ...]:
        """Return the sources of all models that one name or several stand for."""
        return self.library.find_all(names_of(models)) if models else ()

    def source(self, model: Model) -> ModelSource:
        """Return the source of one model; raise ModelError if the name stands for several."""
        from dlbricks_tui.api.opening import model_named

        return model_named(os.fspath(model), self.data)

    def open_store(self) -> AbstractContextManager[ResultsDatabase]:
        """Open the results, and tell of their damage at the end."""
        from dlbricks_tui.api.opening import open_store

        return open_store(self.data, self.remarks.tell)

    def open_estimator(self, options: EstimateOptions) -> AbstractContextManager[Estimator]:
        """Open the results to estimate models, and tell of their damage at the end."""
        from dlbricks_tui.api.estimating import open_estimator

        return open_estimator(options, self.data, self.remarks)

    @contextmanager
    def open_loader(self, runtime: Runtime | None = None) -> Iterator[Loader]:
        """Open a loader of models as a runtime has them, by default the usual one of each format."""
        from dlbricks_tui.api.opening import ModelLoaders

        runtimes = [] if runtime is None else [runtime]
        with ModelLoaders(self.data, self.remarks, *runtimes) as loaders:
            yield loaders.loader()

    def ranking(self, model: Model, options: CompareOptions) -> Ranking:
        """Return all combinations of a model that the store knows or the options name, the best first."""
        from dlbricks_tui.api.combinations import compare

        with self.open_store() as store:
            return compare(self.source(model), options, self.data, store, self.remarks, named=os.fspath(model))

    def new_run(self, request: RunRequest) -> RunJob:
        """Return a new run, and warn of its threads and precisions."""
        from dlbricks_tui.api.measuring import RunJob, remarks_on_run
        from dlbricks_tui.runs.control import create_run

        run = RunJob(create_run(request, self.data), request, self.data)
        for remark in remarks_on_run(request):
            self.remarks.warn(remark)
        return run

    def scenario_answer(self, model: Model, options: ScenarioOptions, execution: EstimateOptions) -> ScenarioAnswer:
        """Return what is known of a scenario of a model; nothing is measured."""
        from dlbricks_tui.api.scenarios import scenario_answer

        with self.open_estimator(execution) as estimator:
            return scenario_answer(estimator, self.source(model), options)

    def trace_order(self, model: Model, options: TraceOptions) -> TraceOrder:
        """Return the order to trace a model; refuse it where the data folder has no room for a trace."""
        from dlbricks_tui.api.traces import require_room, trace_order

        order = trace_order(options, self.source(model), self.data)
        require_room(self.data)
        return order

    if TYPE_CHECKING:
        load = asked(questions.load)
        estimate = asked(questions.estimate)
        compare = asked(questions.compare)
        language = asked(questions.language)
        scenario = asked(questions.scenario)
        trace = asked(questions.trace)
        measure = asked(questions.measure)
        probe = asked(questions.probe)
        check = asked(questions.check)
        evaluate = asked(questions.evaluate)
        evaluation_of = asked(questions.evaluation_of)
        fleet = asked(questions.fleet)
        fleet_status = asked(questions.fleet_status)
    else:

        def __getattr__(self, name: str) -> object:
            # The module makes its functions methods of this class.
            if hasattr(Session, "estimate"):
                raise AttributeError(f"a session has no {name!r}")
            import_module("dlbricks_tui.api.questions")
            return getattr(self, name)


def make_methods(*functions: Callable[..., object]) -> None:
    """Give sessions these functions of the API as methods."""
    for each in functions:
        setattr(Session, each.__name__, asked(each))


def return_large_blocks() -> None:
    """Let glibc return large blocks of memory to the system when they are freed.

    Otherwise it raises the size from which it does so to that of the largest block freed so far. It would keep the
    columns of each closed store, once for each thread. Other C libraries lack the setting.
    """
    # Loaded here: the first picture needs none of it.
    import ctypes

    with suppress(AttributeError, OSError):
        ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, _LARGE_BYTES)


class Asked(NamedTuple):
    """A question of a screen: the open model, with the choices and the config of the moment."""

    spec: ModelSpec
    choices: Choices
    config: Config


def options_of(spec: ModelSpec, choices: Choices, config: Config) -> EstimateOptions:
    """Return the options of the estimates that the workbench shows."""
    from dlbricks_tui.bricks.decomposition import Cutting

    return choices.options(
        inputs=spec.shapes,
        usual_cutting=Cutting(config.granularity, config.cut, config.order),
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


class WorkbenchSession(Session):
    """A session that answers from any thread.

    Its parts are imported in the thread that needs them first, so that the first screen appears at once.
    """

    remarks = SILENT

    def __init__(self, data: DataFolder, samples: Path = SAMPLE_MODELS) -> None:
        super().__init__(data)
        self.store = SharedStore(data.store)
        self._samples = samples
        self._lock = Lock()
        self._reader: ModelReader | None = None
        self._estimator: ThreadSafeEstimator | None = None
        self._spare: SpareRun | None = None

    @property
    def is_new(self) -> bool:
        """True if nothing was ever measured or imported."""
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

    @property
    def spare(self) -> SpareRun:
        """The process that waits for the next run."""
        from dlbricks_tui.share.spare import SpareRun

        with self._lock:
            self._spare = self._spare or SpareRun(self.data)
            return self._spare

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
        found = ((spec.source, self.reader.decompose_cached(spec)) for spec in specs)
        return self.estimator.scores([(source, model) for source, model in found if model is not None], choices)

    def close(self) -> None:
        """End all work in progress."""
        with self._lock:
            if self._reader is not None:
                self._reader.close()
            if self._spare is not None:
                self._spare.end()
        self.store.close()
