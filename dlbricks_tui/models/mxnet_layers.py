"""The layer graph of an MXNet file: the roles of its variables, the shapes of inputs, and inferred types."""

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from enum import Enum
from math import prod

from dlbricks_tui.models.cache import FUSED, INFERRED, Cache, GraphAnswer, ReadModel, answer_key, types_in
from dlbricks_tui.models.composites import LAYER_ATTRIBUTE, with_composites
from dlbricks_tui.models.content import without_cycle_search
from dlbricks_tui.models.errors import (
    FlawError,
    FusionRefusedError,
    InconsistentModelError,
    ModelError,
    UnreadableModelError,
)
from dlbricks_tui.models.graph import (
    UNKNOWN_TYPE,
    Feed,
    GraphInput,
    Layer,
    LayerGraph,
    LayerReads,
    Level,
    NativeNode,
    Operator,
    Origin,
    Shape,
    TensorType,
    Wire,
)
from dlbricks_tui.models.input_shapes import listed, missing_shapes, read_shape, refuse_too_large
from dlbricks_tui.models.kinds import Kind, heaviest, kind_of
from dlbricks_tui.models.library import ModelSource
from dlbricks_tui.models.mxnet_file import (
    VARIABLE,
    Framework,
    NodeOutput,
    SymbolFile,
    SymbolNode,
    parse_symbol,
    unique_name,
)
from dlbricks_tui.models.mxnet_operators import bound_once, nested_graph, neutral_operator, schema
from dlbricks_tui.models.neutral import InnerForms, Site
from dlbricks_tui.runtime.errors import WorkerRefusedError
from dlbricks_tui.runtime.protocol import Reason

# MXNet counts elements in 32 bits.
MOST_ELEMENTS = 2**31 - 1

SHAPE_ATTRIBUTE = "__shape__"
_LEARNED_SUFFIXES = ("weight", "bias", "gamma", "beta", "mean", "var", "scale", "const", "state", "parameters", "label")


class Role(str, Enum):
    """The role of a variable."""

    INPUT = "input"
    # Includes labels and recurrent states: bound once, never fed by a layer.
    WEIGHT = "weight"
    CONSTANT = "constant"


def variable_roles(file: SymbolFile, named_inputs: Collection[str] = ()) -> dict[int, Role]:
    """Return the role of each variable by node number.

    `named_inputs` are names that the user or a manifest calls inputs. They count more than a guess by name, and less
    than the declaration of an operator.
    """
    bound, beside_computed = _where_read(file)
    composites = {node.attributes.get(LAYER_ATTRIBUTE) for node in file.nodes if node.op != VARIABLE}
    roles: dict[int, Role] = {}
    for number, node in enumerate(file.nodes):
        if node.op != VARIABLE:
            continue
        layer = node.attributes.get(LAYER_ATTRIBUTE)
        if node.name in named_inputs and number not in bound:
            roles[number] = Role.INPUT
        elif layer is not None:
            # An array in a layer of operators is one of its weights.
            roles[number] = Role.WEIGHT if layer in composites else Role.CONSTANT
        elif number in bound or node.name.lower().endswith(_LEARNED_SUFFIXES):
            roles[number] = Role.WEIGHT
        else:
            # A variable of known shape that joins a computed tensor is a weight.
            fixed = number in beside_computed and SHAPE_ATTRIBUTE in node.attributes
            roles[number] = Role.WEIGHT if fixed else Role.INPUT
    return roles


def _where_read(file: SymbolFile) -> tuple[set[int], set[int]]:
    """Return the variables that an operator declares to be weights, and those that join a computed tensor."""
    bound: set[int] = set()
    beside_computed: set[int] = set()
    nodes = file.nodes
    for node in nodes:
        variables = [entry.node for entry in node.inputs if nodes[entry.node].op == VARIABLE]
        if not variables:
            continue
        if len(variables) < len(node.inputs):
            beside_computed.update(variables)
        for entry, is_bound in zip(node.inputs, bound_once(node.op, len(node.inputs)), strict=True):
            if is_bound and nodes[entry.node].op == VARIABLE:
                bound.add(entry.node)
    return bound, beside_computed


