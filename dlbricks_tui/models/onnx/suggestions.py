"""Shapes to suggest for inputs whose sizes a file leaves open: by the operators that read them, and several to try."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dlbricks_tui.models.graph import Shape
from dlbricks_tui.models.input_shapes import example_shape
from dlbricks_tui.models.onnx.inputs import Axes, axes_of
from dlbricks_tui.models.onnx.model_file import OnnxFile, graphs_inside
from dlbricks_tui.models.onnx.stored_arrays import DamagedValueError, array_of

if TYPE_CHECKING:
    from onnx import NodeProto, TensorProto

# The name that is given to an axis that an operator reads as the batch.
_BATCH = "batch"
# The lengths of sequences and the sides of images that are tried one after another, likely ones first.
_SIZES = (
    *((128, 224), (256, 256), (512, 320), (1024, 512), (2048, 640)),
    *((16_000, 28), (64, 64), (32, 32), (8, 16), (1, 1)),
)
# The axes that an input of unknown rank may have.
_RANKS: Sequence[Axes] = (["", "", "", ""], ["", ""], ["", "", ""], [""], [])
_RECURRENT = frozenset({"LSTM", "GRU", "RNN"})
_BROADCASTING = frozenset({"Add", "Sub", "Mul", "Div"})
_SAME_AXES = frozenset(
    {"Cast", "Clip", "Dropout", "Identity", "LeakyRelu", "Relu", "Sigmoid", "Softmax", "Sqrt", "Tanh"}
)


def candidates(asked: Mapping[str, Axes | None]) -> Iterator[dict[str, Shape]]:
    """Yield shapes for these inputs. The middle one of three axes has the same length as others, or one element."""
    ranks = _RANKS if None in asked.values() else _RANKS[:1]
    tried: list[dict[str, Shape]] = []
    for rank in ranks:
        for length, side in _SIZES:
            for inner in ("", _BATCH):
                found = {}
                for name, axes in asked.items():
                    known = rank if axes is None else axes
                    named = [known[0], known[1] or inner, known[2]] if len(known) == 3 else known
                    found[name] = example_shape(named, length, side)
                if found not in tried:
                    tried.append(found)
                    yield found


def implied_axes(file: OnnxFile) -> dict[str, Axes | None]:
    """Return the axes of inputs, with the sizes of nameless ones that follow from the weights of their operators."""
    found = _Implied({it.name: axes_of(it) for it in file.inputs})
    found.take(file.nodes, file.weights)
    return found.axes


class _Implied:
    """Facts about the inputs of a graph that follow from the nodes that read them."""

    def __init__(self, axes: dict[str, Axes | None]) -> None:
        self.axes = axes
        # Tensors that are views of an input: its name, and the place of each axis in it; None for an axis of another
        # size. None instead of the places: the rank is not known.
        self._views: dict[str, tuple[str, tuple[int | None, ...] | None]] = {
            name: (name, None if its is None else tuple(range(len(its)))) for name, its in axes.items()
        }
        self._stored: dict[str, TensorProto] = {}

    def take(self, nodes: "Iterable[NodeProto]", weights: "Iterable[TensorProto]") -> None:
        """Take the nodes of a graph in their order, and the graphs inside of them."""
        self._stored.update((it.name, it) for it in weights)
        for node in nodes:
            if node.op_type == "Constant" and node.output:
                self._stored.update((node.output[0], it.t) for it in node.attribute if it.name == "value")
            elif not node.domain and node.input:
                self._note(node)
                self._follow(node)
            for graph in graphs_inside(node):
                self.take(graph.node, graph.initializer)

    def _note(self, node: "NodeProto") -> None:
        """Note the sizes that a node needs."""
        op, dims = node.op_type, [self._dims(name) for name in node.input]
        weight = dims[1] if len(dims) > 1 else None
        if op in _RECURRENT and weight and len(weight) == 3 and len(dims) > 2 and dims[2] and len(dims[2]) == 3:
            batch_first = _attribute(node, "layout", 0)
            state: Axes = [dims[2][0], _BATCH, dims[2][2]]
            data: Axes = ["", _BATCH, weight[2]]
            for place, axes in ((0, data), (5, state), (6, state)):
                self._imply(node, place, [axes[1], axes[0], axes[2]] if batch_first else axes)
        elif op in ("Conv", "ConvTranspose") and weight and len(weight) > 2:
            channels = weight[1] * _attribute(node, "group", 1) if op == "Conv" else weight[0]
            self._imply(node, 0, [_BATCH, channels, *([""] * (len(weight) - 2))])
        elif op == "Gemm" and weight and len(weight) == 2 and not _attribute(node, "transA", 0):
            self._imply(node, 0, [_BATCH, weight[1 if _attribute(node, "transB", 0) else 0]])
        elif op == "MatMul" and weight and len(weight) == 2:
            self._imply_last(node, 0, weight[:1])
        elif op == "LayerNormalization" and weight:
            self._imply_last(node, 0, weight)
        elif op in _BROADCASTING and len(dims) == 2:
            for place in (0, 1):
                self._imply_last(node, place, dims[1 - place] or ())

    def _imply(self, node: "NodeProto", place: int, axes: Axes) -> None:
        """Note the axes of an input of a node; "" is an open one."""
        name = node.input[place] if place < len(node.input) else ""
        if name not in self._views:
            return
        source, places = self._views[name]
        if places is None and self.axes[source] is None:
            self.axes[source] = [""] * len(axes)
            places = tuple(range(len(axes)))
            self._views[name] = source, places
        its = self.axes[source]
        if its is None or places is None or len(places) != len(axes):
            return
        for at, size in zip(places, axes, strict=True):
            if at is not None and its[at] == "":
                its[at] = size

    def _imply_last(self, node: "NodeProto", place: int, sizes: Sequence[int]) -> None:
        """Note the sizes of the last axes of an input; those of one element fit any size."""
        _, places = self._views.get(node.input[place], ("", None))
        if places is not None and len(sizes) <= len(places):
            kept = [size if size > 1 else "" for size in sizes]
            self._imply(node, place, [*([""] * (len(places) - len(sizes))), *kept])

    def _follow(self, node: "NodeProto") -> None:
        """Note the results of a node that are views of an input."""
        view = self._views.get(node.input[0])
        if view is None:
            return
        source, places = view
        op = node.op_type
        if op in _SAME_AXES or (op in _BROADCASTING and len(self._dims(node.input[-1]) or ()) <= len(places or ())):
            self._views.update((name, view) for name in node.output)
            return
        if places is None:
            return
        moved: list[int | None] | None = list(places)
        axes = self._numbers(node, 3 if op == "Slice" else 1, "axes")
        if op == "Transpose":
            order = _attribute(node, "perm", list(range(len(places)))[::-1])
            moved = [places[it] for it in order] if sorted(order) == list(range(len(places))) else None
        elif op == "Split":
            moved = _without_sizes(places, [_attribute(node, "axis", 0)])
        elif op == "Slice":
            moved = _without_sizes(places, range(len(places)) if axes is None else axes)
        elif op == "Squeeze" and axes:
            left_out = {it % len(places) for it in axes} if places else set()
            moved = [it for place, it in enumerate(places) if place not in left_out]
        elif op == "Unsqueeze" and axes:
            rank = len(places) + len(axes)
            new, rest = {it % rank for it in axes}, iter(places)
            moved = [None if place in new else next(rest, None) for place in range(rank)]
        elif op == "Gather" and self._dims(node.input[1]) == () and places:
            axis = _attribute(node, "axis", 0) % len(places)
            moved = [it for place, it in enumerate(places) if place != axis]
        else:
            moved = None
        if moved is not None:
            self._views.update((name, (source, tuple(moved))) for name in node.output)

    def _dims(self, name: str) -> tuple[int, ...] | None:
        return tuple(self._stored[name].dims) if name in self._stored else None

    def _numbers(self, node: "NodeProto", place: int, attribute: str) -> list[int] | None:
        """Return the whole numbers that a node reads, or has as an attribute in older versions."""
        stored = self._stored.get(node.input[place]) if place < len(node.input) else None
        if stored is None:
            found: list[int] | None = _attribute(node, attribute, None)
            return found
        try:
            return [int(it) for it in array_of(stored).reshape(-1)]
        except (DamagedValueError, ValueError):
            return None


def _without_sizes(places: Sequence[int | None], axes: Iterable[int]) -> list[int | None]:
    changed = {it % len(places) for it in axes} if places else set()
    return [None if place in changed else it for place, it in enumerate(places)]


def _attribute(node: "NodeProto", name: str, default: Any) -> Any:
    """Return a whole number or a list of them that a node has as an attribute."""
    for it in node.attribute:
        if it.name == name:
            return list(it.ints) if it.ints else it.i
    return default
