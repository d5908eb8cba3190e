"""The backend of MXNet, and its networks ready to run: arrays filled, graph bound.

MXNet runs a graph in an executor or in a CachedOp. An executor is the default for symbol files and plans memory and
layouts once. A CachedOp with all flags takes at least 0.3 ms longer on the same graph, and converts an input array to
another layout for good. But an executor has one workspace for its operators, so convolutions never run at the same
time. So networks run in an executor, and side by side in a CachedOp.

Its profiler reports the kind of an operator and not its node. So operators must run in the order of the graph: in the
calling thread, by MXNet's `NaiveEngine`.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy

from dlbricks_tui.runtime import protocol
from dlbricks_tui.runtime.inside.backend import (
    ONE,
    SWEPT,
    Backend,
    BoundNetwork,
    ProfiledNetwork,
    RefusalError,
    Watch,
    rows_of,
)
from dlbricks_tui.runtime.inside.measuring import lines_printed, mark
from dlbricks_tui.runtime.inside.mxnet_framework import ALIAS, VARIABLE, SymbolNodes, ask, load, refuse_unknown, save
from dlbricks_tui.runtime.inside.mxnet_inference import fuse, infer
from dlbricks_tui.runtime.inside.values import (
    data_values,
    learned_values,
    numpy_dtype,
    row_numbers,
    rows_counted,
    variance_values,
    variances,
)
from dlbricks_tui.runtime.protocol import TracedOperator

BACKEND_VARIABLE = "MXNET_SUBGRAPH_BACKEND"
# Before 1.6 MXNet had no subgraph backend and did not know this value.
NO_BACKEND = "NONE"
MERGE_EQUALS_VARIABLE = "MXNET_ELIMINATE_COMMON_EXPR"
BULK_VARIABLE = "MXNET_EXEC_BULK_EXEC_INFERENCE"
WORKERS_VARIABLE = "MXNET_CPU_WORKER_NTHREADS"
# The number of branches with memory of their own. Operators that write to the same memory wait for each other.
BRANCHES_VARIABLE = "NNVM_EXEC_NUM_TEMP"
# Memory is planned once, as in an executor. The engine gets operators one by one: those of one bulk never run at the
# same time.
ONE_BY_ONE = (("static_alloc", True), ("static_shape", True), ("forward_bulk_size", 1))

NOT_TRAINING = 0

_DATA = {"op": "null", "name": "data", "inputs": []}
_COPY = {"op": "_copy", "name": "copy", "inputs": [[0, 0, 0]]}
_RELU = {"op": "Activation", "name": "sweep", "attrs": {"act_type": "relu"}, "inputs": [[0, 0, 0]]}


class MXNet(Backend):
    """MXNet, whose graphs are symbol files."""

    nothing = protocol.Network(json.dumps({"nodes": [_DATA, _COPY], "heads": [[1, 0, 0]]}), {"data": ONE}, {})
    sweep = protocol.Network(json.dumps({"nodes": [_DATA, _RELU], "heads": [[1, 0, 0]]}), {"data": SWEPT}, {})

    def __init__(self, mxnet: Any) -> None:
        self._mxnet, self.version = mxnet, mxnet.__version__

    def passing_over(self, size_bytes: int) -> protocol.Network:
        """Return a relu of an array of half the size."""
        return replace(self.sweep, inputs={"data": rows_of(size_bytes // 2)})

    def infer(self, request: protocol.Infer) -> protocol.Inferred:
        return infer(self._mxnet, request)

    def fuse(self, request: protocol.Fuse) -> protocol.Fused:
        return fuse(self._mxnet, request)

    def explain(self, request: protocol.Explain) -> protocol.Explained:
        """Return what oneDNN prints of itself, and then in a second run, as the first one also converts weights."""
        bound = BoundSymbol(self._mxnet, request.network)
        about = [it for it in lines_printed(bound.run) if ",info," in it.line]
        return protocol.Explained((*about, *bound.lines_of_operators()))

    def bind(
        self, network: protocol.Network, fed: Sequence[Any] | None = None, *, side_by_side: bool = False
    ) -> BoundNetwork:
        """Bind a symbol without fusing it."""
        bound = SideBySideSymbol if side_by_side else BoundSymbol
        return bound(self._mxnet, network, fed)


class _Symbol(BoundNetwork):
    """A symbol with its arrays. Subclasses say how it runs."""

    def __init__(self, mxnet: Any, network: protocol.Network, fed: Sequence[Any] | None = None) -> None:
        """`fed` are the arrays that the data inputs read; without them, new ones are filled."""
        if network.in_place:
            raise RefusalError(protocol.Reason.MALFORMED, "MXNet writes no output in place")
        self._mxnet = mxnet
        self._file = SymbolNodes(network.symbol)
        refuse_unknown(mxnet, self._file)
        self._arrays = _filled(mxnet, self._file, network, fed)
        self.inputs = [self._arrays[self._file.alias(name)] for name in network.inputs]
        self._asked(lambda: self._bind(load(self._mxnet, self._file)))

    def refuse_infinite_values(self) -> None:
        for number, head in enumerate(self._file.heads):
            if not numpy.isfinite(self.outputs[number].asnumpy()).all():
                message = f"output {head.output} of {self._file.names[head.node]} holds values that are not finite"
                raise RefusalError(protocol.Reason.NOT_FINITE, message, head.node)

    @abstractmethod
    def _bind(self, symbol: Any) -> None:
        """Connect the symbol to its arrays."""

    def _array(self, alias: str) -> Any:
        if alias not in self._arrays:
            raise RefusalError(protocol.Reason.MALFORMED, f"{self._file.restored(alias)} has no type")
        return self._arrays[alias]

    def _asked(self, question: Callable[[], Any]) -> Any:
        return ask(self._mxnet, self._file, question, protocol.Reason.UNBUILDABLE)


class BoundSymbol(_Symbol):
    """A symbol in an executor, whose operators run one after another."""

    def run(self) -> None:
        failed = self._forward(self._handle, NOT_TRAINING) or self._wait_for_all()
        if failed:
            self._asked(lambda: self._check(failed))

    def profiled(self) -> ProfiledNetwork:
        """Bind the symbol once more, so that the engine gets each operator by itself.

        The engine gets the operators of a plain executor in bulk, and the profiler cannot tell them apart.
        """
        symbol = self._asked(lambda: load(self._mxnet, self._file))
        with variables({BULK_VARIABLE: "0"}):
            executor = self._asked(lambda: self._executor_of(symbol, self._executor))
        nodes = json.loads(save(symbol))["nodes"]
        operators = [(node["name"], node["op"]) for node in nodes if node["op"] != VARIABLE]
        return ProfiledSymbol(self._mxnet, executor, operators)

    def lines_of_operators(self) -> tuple[protocol.Said, ...]:
        """Run with one operator at a time, and return what oneDNN prints about each."""

        def ran(output: Any, _: Any) -> None:
            match = ALIAS.match(output if isinstance(output, str) else output.decode())
            if match is not None:
                mark(int(match[1]))

        # MXNet calls this after each operator, once for each of its outputs.
        self._executor.set_monitor_callback(ran, monitor_all=False)
        return lines_printed(self.run)

    def _executor_of(self, symbol: Any, sharing: Any = None) -> Any:
        arguments = {alias: self._array(alias) for alias in symbol.list_arguments()}
        states = {alias: self._array(alias) for alias in symbol.list_auxiliary_states()}
        with variables(_without_optimiser(self._mxnet)):
            return symbol.bind(self._mxnet.cpu(), arguments, aux_states=states, grad_req="null", shared_exec=sharing)

    def _bind(self, symbol: Any) -> None:
        self._executor = self._executor_of(symbol)
        # Executor.forward also creates handles of all outputs, which takes longer than some operators.
        self._forward = self._mxnet.base._LIB.MXExecutorForward
        self._wait_for_all = self._mxnet.base._LIB.MXNDArrayWaitAll
        self._check = self._mxnet.base.check_call
        self._handle = self._executor.handle
        self.outputs: list[Any] = self._executor.outputs


class SideBySideSymbol(_Symbol):
    """A symbol in a CachedOp, whose independent operators run at the same time on the engine's workers."""

    def run(self) -> None:
        self._asked(self._run)

    def _bind(self, symbol: Any) -> None:
        self._read = [self._array(alias) for alias in symbol.list_inputs()]
        # The first run plans the memory.
        apart = {BRANCHES_VARIABLE: os.environ.get(WORKERS_VARIABLE)}
        with variables({**_without_optimiser(self._mxnet), **apart}):
            self._operator = self._mxnet.nd.CachedOp(symbol, ONE_BY_ONE)
            self._run()

    def _run(self) -> None:
        found = self._operator(*self._read)
        self._mxnet.nd.waitall()
        self.outputs = found if isinstance(found, list) else [found]

    def profiled(self) -> ProfiledNetwork:
        """Refuse: operators that run at the same time share the processor."""
        raise RefusalError(protocol.Reason.UNBUILDABLE, "operators that run side by side cannot be profiled one by one")