# Input shapes of published networks whose files do not declare them. The first pattern found in the model's name
# counts.
KNOWN_NETWORKS: tuple[tuple[re.Pattern[str], Shape], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE), shape)
    for pattern, shape in (
        # Except for the end of "mobilenet" or "googlenet".
        (r"(?<![a-z])lenet|mnist", (1, 1, 28, 28)),
        (r"cifar", (1, 3, 32, 32)),
        (r"ssd\D*300", (1, 3, 300, 300)),
        (r"ssd\D*512", (1, 3, 512, 512)),
        (r"yolo", (1, 3, 416, 416)),
        (r"inception[-_. ]?(v?3|v?4|resnet)|xception", (1, 3, 299, 299)),
        (r"alexnet|vgg|res-?ne[xs]?t|inception|googlenet|squeezenet|mobilenet|densenet", (1, 3, 224, 224)),
        (r"senet|shufflenet|efficientnet|caffenet|(?<![a-z])nin(?![a-z])|dpn|mnasnet|ghostnet", (1, 3, 224, 224)),
    )
)


def input_shapes(
    file: SymbolFile,
    roles: Mapping[int, Role],
    given: Mapping[str, Shape],
    known: Mapping[str, Shape],
    where: str,
    batch_size: int | None = None,
) -> dict[int, Shape]:
    """Return the known shapes of data inputs by node number.

    `given` are shapes from the user, for variables of the file; `known` are those of a manifest. A batch size replaces
    the first axis of each data input.
    """
    inputs = [number for number, role in roles.items() if role is Role.INPUT]
    names = {file.nodes[number].name for number in roles}
    for name, shape in given.items():
        if not shape:
            raise ModelError(f"{where}: MXNet has no single numbers as inputs; give {name[:80]!r} a shape of sizes")
        if name not in names:
            there = listed([file.nodes[number].name for number in inputs]) or "none"
            raise ModelError(f"{where} has no input {name[:80]!r}; its inputs are: {there}")
    # Users may also give the shape of a weight.
    shapes = {number: given[file.nodes[number].name] for number in roles if file.nodes[number].name in given}
    for number in inputs:
        node = file.nodes[number]
        found = shapes.get(number) or known.get(node.name)
        declared = None if found else declared_axes(node)
        if declared is not None and all(axis > 0 for axis in declared[1:]):
            # An open batch axis means one image.
            found = (max(declared[0], 1), *declared[1:])
        if found is None and len(inputs) == 1 and node.name == "data":
            usual = next((shape for pattern, shape in KNOWN_NETWORKS if pattern.search(where)), None)
            found = usual if usual is not None and _is_image(file, number) else None
        if found is not None:
            shapes[number] = found if batch_size is None else (batch_size, *found[1:])
    refuse_too_large(
        {file.nodes[number].name: shape for number, shape in shapes.items()}, MOST_ELEMENTS, "MXNet", where
    )
    return shapes


def declared_axes(node: SymbolNode) -> Shape | None:
    """Return the declared sizes, 0 or less for an open axis; None where the number of axes is unknown."""
    return read_shape(node.attributes.get(SHAPE_ATTRIBUTE, ""))


def _is_image(file: SymbolFile, number: int) -> bool:
    """Return true if the first convolution behind the input has a kernel of two axes."""
    reached = {number}
    for position, node in enumerate(file.nodes):
        if any(entry.node in reached for entry in node.inputs):
            known = schema(node.op)
            if known is not None and known.name == "Convolution":
                return len(read_shape(node.attributes.get("kernel", "")) or ()) == 2
            reached.add(position)
    return False


SHAPE = "shape"
_SIZE = re.compile(r"-?\d+")


