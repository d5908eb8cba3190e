"""The module `mxnet` of this interpreter, and symbol files in parts, so that it can be asked about single nodes."""

from __future__ import annotations

import ctypes
import json
import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, NamedTuple

from dlbricks_tui.runtime.inside.backend import RefusalError, imported
from dlbricks_tui.runtime.protocol import Reason

VARIABLE = "null"

# Python code, or an address in the memory of the process that saved the file. MXNet knows the names, but cannot create
# these operators from a file, and crashes on the addresses.
NOT_FROM_A_FILE = frozenset({"Custom", "_CachedOp", "_CustomFunction", "_NDArray", "_Native"})

# MXNet's JSON reader knows the escapes of a line break and a tab only.
UNREADABLE_ESCAPE = re.compile(r"(?<!\\)((?:\\\\)*)\\(?:u[0-9a-f]{4}|[bf])")

ALIAS = re.compile(r"#(\d+)#")


class Edge(NamedTuple):
    """One output of a node."""

    node: int
    output: int


class SymbolNodes:
    """The nodes and heads of a file.

    MXNet gets every node under the alias `#index#`. It binds by name and quotes names in its errors, and the names of a
    file may be duplicate, empty, or not acceptable to MXNet.
    """

    def __init__(self, text: str) -> None:
        """Read a file as `models/mxnet_file.py` writes it after its checks."""
        document = json.loads(text)
        self._nodes: list[dict[str, Any]] = document["nodes"]
        self._versions = document.get("attrs") or {}
        self.names = [str(node["name"]) for node in self._nodes]
        self.operators = [str(node["op"]) for node in self._nodes]
        self._operators_within = [_operators_within(node) for node in self._nodes]
        self._declared = [node.get("attrs") or {} for node in self._nodes]
        self.inputs = [_edges(node["inputs"]) for node in self._nodes]
        self._variables = {self.names[i]: i for i, op in enumerate(self.operators) if op == VARIABLE}
        self.heads = _edges(document["heads"])

    def unknown_to(self, operators: frozenset[str]) -> list[int]:
        """Return the nodes that these operators cannot build, because of themselves or of a subgraph."""
        makeable = operators - NOT_FROM_A_FILE
        return [i for i, needed in enumerate(self._operators_within) if not needed <= makeable]

    def variable(self, name: str) -> int:
        if name not in self._variables:
            raise RefusalError(Reason.MALFORMED, f"there is no input called {name}")
        return self._variables[name]

    def alias(self, variable: str) -> str:
        return f"#{self.variable(variable)}#"

    def uses(self) -> Iterator[tuple[str, list[int | None]]]:
        """Return each operator, including those in subgraphs, with the nodes of the file that it reads.

        None stands for results of the subgraph itself.
        """
        waiting: list[tuple[dict[str, Any], list[int | None]]] = []
        for index, node in enumerate(self._nodes):
            waiting.append((node, [edge.node for edge in self.inputs[index]]))
        for node, reads in waiting:
            yield node["op"], reads
            for subgraph in node.get("subgraphs", ()):
                # The variables of a subgraph stand for the inputs of the operator around it, in order.
                outside = iter(reads)
                known = [next(outside, None) if inner["op"] == VARIABLE else None for inner in subgraph["nodes"]]
                waiting += [(inner, [known[entry[0]] for entry in inner["inputs"]]) for inner in subgraph["nodes"]]

    def declaring(self, attribute: str) -> frozenset[str]:
        """Return the aliases of the nodes with that attribute."""
        return frozenset(f"#{i}#" for i, declared in enumerate(self._declared) if attribute in declared)

    def twins(self) -> list[int]:
        """Return for each node the first node of the file that computes the same from the same inputs."""
        twins: list[int] = []
        first: dict[str, int] = {}
        for index, node in enumerate(self._nodes):
            if node["op"] == VARIABLE:
                twins.append(index)
                continue
            inputs = [
                (twins[edge.node] if edge.node < index else edge.node, edge.output) for edge in self.inputs[index]
            ]
            looks = json.dumps({**node, "name": "", "inputs": inputs}, sort_keys=True)
            twins.append(first.setdefault(looks, index))
        return twins

    def aliased(self, left_out: Collection[int] = ()) -> str:
        """Return the file with all names replaced by aliases; variables replace the outputs of the nodes left out."""
        nodes = [{**node, "name": f"#{i}#"} for i, node in enumerate(self._nodes)]
        heads = list(self.heads)
        for index in left_out:
            nodes[index] = {"op": VARIABLE, "name": f"#{index}#", "inputs": []}
            # Also request tensors that only nodes left out read.
            heads += self.inputs[index]
        stand_ins: dict[Edge, int] = {}

        def redirected(edge: Edge) -> list[int]:
            if edge.node not in left_out or edge.output == 0:
                return [edge.node, edge.output, 0]
            if edge not in stand_ins:
                stand_ins[edge] = len(nodes)
                nodes.append({"op": VARIABLE, "name": f"#{edge.node}#.{edge.output}", "inputs": []})
            return [stand_ins[edge], 0, 0]

        for index, edges in enumerate(self.inputs):
            if index not in left_out:
                nodes[index]["inputs"] = [redirected(edge) for edge in edges]
        document = {"nodes": nodes, "heads": [redirected(edge) for edge in heads], "attrs": self._versions}
        document["arg_nodes"] = [i for i, node in enumerate(nodes) if node["op"] == VARIABLE]
        text = UNREADABLE_ESCAPE.sub(r"\1?", json.dumps(document, ensure_ascii=False))
        return text.encode(errors="replace").decode()

    def node_in(self, text: str) -> int | None:
        """Return the first node whose alias occurs in the text."""
        found = (int(alias) for alias in ALIAS.findall(text))
        return next((index for index in found if index < len(self.names)), None)

    def restored(self, text: str) -> str:
        """Return the text with the names of the file in place of aliases."""

        def restore(alias: re.Match[str]) -> str:
            index = int(alias[1])
            return self.names[index] if index < len(self.names) else alias[0]

        return ALIAS.sub(restore, text)