def _filled(mxnet: Any, file: SymbolNodes, network: protocol.Network, fed: Sequence[Any] | None) -> dict[str, Any]:
    """Return the arrays by the aliases of their variables."""
    types = {**network.inputs, **network.weights}
    rows = rows_counted(file, {file.variable(name): shape for name, (shape, _) in types.items()})
    divisors = variances(file)
    arrays: dict[str, Any] = {}
    if fed is not None:
        wanted, given = [shape for shape, _ in network.inputs.values()], [array.shape for array in fed]
        if wanted != given:
            raise RefusalError(protocol.Reason.MALFORMED, f"the inputs have the shapes {wanted} and are fed {given}")
        arrays = {name: fed[place] for place, name in enumerate(network.inputs)}
    for name in types.keys() - arrays.keys():
        number, shape, dtype = file.variable(name), types[name].shape, numpy_dtype(types[name].dtype)
        if number in rows:
            values = row_numbers(shape, dtype.name, rows[number])
        elif number in divisors:
            values = variance_values(shape, dtype.name)
        elif name in network.weights:
            values = learned_values(shape, dtype.name)
        else:
            values = data_values(shape, dtype.name)
        arrays[name] = mxnet.nd.array(values, dtype=values.dtype)
    return {file.alias(name): array for name, array in arrays.items()}