@without_cycle_search()
def build_graph(
    file: SymbolFile, roles: Mapping[int, Role], answer: GraphAnswer, name: str, written: SymbolFile | None = None
) -> LayerGraph:
    """Return the layers of a model, given the role of each variable and what MXNet tells about the file.

    Of a fused graph, `written` is the model file. Without it, operators that share a `__layer__` are one layer.
    """
    return _Builder(file, roles, answer, name, written).graph()


class _Builder:
    def __init__(
        self, file: SymbolFile, roles: Mapping[int, Role], answer: GraphAnswer, name: str, written: SymbolFile | None
    ) -> None:
        self._nodes, self._heads = file.nodes, file.heads
        self._types, self._unknown, self._parts = answer.types, answer.unknown, answer.parts
        self._written = written
        self._roles = roles
        self._name = name
        self._forms = InnerForms()
        # The operators and constants of the file, each a layer.
        self._layers = [
            number
            for number, node in enumerate(self._nodes)
            if not node.is_variable or self._roles[number] is Role.CONSTANT
        ]
        # The outputs of each node that others read.
        self._results: dict[int, list[int]] = defaultdict(list)
        read = {*self._heads, *(entry for node in self._nodes for entry in node.inputs)}
        for number, output in sorted(read):
            self._results[number].append(output)
        self._inputs = [number for number, role in self._roles.items() if role is Role.INPUT]
        self._made = {NodeOutput(number, 0): Feed(None, place) for place, number in enumerate(self._inputs)}
        for index, number in enumerate(self._layers):
            found = enumerate(self._results[number])
            self._made |= {NodeOutput(number, output): Feed(index, place) for place, output in found}
        # Many outputs share few types.
        self._distinct_types = {found for types in self._types for found in types}
        self._all_known = not self._unknown and all(found.is_known for found in self._distinct_types)

    def graph(self) -> LayerGraph:
        if not self._layers:
            raise UnreadableModelError(f"{self._name} has no operators: there is nothing to run")
        shapes = {found.shape for found in self._distinct_types if found.shape is not None}
        too_large = {shape for shape in shapes if prod(shape) > MOST_ELEMENTS}
        for number, types in enumerate(self._types if too_large else ()):
            for found in types:
                if found.shape in too_large:
                    label, shown = self._label(number)[:80], "x".join(map(str, found.shape))[:80]
                    what = f"{label!r} has a shape of {shown}: more than MXNet can hold"
                    raise UnreadableModelError(f"{self._name}: {what}")
        inputs = [GraphInput(self._label(number), self._type(NodeOutput(number, 0))) for number in self._inputs]
        graph = LayerGraph(
            self._name,
            Level.WRITTEN if self._written is None else Level.FUSED,
            tuple([self._layer(index, number) for index, number in enumerate(self._layers)]),
            tuple(inputs),
            # Some files put out a weight, which no layer computes.
            tuple([self._made[head] for head in self._heads if self._roles.get(head.node) is not Role.WEIGHT]),
        )
        if self._written is not None:
            # A fused graph has no annotations.
            return graph
        return with_composites(graph, [self._nodes[it].attributes for it in self._layers])

    def _layer(self, index: int, number: int) -> Layer:
        node = self._nodes[number]
        nodes: tuple[int, ...] = (number,)
        title = node.name or f"{node.op.lower()}{number}"
        if self._written is not None:
            nodes = tuple(sorted(self._parts[number]))
            # A fused layer has the name of its first written layer.
            for first in nodes[:1]:
                written = self._written.nodes[first]
                title = written.attributes.get(LAYER_ATTRIBUTE) or written.name or title
        reads, operators = LayerReads(), tuple[Operator, ...]()
        if node.is_variable:
            reads.weight(number, self._type(NodeOutput(number, 0)))
            ops, kinds, origin = ["constant"], [Kind.CONSTANT], Origin.WEIGHT
        else:
            operators = (self._operator(number, reads),)
            ops = list(operators[0].parts)
            kinds, origin = [kind_of(op) for op in ops], Origin.OPERATOR
        results = self._results[number]
        return Layer(
            index=index,
            name=title,
            op="+".join(ops),
            kind=heaviest(kinds),
            operators=operators,
            feeds=tuple(reads.feeds),
            data=tuple(reads.data),
            weights=tuple(reads.weights),
            results=tuple([Wire(origin, 0, output) for output in results]),
            outputs=tuple([self._type(NodeOutput(number, output)) for output in results]),
            unmeasurable=self._why_unmeasurable(number, (*reads.data, *reads.weights)),
            nodes=nodes,
            # Fused operators keep copies of their weights, in a layout that they choose in their first run.
            arrays=() if any(operator.inner for operator in operators) else tuple(reads.arrays),
        )

    def _operator(self, number: int, reads: LayerReads) -> Operator:
        """Return the operator of a node, and add its inputs to `reads`."""
        node = self._nodes[number]
        wires = [
            reads.weight(entry.node, self._type(NodeOutput(entry.node, 0)))
            if self._roles.get(entry.node) is Role.WEIGHT
            else reads.tensor(self._made[entry], self._type(entry))
            for entry in node.inputs
        ]
        outputs = tuple(self._types[number])
        params = tuple(_with_sizes(node, outputs).items())
        neutral = neutral_operator(node.op, params, Site(tuple([self._type(entry) for entry in node.inputs]), outputs))
        native = NativeNode(node.op, params, tuple([subgraph.text for subgraph in node.subgraphs]))
        parts: tuple[str, ...] = (neutral.op,)
        inner: tuple[str, ...] = ()
        if node.subgraphs:
            try:
                nested = [nested_graph(subgraph.file, self._forms) for subgraph in node.subgraphs]
            except FlawError as too_large:
                raise UnreadableModelError(f"{self._name}: {too_large}") from None
            inner = tuple([canonical for canonical, _ in nested])
            # A loop keeps its own name. A fused operator gets the names of its parts.
            if kind_of(neutral.op) is Kind.OTHER:
                parts = tuple([op for _, ops in nested for op in ops]) or parts
        return Operator(neutral.op, neutral.params, tuple(wires), outputs, native, inner, parts)

    def _label(self, number: int) -> str:
        """Return the name of a node in the model file."""
        if self._written is not None and self._parts[number]:
            return self._written.nodes[self._parts[number][0]].name
        return self._nodes[number].name

    def _type(self, entry: NodeOutput) -> TensorType:
        types = self._types[entry.node]
        return types[entry.output] if entry.output < len(types) else UNKNOWN_TYPE

    def _why_unmeasurable(self, number: int, inputs: Sequence[TensorType]) -> str | None:
        if self._all_known and UNKNOWN_TYPE not in inputs:
            return None
        if number in self._unknown:
            return f"operator {self._nodes[number].op} is not known to the installed MXNet"
        if all(found.is_known for found in (*inputs, *self._types[number])):
            return None
        if self._unknown:
            return "its shape depends on an operator that the installed MXNet does not know"
        return "MXNet does not find out its shape"


