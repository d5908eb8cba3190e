"""The fake worker of runs, which also knows the shapes of a few operators and takes relus into convolutions."""

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from dlbricks_tui.models.cache import GraphAnswer
from dlbricks_tui.models.graph import TensorType
from dlbricks_tui.runtime.errors import WorkerRefusedError
from dlbricks_tui.runtime.protocol import Fuse, Fused, Infer, Inferred, Refused, Reply, Request, Tensor
from tests.models.table_framework import TableFramework
from tests.runs import fake_worker


class FakeWorker(fake_worker.FakeWorker):
    """A fake worker that also answers requests about suites."""

    def _plain(self, request: Request[Any]) -> Reply:
        framework = TableFramework()
        try:
            if isinstance(request, Infer):
                answer = framework.infer(request.symbol, request.shapes)
                return Inferred(_outputs(answer), tuple(answer.unknown))
            if isinstance(request, Fuse):
                network = request.network
                answer = framework.fuse(network.symbol, {name: it.shape for name, it in network.inputs.items()})
                return Fused(answer.symbol or "", _outputs(answer), tuple(tuple(it) for it in answer.parts))
        except WorkerRefusedError as refused:
            return Refused(refused.reason, str(refused), refused.node)
        return super()._plain(request)


def _outputs(answer: GraphAnswer) -> tuple[tuple[Tensor, ...], ...]:
    def tensor(found: TensorType) -> Tensor:
        return Tensor(found.shape, found.dtype)

    return tuple(tuple(map(tensor, outputs)) for outputs in answer.types)


if __name__ == "__main__":
    fake_worker.main(FakeWorker)
