"""A network made ready to run: its arrays filled, its graph bound.

MXNet has two ways to run a graph. An executor is how a symbol file is run by default, with memory and layouts planned
once; a CachedOp with all its flags takes 0.3 ms and more longer on the same graph, and without them twice the time. And
an executor leaves the arrays that it reads as they are: a CachedOp that has to convert one converts it for good. But an
executor has its operators compute in one workspace, so that convolutions never run at the same time.
"""

from __future__ import annotations

import json
import os
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy

from dlbricks_tui.runtime.inside.arrays import numpy_dtype
from dlbricks_tui.runtime.inside.backend import BoundNetwork, ProfiledNetwork
from dlbricks_tui.runtime.inside.loading import ask, load, refuse_unknown, save
from dlbricks_tui.runtime.inside.mxnet_profiler import ProfiledSymbol
from dlbricks_tui.runtime.inside.refusal import RefusalError
from dlbricks_tui.runtime.inside.symbol_file import VARIABLE, SymbolFile
from dlbricks_tui.runtime.inside.values import (
    data_values,
    learned_values,
    row_numbers,
    rows_counted,
    variance_values,
    variances,
)
from dlbricks_tui.runtime.protocol import ArrayType, Network, Reason

BACKEND_VARIABLE = "MXNET_SUBGRAPH_BACKEND"
# Before 1.6 there was none to switch off, and its name was not known.
NO_BACKEND = "NONE"
EQUALS_ONCE_VARIABLE = "MXNET_ELIMINATE_COMMON_EXPR"
BULK_VARIABLE = "MXNET_EXEC_BULK_EXEC_INFERENCE"
WORKERS_VARIABLE = "MXNET_CPU_WORKER_NTHREADS"
# For how many branches memory is planned apart: of operators that write to the same memory one waits for the other.
BRANCHES_VARIABLE = "NNVM_EXEC_NUM_TEMP"
# Planned once, as an executor does. The engine gets operators singly: of those that it gets together none runs beside
# another.
ONE_BY_ONE = (("static_alloc", True), ("static_shape", True), ("forward_bulk_size", 1))

NOT_TRAINING = 0


class _Symbol(BoundNetwork):
    """A symbol with its arrays; how it runs is for others to say."""

    def __init__(self, mxnet: Any, network: Network, fed: Sequence[Any] | None = None) -> None:
        """`fed` are the arrays that the data inputs read; without them they are made."""
        self._mxnet = mxnet
        self._file = SymbolFile(network.symbol)
        refuse_unknown(mxnet, self._file)
        self._arrays = _made(mxnet, self._file, network, fed)
        self.inputs = [self._arrays[self._file.alias(name)] for name in network.inputs]
        self._asked(lambda: self._bind(load(self._mxnet, self._file)))

    def output_types(self) -> list[ArrayType]:
        """What the outputs are."""
        return [ArrayType(output.shape, output.dtype) for output in self.outputs]

    def refuse_infinite_values(self) -> None:
        """Objects where an output holds an infinity, or what is no number."""
        for number, head in enumerate(self._file.heads):
            if not numpy.isfinite(self.outputs[number].asnumpy()).all():
                message = f"output {head.output} of {self._file.names[head.node]} holds values that are not finite"
                raise RefusalError(Reason.NOT_FINITE, message, head.node)

    @abstractmethod
    def _bind(self, symbol: Any) -> None:
        """Has the symbol read and write arrays."""

    def _array(self, alias: str) -> Any:
        if alias not in self._arrays:
            raise RefusalError(Reason.MALFORMED, f"nobody says what {self._file.restored(alias)} is")
        return self._arrays[alias]

    def _asked(self, question: Callable[[], Any]) -> Any:
        return ask(self._mxnet, self._file, question, Reason.UNBUILDABLE)


