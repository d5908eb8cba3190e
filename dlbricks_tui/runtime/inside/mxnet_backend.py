"""The backend of MXNet."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from dlbricks_tui.runtime.inside.backend import ONE, SWEPT, Backend, BoundNetwork, rows_of
from dlbricks_tui.runtime.inside.mxnet_binding import BoundSymbol, SideBySideSymbol
from dlbricks_tui.runtime.inside.mxnet_framework import describe
from dlbricks_tui.runtime.inside.mxnet_inference import fuse, infer
from dlbricks_tui.runtime.protocol import Described, Fuse, Fused, Infer, Inferred, Network

_DATA = {"op": "null", "name": "data", "inputs": []}
_COPY = {"op": "_copy", "name": "copy", "inputs": [[0, 0, 0]]}
_RELU = {"op": "Activation", "name": "sweep", "attrs": {"act_type": "relu"}, "inputs": [[0, 0, 0]]}


class MXNet(Backend):
    """MXNet, whose graphs are symbol files."""

    nothing = Network(json.dumps({"nodes": [_DATA, _COPY], "heads": [[1, 0, 0]]}), {"data": ONE}, {})
    sweep = Network(json.dumps({"nodes": [_DATA, _RELU], "heads": [[1, 0, 0]]}), {"data": SWEPT}, {})

    def __init__(self, mxnet: Any) -> None:
        self._mxnet = mxnet

    def passing_over(self, size_bytes: int) -> Network:
        """Return a relu of an array of half the size."""
        return replace(self.sweep, inputs={"data": rows_of(size_bytes // 2)})

    def describe(self) -> Described:
        """Return the versions in this interpreter."""
        return describe(self._mxnet)

    def infer(self, request: Infer) -> Inferred:
        """Infer all types that follow from the request."""
        return infer(self._mxnet, request)

    def fuse(self, request: Fuse) -> Fused:
        """Return the graph that an executor would run."""
        return fuse(self._mxnet, request)

    def bind(self, network: Network, fed: Sequence[Any] | None = None, *, side_by_side: bool = False) -> BoundNetwork:
        """Bind a symbol without fusing it."""
        bound = SideBySideSymbol if side_by_side else BoundSymbol
        return bound(self._mxnet, network, fed)
