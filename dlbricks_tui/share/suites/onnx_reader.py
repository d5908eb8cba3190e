"""Read excerpts of ONNX models from untrusted files."""

from pathlib import Path

from dlbricks_tui.measure.jobs import memory_bytes
from dlbricks_tui.models.errors import ModelError
from dlbricks_tui.models.graph import LayerGraph, Level
from dlbricks_tui.models.library import ONNX_SUFFIX, source_of
from dlbricks_tui.models.loading import Loader
from dlbricks_tui.runtime.errors import WorkerLostError, WorkerRefusedError
from dlbricks_tui.share.errors import BrokenBrickError, ShareError, UnsuitableLayersError
from dlbricks_tui.share.suites.onnx_checks import check_network


class OnnxReader:
    """Reads excerpts as a runtime has them; runtimes open files, which are written to a folder of drafts."""

    def __init__(self, loader: Loader, level: Level, drafts: Path, most_bytes: int) -> None:
        self._loader = loader
        # Shapes are inferred, and memory is added up, before a runtime opens the file.
        self._without_runtime = loader.without_optimiser()
        self._level = level
        self._draft = drafts / f"excerpt{ONNX_SUFFIX}"
        self._most_bytes = most_bytes

    def read(self, content: bytes) -> LayerGraph:
        """Return the layers of an excerpt; raise BrokenBrickError, whose message completes "brick ... "."""
        try:
            check_network(content, self._most_bytes)
            self._draft.write_bytes(content)
            self._refuse_too_large(self._without_runtime.load(source_of(self._draft)))
            graph = self._loader.load(source_of(self._draft), self._level)
            self._refuse_too_large(graph)
            return graph
        except (UnsuitableLayersError, ModelError, WorkerRefusedError, WorkerLostError) as error:
            raise BrokenBrickError(str(error)) from None
        except OSError as error:
            raise ShareError(f"cannot write {self._draft}: {error.strerror}; free some space") from error
        finally:
            self._draft.unlink(missing_ok=True)

    def _refuse_too_large(self, graph: LayerGraph) -> None:
        needed = memory_bytes(graph.layers)
        if needed > self._most_bytes:
            raise UnsuitableLayersError(f"would take {needed / 2**30:.3g} GiB of memory, more than there is")
