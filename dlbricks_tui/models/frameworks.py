"""Models of each format loaded by a framework of its own, which is started when a model needs it, or by none."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from dlbricks_tui.models.errors import ModelError
from dlbricks_tui.models.framework import WorkerFramework
from dlbricks_tui.models.graph import TensorType
from dlbricks_tui.models.loading import Loader
from dlbricks_tui.models.mxnet.loading import Answer
from dlbricks_tui.models.shape_memory import ShapeMemory
from dlbricks_tui.runtime.runtime import Runtime
from dlbricks_tui.runtime.traits import Format, Traits


class NotReadBeforeError(ModelError):
    """Only the framework could tell, and it is not to be started."""


class Frameworks:
    """One worker for each format at most; each is asked by one thread at a time, and interrupted by any."""

    def __init__(
        self, runtimes: Mapping[Format, Runtime], cache: Path, log: Path, memory: ShapeMemory | None = None
    ) -> None:
        """`runtimes` say who runs models of which format; there is always one for MXNet's."""
        self._memory = memory
        self._workers = {form: WorkerFramework(runtime, log) for form, runtime in runtimes.items()}
        self._cache = cache

    @property
    def identities(self) -> tuple[str, ...]:
        """The frameworks with their versions and the settings that decide what they fuse."""
        return tuple(worker.identity for worker in self._workers.values())

    def loader(self) -> Loader:
        """Asks the frameworks where nobody has asked before."""
        return Loader(self._cache, self._workers[Format.MXNET], self._workers.get(Format.ONNX), self._memory)

    def loader_of_known(self) -> Loader:
        """Starts no framework: raises NotReadBeforeError where nobody has asked before."""
        absent = {form: _Absent(worker.identity, worker.traits) for form, worker in self._workers.items()}
        return Loader(self._cache, absent[Format.MXNET], absent.get(Format.ONNX), self._memory)

    def look_again(self) -> None:
        """Takes a framework that was missing for one that may be there by now."""
        for worker in self._workers.values():
            worker.look_again()

    def interrupt(self) -> None:
        """Ends the workers, and with them whatever they are asked."""
        for worker in self._workers.values():
            worker.interrupt()

    def close(self) -> None:
        """Ends the workers when nobody asks them any more."""
        with ExitStack() as opened:
            for worker in self._workers.values():
                opened.push(worker)


def loader_of_known(runtimes: Mapping[Format, Runtime], cache: Path, log: Path) -> Loader:
    """Loads what needs no framework: it raises NotReadBeforeError for everything else."""
    return Frameworks(runtimes, cache, log).loader_of_known()


@contextmanager
def open_loader_of(
    runtimes: Mapping[Format, Runtime], cache: Path, log: Path, memory: ShapeMemory | None = None
) -> Iterator[Loader]:
    """Loads models of each format as one runtime has them; its process starts when a model needs it, and ends here."""
    frameworks = Frameworks(runtimes, cache, log, memory)
    try:
        yield frameworks.loader()
    finally:
        frameworks.close()


class _Absent:
    """Stands for a framework that is not to be started."""

    def __init__(self, identity: str, traits: Traits) -> None:
        self.identity = identity
        self.traits = traits

    def infer(self, symbol: str, shapes: object) -> Answer:
        raise NotReadBeforeError("this model was not read before")

    def fuse(self, symbol: str, shapes: object) -> Answer:
        raise NotReadBeforeError("this model was not read before")

    def optimised(self, model: str, weights: object) -> str:
        raise NotReadBeforeError("this model was not read before")

    def output_types(self, model: str) -> Sequence[TensorType]:
        raise NotReadBeforeError("this model was not read before")
