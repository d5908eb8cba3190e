"""A network of MXNet written operator by operator, as a symbol file."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from dlbricks_tui.models.mxnet_file import VARIABLE, FreshNames, symbol_document, symbol_file

# The weights that an operator expects after its data, in MXNet's order.
LEARNED_INPUTS: Mapping[str, tuple[str, ...]] = {
    "Convolution": ("weight", "bias"),
    "Deconvolution": ("weight", "bias"),
    "FullyConnected": ("weight", "bias"),
    "BatchNorm": ("gamma", "beta", "moving_mean", "moving_var"),
    "InstanceNorm": ("gamma", "beta"),
    "LayerNorm": ("gamma", "beta"),
    "Embedding": ("weight",),
}
BIAS_IS_LEFT_OUT_BY_DEFAULT = frozenset({"Deconvolution"})

ParamValue = bool | int | float | str | Sequence[int]


@dataclass(frozen=True, slots=True)
class Output:
    """One output of an operator or of a variable."""

    node: int
    index: int = 0


@dataclass(frozen=True, slots=True)
class _LayerScope:
    name: str
    kind: str
    times: int


class SymbolWriter:
    """Collects the nodes of one network and renders them as a symbol file."""

    def __init__(self) -> None:
        self._nodes: list[dict[str, object]] = []
        self._scope: _LayerScope | None = None
        self._names = FreshNames()

    def input(self, name: str, shape: Sequence[int]) -> Output:
        """Write a data input with its shape, batch first."""
        return self.variable(name, shape)

    def variable(self, name: str, shape: Sequence[int] | None = None) -> Output:
        """Write a weight or an input; inside a `layer` block it becomes a layer."""
        attributes = dict(self._layer_attributes())
        if shape is not None:
            attributes["__shape__"] = _literal(tuple(shape))
        return self._node(VARIABLE, name, (), attributes)

    def learned(self, role: str, shape: Sequence[int]) -> Output:
        """Write a weight of the next operator, named for its role in the current layer. It is never a layer."""
        name = f"{self._scope.name}_{role}" if self._scope else role
        return self._node(VARIABLE, name, (), {"__shape__": _literal(tuple(shape))})

    def op(self, op: str, *inputs: Output, **params: ParamValue) -> Output:
        """Write an operator with its weights and return its first output."""
        name = self._names.take(self._scope.name if self._scope else op.lower())
        learned = LEARNED_INPUTS.get(op, ())
        if params.get("no_bias", op in BIAS_IS_LEFT_OUT_BY_DEFAULT):
            learned = tuple(role for role in learned if role != "bias")
        weights = [self._node(VARIABLE, f"{name}_{role}", (), {}) for role in learned]
        attributes = {key: _literal(value) for key, value in params.items()}
        return self._node(op, name, (*inputs, *weights), attributes | self._layer_attributes())

    @contextmanager
    def layer(self, name: str, kind: str, times: int = 1) -> Iterator[None]:
        """Let all operators within the block belong to one layer of that name and kind."""
        outer, self._scope = self._scope, _LayerScope(name, kind, times)
        try:
            yield
        finally:
            self._scope = outer

    def render(self, *heads: Output) -> bytes:
        """Return the symbol file; equal calls give equal bytes."""
        return symbol_file(symbol_document(self._nodes, [(head.node, head.index) for head in heads]))

    def _layer_attributes(self) -> dict[str, str]:
        if self._scope is None:
            return {}
        attributes = {"__layer__": self._scope.name, "__kind__": self._scope.kind}
        if self._scope.times > 1:
            attributes["__times__"] = str(self._scope.times)
        return attributes

    def _node(self, op: str, name: str, inputs: Sequence[Output], attributes: Mapping[str, str]) -> Output:
        node: dict[str, object] = {"op": op, "name": self._names.take(name) if op == VARIABLE else name}
        if attributes:
            node["attrs"] = dict(attributes)
        node["inputs"] = [[source.node, source.index, 0] for source in inputs]
        self._nodes.append(node)
        return Output(len(self._nodes) - 1)


def _literal(value: ParamValue) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, (bool, int, float)):
        return repr(value)
    items = [repr(item) for item in value]
    return f"({items[0]},)" if len(items) == 1 else f"({', '.join(items)})"
