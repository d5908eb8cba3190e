"""The backend of ONNX Runtime.

A session profiles all of its runs or none, and returns its events only when it stops profiling for good. So each
request gets a new session with the same weights.
"""

from __future__ import annotations

import json
import re
import tempfile
from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from dlbricks_tui.runtime import protocol
from dlbricks_tui.runtime.inside import ort_session
from dlbricks_tui.runtime.inside.backend import BoundNetwork, ProfiledNetwork, RefusalError, Watch, unwatched
from dlbricks_tui.runtime.inside.onnx_backend import TEXT, Filling, OnnxBackend, OnnxNetwork
from dlbricks_tui.runtime.protocol import TracedOperator

# Larger weights are written beside an optimised model: the size of a model file is limited. Smaller ones may be zero
# points, sizes or rows.
_LARGE_BYTES = str(2**16)


class OnnxRuntime(OnnxBackend):
    """ONNX Runtime."""

    def __init__(self, ort: Any) -> None:
        self._ort, self.version = ort, ort.__version__

    def infer(self, request: protocol.Infer) -> protocol.Inferred:
        found = ort_session.session(
            self._ort, request.symbol, {}, ort_session.options(self._ort, optimised=False), protocol.Reason.INCONSISTENT
        )
        return protocol.Inferred(tuple((ort_session.tensor_type(output),) for output in found.get_outputs()), ())

    def fuse(self, request: protocol.Fuse) -> protocol.Fused:
        """Return the graph that ONNX Runtime executes when it opens a model file."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "optimised.onnx"
            settings = ort_session.options(self._ort, optimised=True)
            settings.optimized_model_filepath = str(path)
            prefix = "session.optimized_model_external_initializers_"
            settings.add_session_config_entry(f"{prefix}file_name", "weights")
            settings.add_session_config_entry(f"{prefix}min_size_in_bytes", _LARGE_BYTES)
            ort_session.session_of_file(self._ort, request.network.file, settings, protocol.Reason.UNFUSABLE)
            return protocol.Fused(b64encode(path.read_bytes()).decode(), (), ())

    def array(self, found: protocol.ArrayType, filling: Filling) -> Any:
        return ort_session.array_value(self._ort, found, filling)

    def bind_to_record(self, network: protocol.Network) -> OnnxNetwork:
        settings = ort_session.options(self._ort, optimised=False)
        # Nodes that only read a shape run at once, so that the tensor is freed early.
        settings.execution_order = self._ort.ExecutionOrder.PRIORITY_BASED
        return _BoundModel(self._ort, network, settings)

    def bind(
        self, network: protocol.Network, fed: Sequence[Any] | None = None, *, side_by_side: bool = False
    ) -> BoundNetwork:
        """Return a session of a model as it is, or of a model file as the network asks."""
        bound = _BoundModel(
            self._ort, network, ort_session.options(self._ort, optimised=network.optimised, side_by_side=side_by_side)
        )
        bound.feed(self.filled(network) if fed is None else fed)
        return bound


class _BoundModel(OnnxNetwork):
    def __init__(self, ort: Any, network: protocol.Network, settings: Any) -> None:
        super().__init__(network)
        self.ort = ort
        self.weights = ort_session.weight_values(ort, network.weights, distinct=network.distinct)
        self._session = (
            ort_session.session_of_file(ort, network.file, settings, protocol.Reason.UNBUILDABLE)
            if network.file
            else ort_session.session(ort, network.symbol, self.weights, settings, protocol.Reason.UNBUILDABLE)
        )
        declared = self._session.get_outputs()
        self.names = [output.name for output in declared]
        self._declared = [ort_session.tensor_type(output).shape for output in declared]
        # The last one is in use. In versions such as 1.28 the outputs are references into the binding that returned
        # them: it stays as it is.
        self._bindings = [self._session.io_binding()]
        # Outputs that an engine of language models makes anew in each run.
        self.made_anew: dict[str, protocol.ArrayType] = {}

    def _bind_arrays(self) -> None:
        ort_session.bind_inputs(self._bindings[-1], self.network.inputs, self.inputs)
        ort_session.bind_new_outputs(self._bindings[-1], self.names, self.in_place)

    def run(self) -> None:
        ort_session.ask(self.ort, self._run, protocol.Reason.UNBUILDABLE)

    def _run(self) -> None:
        if self.allocates:
            ort_session.bind_new_outputs(self._bindings[-1], self.names, self.in_place)
        ort_session.bind_large_outputs(self.ort, self._bindings[-1], self.made_anew)
        try:
            self._session.run_with_iobinding(self._bindings[-1])
        except ort_session.errors_of(self.ort):
            if self.allocates or not self.outputs:
                raise
            # The arrays of the first run do not fit, or the run fails without them too.
            self.allocates = True
            self._use_new_binding()
            self._run()
        if not self.outputs:
            self.outputs = self._bindings[-1].get_outputs()
            # Later runs write to the same arrays instead of new ones.
            if all(value.is_tensor() for value in self.outputs):
                self._use_new_binding()
                for place, value in enumerate(self.outputs):
                    self._bindings[-1].bind_ortvalue_output(self.names[place], value)
                if self.network.distinct:
                    self.made_anew = ort_session.large_outputs(self.names, self._types(), self.in_place)

    def _use_new_binding(self) -> None:
        self._bindings.append(self._session.io_binding())
        ort_session.bind_inputs(self._bindings[-1], self.network.inputs, self.inputs)

    @property
    def may_allocate(self) -> bool:
        return [None if it is None else it.shape for it in self._types()] != self._declared or None in self._declared

    def profiled(self) -> ProfiledNetwork:
        return _ProfiledModel(self)

    def _types(self) -> list[protocol.ArrayType | None]:
        return [
            protocol.ArrayType(tuple(value.shape()), ort_session.numpys_name(value.data_type()) or TEXT)
            if value.is_tensor()
            else None
            for value in self.outputs
        ]

    def _numbers(self, place: int) -> Any:
        return self.outputs[place].numpy()


# Nodes of our networks have these names; nodes inside an `If` or a `Loop` have others.
_OWN_NODE = re.compile(r"node(\d+)_kernel_time$")
_NANOSECONDS_PER_MICROSECOND = 1000


class _ProfiledModel(ProfiledNetwork):
    """A model that gets a new profiling session per request."""

    def __init__(self, bound: _BoundModel) -> None:
        self._bound = bound
        # Each run makes new arrays for the outputs that are not written in place.
        self._allocates = bound.may_allocate

    def run(self, warm: int, repeat: int, before: Callable[[], Any], watch: Watch) -> list[list[TracedOperator]]:
        """Run the model; ONNX Runtime tells when its profiler began by the clock of the host."""
        begins = []
        with tempfile.TemporaryDirectory() as folder:
            profiled, run = self._session(folder)
            for number in range(warm + repeat):
                before()
                begins.append(unwatched(run) if number < warm else watch(run))
            origin = profiled.get_profiling_start_time_ns()
            events = _events_in(Path(profiled.end_profiling()))
        # A network without nodes has no events.
        times = runs_in(events) or [[] for _ in begins]
        return [
            [it._replace(start_ns=max(0, origin + it.start_ns - begins[number])) for it in row]
            for number, row in enumerate(times)
        ][warm:]

    def _session(self, folder: str) -> tuple[Any, Callable[[], None]]:
        """Return a new profiling session, and a function that runs it once."""
        it, ort = self._bound, self._bound.ort
        settings = ort_session.options(ort, optimised=False)
        settings.enable_profiling = True
        settings.profile_file_prefix = str(Path(folder) / "profile")
        profiled = ort_session.session(ort, it.network.symbol, it.weights, settings, protocol.Reason.UNBUILDABLE)
        binding = profiled.io_binding()
        ort_session.bind_inputs(binding, it.network.inputs, it.inputs)
        ort_session.bind_new_outputs(binding, it.names, it.in_place)

        def run() -> None:
            if self._allocates:
                ort_session.bind_new_outputs(binding, it.names, it.in_place)
            ort_session.bind_large_outputs(ort, binding, it.made_anew)
            ort_session.ask(ort, lambda: profiled.run_with_iobinding(binding), protocol.Reason.UNBUILDABLE)

        return profiled, run


def _events_in(profile: Path) -> Any:
    try:
        return json.loads(profile.read_bytes())
    except (OSError, ValueError) as error:
        # ONNX Runtime does not tell that a disk is full.
        message = f"the profile cannot be written to {profile.parent}: is its disk full?"
        raise RefusalError(protocol.Reason.NO_ROOM, message) from error


def runs_in(events: Iterable[Mapping[str, Any]]) -> list[list[TracedOperator]]:
    """Return the nodes of each run; a node that occurs again begins the next run."""
    found = []
    for event in events:
        match = _OWN_NODE.match(event["name"])
        if match and event["cat"] == "Node":
            start, duration = (int(event[key]) * _NANOSECONDS_PER_MICROSECOND for key in ("ts", "dur"))
            kind = str(event.get("args", {}).get("op_name", ""))
            found.append(TracedOperator(int(match[1]), kind, start, duration))
    runs: list[list[TracedOperator]] = []
    shown: set[int] = set()
    for operator in sorted(found, key=lambda it: it.start_ns):
        if not runs or operator.node in shown:
            runs.append([])
            shown = set()
        runs[-1].append(operator)
        shown.add(operator.node)
    return runs