def _with_sizes(node: SymbolNode, outputs: Sequence[TensorType]) -> Mapping[str, str]:
    """Return the parameters of an operator. The size of a new array counts only if its readers do not determine it."""
    declared = node.params.get(SHAPE)
    if node.inputs or declared is None or not outputs[0].is_known:
        return node.params
    sizes = [int(size) for size in _SIZE.findall(declared)]
    return node.params if sizes and min(sizes) > 0 else {**node.params, SHAPE: str(outputs[0].shape)}


_UNIQUE_NAME = re.compile(r"\bn(\d{1,9})\b")
_REFUSED_TO_FUSE = (Reason.UNFUSABLE, Reason.UNKNOWN_OPERATOR)


class InferredGraph:
    """A symbol file that is read with the types that a framework infers."""

    def __init__(
        self,
        source: ModelSource,
        content: bytes,
        cache: Cache,
        framework: Framework,
        given: Mapping[str, Shape],
        batch_size: int | None,
    ) -> None:
        self._source = source
        self._content = content
        self._cache = cache
        self._framework = framework
        self._file = file = parse_symbol(content, source.name)
        self._roles = roles = variable_roles(file, {*given, *source.inputs})
        self._shapes = input_shapes(file, roles, given, source.inputs, source.name, batch_size)

    def at(self, level: Level) -> ReadModel:
        """Return the layer graph."""
        if level is Level.FUSED:
            graph = self._fused()
        else:
            graph = build_graph(self._file, self._roles, self._inferred(), self._source.name)
        first = graph.inputs[0].type.shape if graph.inputs else None
        return ReadModel(replace(graph, batch_size=first[0] if first else 1))

    def _inferred(self) -> GraphAnswer:
        file, framework = self._file, self._framework
        key = answer_key(self._content, self._shapes)
        delivered = None if self._source.types is None else types_in(self._source.types, key)
        known = delivered or self._cache.read_types(INFERRED, key)
        inputs = [number for number, role in self._roles.items() if role is Role.INPUT]
        may_know_more = known is not None and known.unknown and known.framework != framework.identity
        if known is None or len(known.types) != len(file.nodes) or may_know_more:
            if not self._shapes:
                self._refuse_open_inputs(inputs)
            known = self._ask(framework.infer)
            self._check(known.types, file)
            self._cache.write_types(INFERRED, key, known)
        self._refuse_open_inputs([n for n in inputs if all(found.shape is None for found in known.types[n])])
        return known

    def _fused(self) -> LayerGraph:
        framework, roles = self._framework, self._roles
        key = answer_key(self._content, self._shapes, "fused", framework.identity)
        known = self._cache.read_types(FUSED, key)
        if known is None or known.symbol is None:
            # Inference first: its errors name inputs without a shape and unknown operators.
            self._inferred()
            known = self._ask(framework.fuse)
            self._cache.write_types(FUSED, key, known)
        fused = parse_symbol(known.symbol or "", f"{self._source.name}, fused")
        self._check(known.types, fused)
        self._check(known.parts, fused)
        fused_roles = {
            number: next((roles[part] for part in known.parts[number] if part in roles), Role.WEIGHT)
            for number, node in enumerate(fused.nodes)
            if node.is_variable
        }
        return build_graph(fused, fused_roles, known, self._source.name, self._file)

    def _refuse_open_inputs(self, numbers: Sequence[int]) -> None:
        if numbers:
            nodes = [self._file.nodes[number] for number in numbers]
            raise missing_shapes({node.name: declared_axes(node) for node in nodes}, self._source.name)

    def _ask(self, question: Callable[[str, Mapping[str, Shape]], GraphAnswer]) -> GraphAnswer:
        """Return the framework's answer. A refusal is reworded with the names of the model file."""
        nodes = self._file.nodes

        def named(found: re.Match[str]) -> str:
            number = int(found[1])
            return repr(nodes[number].name[:80]) if number < len(nodes) and nodes[number].name else found[0]

        try:
            answer = question(self._file.render(), {unique_name(number): it for number, it in self._shapes.items()})
            return replace(answer, framework=self._framework.identity)
        except WorkerRefusedError as refused:
            kind = FusionRefusedError if refused.reason in _REFUSED_TO_FUSE else InconsistentModelError
            raise kind(f"{self._source.name}: {_UNIQUE_NAME.sub(named, str(refused))}") from None

    def _check(self, answered: Sequence[object], file: SymbolFile) -> None:
        if len(answered) != len(file.nodes):
            where = self._source.name
            raise ModelError(f"{where}: {len(answered)} nodes were answered for a graph of {len(file.nodes)}")