def _edges(entries: Iterable[Sequence[int]]) -> list[Edge]:
    # The third number is the version of a state.
    return [Edge(entry[0], entry[1]) for entry in entries]


def _operators_within(node: dict[str, Any]) -> frozenset[str]:
    found = set()
    waiting = [node]
    while waiting:
        node = waiting.pop()
        found.add(node["op"])
        for subgraph in node.get("subgraphs", ()):
            waiting += subgraph["nodes"]
    return frozenset(found - {VARIABLE})


# MXNet still reads these names, which numpy 1.24 removed.
NUMPY_ALIASES = (("bool", bool), ("int", int), ("float", float), ("complex", complex), ("object", object), ("str", str))

# An error message of MXNet begins with places in its source.
SOURCE_PLACE = re.compile(r"\[\d\d:\d\d:\d\d\] \S+:\d+: ")
NOISE = ("Traceback", "  ", "Stack trace")
OUT_OF_MEMORY = "Failed to allocate"


def load_mxnet() -> Any:
    """Import `mxnet`, after numpy."""
    numpy = imported("numpy", "MXNet")
    for name, builtin in NUMPY_ALIASES:
        # hasattr would make numpy warn of deprecated names.
        if name not in vars(numpy):
            setattr(numpy, name, builtin)
    if sys.version_info < (3, 12):
        # MXNet then imports the `distutils` of Python: setuptools would load all of itself for its own.
        sys.meta_path[:] = [it for it in sys.meta_path if type(it).__module__ != "_distutils_hack"]
    with _left_out("onnx"):
        return imported("mxnet", "MXNet")


@lru_cache(maxsize=1)
def operators(mxnet: Any) -> frozenset[str]:
    """Return all names of MXNet's operators."""
    count, names = ctypes.c_uint(), ctypes.POINTER(ctypes.c_char_p)()
    mxnet.base.check_call(mxnet.base._LIB.MXListAllOpNames(ctypes.byref(count), ctypes.byref(names)))
    return frozenset(names[i].decode() for i in range(count.value))


def first_meaningful_line(error: Exception) -> str:
    """Return the message of an error without places in MXNet's source."""
    lines = [line for line in str(error).splitlines() if line.strip() and not line.startswith(NOISE)]
    said = SOURCE_PLACE.sub("", lines[0] if lines else type(error).__name__)
    return said[len("MXNetError: ") :] if said.startswith("MXNetError: ") else said


@contextmanager
def _left_out(module: str) -> Iterator[None]:
    """Let MXNet find that an optional module, which takes time to import, is not installed."""
    if module in sys.modules:
        yield
        return
    sys.modules[module] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        del sys.modules[module]


def load(mxnet: Any, file: SymbolNodes, left_out: Collection[int] = ()) -> Any:
    """Return the file as a symbol, its nodes under their aliases."""
    return ask(mxnet, file, lambda: mxnet.symbol.load_json(file.aliased(left_out)))


def refuse_unknown(mxnet: Any, file: SymbolNodes) -> None:
    """Raise RefusalError if MXNet lacks an operator of the file."""
    unknown = file.unknown_to(operators(mxnet))
    if unknown:
        names = ", ".join(file.names[index] for index in unknown[:3])
        raise RefusalError(Reason.UNKNOWN_OPERATOR, f"MXNet lacks the operators of {names}", unknown[0])


def save(symbol: Any) -> str:
    """Return the symbol as text. Since 1.6 MXNet drops the casts of mixed precision unless told otherwise."""
    try:
        text: str = symbol.tojson(remove_amp_cast=False)
    except TypeError:
        text = symbol.tojson()
    return text


def ask(mxnet: Any, file: SymbolNodes, question: Callable[[], Any], reason: Reason = Reason.INCONSISTENT) -> Any:
    """Call a function of MXNet; turn its errors into refusals that use the names of the file."""
    # Since 1.6 the errors of MXNet include Python's own, such as IndexError.
    errors = (mxnet.base.MXNetError, *getattr(mxnet.base, "error_types", {}).values())
    try:
        return question()
    except errors as error:
        message = file.restored(first_meaningful_line(error))
        node = file.node_in(str(error))
        if node is not None and file.names[node] not in message:
            message = f"{file.names[node]}: {message}"
        raise RefusalError(Reason.TOO_LARGE if OUT_OF_MEMORY in message else reason, message, node) from error