class BoundSymbol(_Symbol):
    """A symbol whose operators run one after another, in an executor."""

    def run(self) -> None:
        """Computes the outputs and waits for them; nothing is copied out of the framework."""
        failed = self._forward(self._handle, NOT_TRAINING) or self._wait_for_all()
        if failed:
            self._asked(lambda: self._check(failed))

    def profiled(self) -> ProfiledNetwork:
        """The symbol bound once more, to give the engine each operator by itself.

        The engine gets the operators of a plain executor all at once, where the profiler cannot tell them apart.
        """
        symbol = self._asked(lambda: load(self._mxnet, self._file))
        with variables({BULK_VARIABLE: "0"}):
            executor = self._asked(lambda: self._executor_of(symbol, self._executor))
        nodes = json.loads(save(symbol))["nodes"]
        operators = [(node["name"], node["op"]) for node in nodes if node["op"] != VARIABLE]
        return ProfiledSymbol(self._mxnet, executor, operators)

    def _executor_of(self, symbol: Any, sharing: Any = None) -> Any:
        arguments = {alias: self._array(alias) for alias in symbol.list_arguments()}
        states = {alias: self._array(alias) for alias in symbol.list_auxiliary_states()}
        with variables(_as_it_stands(self._mxnet)):
            return symbol.bind(self._mxnet.cpu(), arguments, aux_states=states, grad_req="null", shared_exec=sharing)

    def _bind(self, symbol: Any) -> None:
        self._executor = self._executor_of(symbol)
        # Executor.forward also makes handles of all outputs anew, which takes longer than some operators.
        self._forward = self._mxnet.base._LIB.MXExecutorForward
        self._wait_for_all = self._mxnet.base._LIB.MXNDArrayWaitAll
        self._check = self._mxnet.base.check_call
        self._handle = self._executor.handle
        self.outputs: list[Any] = self._executor.outputs


class SideBySideSymbol(_Symbol):
    """A symbol whose operators run at the same time where they can, on as many workers of the engine as it has."""

    def run(self) -> None:
        """Computes the outputs and waits for them."""
        self._asked(self._run)

    def _bind(self, symbol: Any) -> None:
        self._read = [self._array(alias) for alias in symbol.list_inputs()]
        # Memory is planned when it runs for the first time.
        apart = {BRANCHES_VARIABLE: os.environ.get(WORKERS_VARIABLE)}
        with variables({**_as_it_stands(self._mxnet), **apart}):
            self._operator = self._mxnet.nd.CachedOp(symbol, ONE_BY_ONE)
            self._run()

    def _run(self) -> None:
        found = self._operator(*self._read)
        self._mxnet.nd.waitall()
        self.outputs = found if isinstance(found, list) else [found]

    def profiled(self) -> ProfiledNetwork:
        """Refused: operators that run at the same time share the processor."""
        raise RefusalError(Reason.UNBUILDABLE, "operators that run side by side cannot be profiled one by one")


def _made(mxnet: Any, file: SymbolFile, network: Network, fed: Sequence[Any] | None) -> dict[str, Any]:
    """The arrays by the aliases of their variables."""
    types = {**network.inputs, **network.weights}
    rows = rows_counted(file, {file.variable(name): shape for name, (shape, _) in types.items()})
    divisors = variances(file)
    arrays = {} if fed is None else _in_their_places(network, fed)
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


def _in_their_places(network: Network, fed: Sequence[Any]) -> dict[str, Any]:
    wanted, given = [shape for shape, _ in network.inputs.values()], [array.shape for array in fed]
    if wanted != given:
        raise RefusalError(Reason.MALFORMED, f"the inputs have the shapes {wanted} and are fed {given}")
    return {name: fed[place] for place, name in enumerate(network.inputs)}


def _as_it_stands(mxnet: Any) -> dict[str, str | None]:
    """The variables by which what is bound is run as it is: neither fused nor rid of what it computes twice."""
    knows_backends = hasattr(mxnet.executor.Executor, "get_optimized_symbol")
    return {BACKEND_VARIABLE: NO_BACKEND if knows_backends else None, EQUALS_ONCE_VARIABLE: "0"}


@contextmanager
def variables(wanted: Mapping[str, str | None]) -> Iterator[None]:
    """Has variables of the environment be so inside; those that are None are not there."""
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