def _without_optimiser(mxnet: Any) -> dict[str, str | None]:
    """Return the variables with which MXNet neither fuses a graph nor merges equal operators."""
    knows_backends = hasattr(mxnet.executor.Executor, "get_optimized_symbol")
    return {BACKEND_VARIABLE: NO_BACKEND if knows_backends else None, MERGE_EQUALS_VARIABLE: "0"}


@contextmanager
def variables(wanted: Mapping[str, str | None]) -> Iterator[None]:
    """Set environment variables within the block; None removes one."""
    before = {name: os.environ.get(name) for name in wanted}
    _set(wanted)
    try:
        yield
    finally:
        _set(before)


def _set(variables: Mapping[str, str | None]) -> None:
    for name, value in variables.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


_EVENT = re.compile(r'"name": "([^"]*)",\s*"cat": "operator",\s*"ph": "([BE])",\s*"ts": (\d+)')
_NANOSECONDS_PER_MICROSECOND = 1000
# MXNet appends to its file only if periodic dumps are on. With this period none happens.
_NEVER_SECONDS = 1e7


@lru_cache(maxsize=1)
class _Recorder:
    """The profiler of the process, which writes all events to one file."""

    def __init__(self, mxnet: Any) -> None:
        self._profiler = mxnet.profiler
        self._folder = tempfile.TemporaryDirectory()
        self._file = Path(self._folder.name) / "profile.json"
        self._read = 0
        mxnet.profiler.set_config(
            profile_symbolic=True,
            profile_imperative=False,
            profile_memory=False,
            profile_api=False,
            aggregate_stats=False,
            continuous_dump=True,
            dump_period=_NEVER_SECONDS,
            filename=str(self._file),
        )

    def start(self) -> None:
        self._profiler.set_state("run")

    def stop(self) -> str:
        """Stop, and return the events since the last stop."""
        self._profiler.set_state("stop")
        self._profiler.dump(finished=False)
        with self._file.open() as file:
            file.seek(self._read)
            text = file.read()
            self._read = file.tell()
        if not text.rstrip(", \n").endswith("}"):
            # MXNet does not tell that a disk is full: operators would seem to take no time.
            message = f"the profile cannot be written to {self._folder.name}: is its disk full?"
            raise RefusalError(protocol.Reason.NO_ROOM, message)
        return text


class ProfiledSymbol(ProfiledNetwork):
    """An executor that runs its operators one by one."""

    def __init__(self, mxnet: Any, executor: Any, operators: Iterable[tuple[str, str]]) -> None:
        """`operators` are the aliases and kinds, in the order of execution."""
        self._mxnet = mxnet
        self._executor = executor
        self._operators: list[tuple[int, str]] = []
        for alias, op in operators:
            match = ALIAS.match(alias)
            if match is None:
                raise RefusalError(protocol.Reason.UNBUILDABLE, f"MXNet has added an operator {alias}")
            self._operators.append((int(match[1]), op))
        self._recorder = _Recorder(mxnet)

    def run(self, warm: int, repeat: int, before: Callable[[], Any], watch: Watch) -> list[list[TracedOperator]]:
        """Run the symbol; MXNet reads the clock of the host, too."""
        for _ in range(warm):
            before()
            self._run()
        runs = []
        for _ in range(repeat):
            before()
            self._recorder.start()
            begin = watch(self._run)
            times = matched(self._operators, events_in(self._recorder.stop()))
            # It counts whole microseconds, so an operator may seem to start before the run.
            runs.append([it._replace(start_ns=max(0, it.start_ns - begin)) for it in times])
        return runs

    def _run(self) -> None:
        self._executor.forward(is_train=False)
        self._mxnet.nd.waitall()


def events_in(text: str) -> list[tuple[str, int, int]]:
    """Return the operators in the order of their starts: kind, start and duration in nanoseconds."""
    found = []
    began = 0
    for name, phase, at in _EVENT.findall(text):
        now = int(at) * _NANOSECONDS_PER_MICROSECOND
        if phase == "B":
            began = now
        else:
            found.append((name, began, now - began))
    return sorted(found, key=lambda event: event[1])


def matched(operators: Sequence[tuple[int, str]], events: Iterable[tuple[str, int, int]]) -> list[TracedOperator]:
    """Assign the events to nodes. An operator that only passes on memory is skipped by MXNet and has no event."""
    found: list[TracedOperator] = []
    waiting = iter(operators)
    for name, start, duration in events:
        node = next((number for number, op in waiting if op == name), None)
        if node is None:
            raise RefusalError(
                protocol.Reason.UNBUILDABLE, f"the profiler shows a {name} that the graph does not have there"
            )
        found.append(TracedOperator(node, name, start, duration))
    return found
