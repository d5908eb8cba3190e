"""Hostile model files by name: false sizes, cycles, depth, huge names, terminal codes."""

import copy
import gzip
import json
import random
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, islice
from typing import Any

from google.protobuf.message import Message
from onnx import AttributeProto, ModelProto, TensorProto, defs
from onnx.helper import make_graph, make_node, make_opsetid, make_sparse_tensor, make_tensor, make_tensor_value_info
from onnx.parser import parse_model

from tests.models.onnx_models import floats, integers, kept_in, model, small, with_everything, written
from tests.models.symbols import Document, content, document, node, small_network, variable

# Sets the title of the terminal, clears it, and starts a new line.
ESCAPES = "\x1b]0;owned\x07\x1b[2J\x9b31m\r\nnext\x1b[A"
SIZES = (10**8, 2**31, 10**12, 2**40, 2**62, 2**63 - 1, -1)
TYPES = ("FLOAT", "DOUBLE", "INT64", "INT32", "UINT8", "BOOL", "FLOAT16", "INT4", "COMPLEX64", "STRING")
LONG = 2_000_000
MUTATED = 40
OPERATORS = 100


def hostile_onnx(step: int = 1) -> dict[str, bytes]:
    """Return hundreds of ONNX files, or some of most kinds: files of one kind are next to each other."""
    found = islice(chain.from_iterable(make() for make in _ONNX), 0, None, step)
    return {it: made.SerializeToString() if isinstance(made, Message) else _made(made) for it, made in found}


def hostile_symbols(step: int = 1) -> dict[str, bytes]:
    """Return hundreds of symbol files, or some of most kinds."""
    makers = (_symbol_numbers, _symbol_graphs, _symbol_texts, _symbol_bytes)
    found = islice(chain.from_iterable(make() for make in makers), 0, None, step)
    return {it: json.dumps(made).encode() if isinstance(made, dict) else _made(made) for it, made in found}


def _made(content: bytes | Callable[[], bytes]) -> bytes:
    return content if isinstance(content, bytes) else content()


# What takes long to make is made when it is needed.
Models = Iterator[tuple[str, ModelProto | bytes | Callable[[], bytes]]]
Documents = Iterator[tuple[str, Document | bytes | Callable[[], bytes]]]


def adding(weight: TensorProto) -> ModelProto:
    return model([make_node("Add", ["x", "w"], ["y"])], {"x": (1, 1)}, ["y"], [weight])


def _raw(dims: Sequence[int], kind: str = "FLOAT", held: bytes = bytes(12)) -> TensorProto:
    return TensorProto(name="w", data_type=TensorProto.DataType.Value(kind), dims=dims, raw_data=held)


def _sizes() -> Models:
    """Weights, inputs and constants of impossible sizes."""
    for size in SIZES:
        yield f"a weight of {size}", adding(_raw((size,)))
        yield f"a matrix of {size} rows", adding(_raw((size, size)))
        yield f"a weight of {size} without bytes", adding(TensorProto(name="w", data_type=1, dims=(size,)))
        yield f"an input of {size}", model([make_node("Add", ["x", "x"], ["y"])], {"x": (size,)}, ["y"])
        constant = make_node("Constant", [], ["w"], value=_raw((size,)))
        yield f"a constant of {size}", model([constant, make_node("Add", ["x", "w"], ["y"])], {"x": (1,)}, ["y"])
    for axes in (33, 5_000):
        yield f"a weight of {axes} axes", adding(_raw((1,) * axes, held=bytes(4)))
        yield f"an input of {axes} axes", model([make_node("Relu", ["x"], ["y"])], {"x": (1,) * axes}, ["y"])


def _claims() -> Models:
    """Weights with fewer bytes or numbers than declared."""
    for kind in TYPES:
        if kind != "STRING":
            yield f"{kind}, one raw byte short", adding(_raw((4, 4), kind, bytes(7)))
        yield f"{kind}, no number", adding(_raw((4,), kind, b""))
    yield "three floats of four", adding(TensorProto(name="w", data_type=1, dims=(4,), float_data=(1, 2, 3)))
    yield "an unknown type", adding(TensorProto(name="w", data_type=99, dims=(10**12,)))
    inner = with_everything()
    inner.graph.node[-1].attribute[0].g.initializer[0].dims[0] = 10**12
    yield "a weight inside a node", inner
    # Almost all zeros.
    value = make_sparse_tensor(make_tensor("", 1, (1,), (1.0,)), make_tensor("", 7, (1,), (10**12 - 1,)), (10**12,))
    sparse = make_node("Constant", [], ["w"], sparse_value=value)
    yield "a sparse constant", model([sparse, make_node("Add", ["x", "w"], ["y"])], {"x": (1,)}, ["y"])


def _values() -> Models:
    """Hostile shapes, counts and axes among the values that set shapes."""
    for size in SIZES:
        sizes = integers("s", (size,))
        filled = [make_node("ConstantOfShape", ["s"], ["c"]), make_node("Add", ["x", "c"], ["y"])]
        yield f"a filled array of {size}", model(filled, {"x": (1,)}, ["y"], [sizes])
        counted = [make_node("Range", ["z", "n", "o"], ["c"]), make_node("Cast", ["c"], ["y"], to=1)]
        numbers = [make_tensor(name, 7, (), (value,)) for name, value in (("z", 0), ("n", size), ("o", 1))]
        yield f"a range of {size}", model([*counted, make_node("Add", ["y", "x"], ["r"])], {"x": (1,)}, ["r"], numbers)
        for op in ("Expand", "Tile", "Reshape"):
            nodes = [make_node(op, ["x", "s"], ["c"]), make_node("Add", ["c", "c"], ["y"])]
            yield f"{op} to {size}", model(nodes, {"x": (1,)}, ["y"], [sizes])
        for kind in ("kernel_shape", "strides", "pads", "dilations"):
            usual: dict[str, Any] = {} if kind == "kernel_shape" else {"kernel_shape": [2, 2]}
            pool = make_node("MaxPool", ["x"], ["y"], **usual)
            pool.attribute.add(name=kind, type=7, ints=(size,) * (4 if kind == "pads" else 2))
            if kind != "kernel_shape" or size > 0:
                yield f"a pooling with {kind} {size}", model([pool], {"x": (1, 1, 8, 8)}, ["y"])
    still = make_node("MaxPool", ["x"], ["y"], kernel_shape=[2, 2], strides=[0, 0])
    yield "pools of no stride", model([still], {"x": (1, 1, 8, 8)}, ["y"])
    yield "blocks of nothing", model([make_node("DepthToSpace", ["x"], ["y"], blocksize=0)], {"x": (1, 4, 2, 2)}, ["y"])
    many = [make_node("Neg", [f"n{number}"], [f"n{number + 1}"]) for number in range(2_000)]
    fill = make_node("ConstantOfShape", ["s"], ["n0"], value=make_tensor("", 7, (1,), (3,)))
    last = [make_node("Cast", ["n2000"], ["f"], to=1), make_node("Add", ["x", "f"], ["y"])]
    yield "many long constants", model([fill, *many, *last], {"x": (1,)}, ["y"], [integers("s", (2**16,))])
    sums = make_node("Einsum", ["v", "v", "v"], ["e"], equation="i,j,k->")
    vector = [integers("v", range(2**16))]
    rest = [make_node("Cast", ["e"], ["f"], to=1), make_node("Add", ["x", "f"], ["y"])]
    yield "a sum over a cube", model([sums, *rest], {"x": (1,)}, ["y"], vector)
    gathers = [make_node("Gather", ["x", "v"], [f"g{number}"]) for number in range(1_000)]
    total = make_node("Sum", [f"g{number}" for number in range(1_000)], ["y"])
    yield "many long indices", model([*gathers, total], {"x": (2**16,)}, ["y"], vector)


def _operators() -> Models:
    """ONNX's own operators with invalid attributes and inputs."""
    split = make_node("Split", ["x"], ["y"], num_outputs=10**12)
    yield "a split into 10^12", model([split], {"x": (10**12,)}, ["y"], opset=18)
    for equation in ("1", "\0", "...,i", "ii->" + "i" * 1_000):
        node = make_node("Einsum", ["x"], ["y"], equation=equation)
        yield f"the equation {equation[:8]!r}", model([node], {"x": ()}, ["y"])
    gather = make_node("GatherElements", ["i", "i"], ["y"])
    yield "elements at 10^12", model([gather], {"x": (1,)}, ["y"], [integers("i", (10**12,))])
    known = sorted({it.name: it for it in defs.get_all_schemas() if not it.domain}.items())
    for seed in range(OPERATORS):
        chance = random.Random(seed)
        name, schema = chance.choice(known)
        yield f"{name} of chance {seed}", _random_operator(schema, chance)


def _random_operator(schema: defs.OpSchema, chance: random.Random) -> ModelProto:
    sizes = (0, 1, 2, 3, *SIZES)
    count = chance.randint(schema.min_input, max(schema.min_input, min(schema.max_input, 5)))
    read = [chance.choice(["x", "w", "i", "s"]) for _ in range(count)]
    node = make_node(schema.name, read, [f"y{place}" for place in range(max(1, min(schema.min_output, 3)))])
    texts = (b"SAME_UPPER", b"", b"nearest", b"i,j->", b"\xff")
    for name, declared in sorted(schema.attributes.items()):
        # By name: the numbers differ between versions of onnx.
        kind = AttributeProto.AttributeType.Value(str(declared.type).rpartition(".")[-1])
        value: dict[int, dict[str, Any]] = {
            AttributeProto.INT: {"i": chance.choice(sizes)},
            AttributeProto.INTS: {"ints": [chance.choice(sizes) for _ in range(chance.choice([1, 2, 4]))]},
            AttributeProto.FLOAT: {"f": chance.choice([0, -1, 1e38])},
            AttributeProto.STRING: {"s": chance.choice(texts)},
            AttributeProto.TENSOR: {"t": integers("", (chance.choice(sizes),))},
        }
        if kind in value and (declared.required or chance.random() < 0.6):
            node.attribute.add(name=name, type=kind, **value[kind])
    weights = [
        floats("w", (4, 4, 3, 3)),
        integers("i", [chance.choice(sizes) for _ in range(chance.choice([1, 2, 4]))]),
    ]
    scalar = make_tensor("s", TensorProto.INT64, (), (chance.choice(sizes),))
    return model([node], {"x": (1, 4, 8, 8)}, ["y0"], [*weights, scalar], opset=chance.choice([9, 13, 18, 21]))


def _cycles() -> Models:
    for length in (1, 2, 3, 1_000):
        nodes = [make_node("Add", ["x", f"n{(number + 1) % length}"], [f"n{number}"]) for number in range(length)]
        yield f"a cycle of {length}", model(nodes, {"x": (1,)}, ["n0"])
    for length in (1, 3):
        yield f"{length} functions that call each other", calling(length)


def calling(count: int) -> ModelProto:
    """Return a model whose functions each call the next, and the last one the first."""
    return _of_functions([f"b = d.f{(number + 1) % count} (a)" for number in range(count)])


def billion_nodes() -> ModelProto:
    """Return a model whose functions each call the next one twice."""
    twice = [f"m = d.f{number} (a)  b = d.f{number} (m)" for number in range(1, 31)]
    return _of_functions([*twice, "b = Relu (a)"])


def _of_functions(bodies: Sequence[str]) -> ModelProto:
    versions = 'opset_import: ["": 13, "d": 1]'
    functions = [f'<domain: "d", {versions}> f{it} (a) => (b) {{ {body} }}' for it, body in enumerate(bodies)]
    return parse_model(
        "\n".join([f"<ir_version: 8, {versions}> test (float[1] x) => (y) {{ y = d.f0 (x) }}", *functions])
    )


def _depths() -> Models:
    for depth in (8, 9, 16, 24, 28):
        yield f"graphs {depth} deep", nested(depth)
    yield "functions that stand for a billion nodes", billion_nodes()
    chain = [make_node("Relu", [f"n{number}" if number else "x"], [f"n{number + 1}"]) for number in range(3_000)]
    yield "a chain of 3,000", model(chain, {"x": (1,)}, ["n3000"])
    head = model([make_node("Relu", ["x"], ["y"])], {"x": (1,)}, ["y"]).SerializeToString()
    yield "a million empty nodes", head + b"\x3a" + _varint(2_000_000) + b"\x0a\x00" * 1_000_000
    yield "three million empty nodes", head + b"\x3a" + _varint(6_000_000) + b"\x0a\x00" * 3_000_000
    yield "ten million packed numbers", head + b"\x3a" + _packed(20_000_000)


def nested(depth: int) -> ModelProto:
    """Return a model of nested `If`s."""
    text = "r0 = Relu (x)"
    for level in range(depth):
        other = f"else_branch = e () => (float[] e{level}) {{ e{level} = Relu (x) }}"
        text = f"r{level + 1} = If <{other}, then_branch = g{level} () => (float[] r{level}) {{ {text} }}> (c)"
    return written(f"test (float[1] x, bool c) => (r{depth}) {{ {text} }}")


def _branches() -> Models:
    """Yield `If`s whose condition is known, so that their branches are read in their place."""
    for depth in (7, 8, 20):
        yield f"chosen branches {depth} deep", _chosen(nested(depth))
    yield "5,000 choices in a row", _choices(5_000)
    unbalanced = _chosen(nested(2))
    unbalanced.graph.node[0].output.append("more")
    yield "a choice of more outputs than its branches have", unbalanced
    hidden = _chosen(nested(2))
    hidden.graph.node[0].attribute[0].g.node[0].input[0] = "r0"
    yield "a condition from inside of the branch", hidden
    own = _chosen(nested(1))
    own.graph.node[0].attribute[0].g.node[0].input[0] = own.graph.node[0].output[0]
    yield "a branch that reads the result of its choice", own
    for op in ("Loop", "Scan"):
        looped = nested(3)
        looped.graph.node[0].op_type = op
        yield f"a {op} that is an If", looped
    for count in (-1, 2**31, 2**62):
        yield f"a loop of {count} turns", _loop(count)


def _chosen(made: ModelProto) -> ModelProto:
    """Return the model with a constant for its condition."""
    del made.graph.input[1:]
    made.graph.initializer.append(make_tensor("c", TensorProto.BOOL, (), (True,)))
    return made


def _choices(count: int) -> ModelProto:
    """Return a chain of `If`s whose branches use the same names."""
    inside = make_graph([make_node("Relu", ["x"], ["r"], name="e")], "g", [], [make_tensor_value_info("r", 1, None)])
    nodes = [
        make_node("If", ["c"], [f"y{it}"], name="i", then_branch=inside, else_branch=inside) for it in range(count)
    ]
    return _chosen(model([*nodes, make_node("Sum", [f"y{it}" for it in range(count)], ["y"])], {"x": (1,)}, ["y"]))


def _loop(count: int) -> ModelProto:
    body = "body (int64 i, bool on) => (bool go, float[] row) { go = Identity (on)  row = Relu (x) }"
    return written(f"test (float[1] x) => (y) <int64 turns = {{{count}}}> {{ y = Loop <body = {body}> (turns, , ) }}")


def _packed(count: int) -> bytes:
    numbers = b"\x3a" + _varint(count) + bytes(count)
    weight = b"\x2a" + _varint(len(numbers)) + numbers
    return _varint(len(weight)) + weight


def _varint(value: int) -> bytes:
    groups = []
    while value > 0x7F:
        groups.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*groups, value])


def _texts_of(message: Message, path: str = "") -> Iterator[tuple[str, Message, str, int | None]]:
    """Return each text of a message, with the message and field that hold it and its place in a list."""
    for field, value in message.ListFields():
        items = value if field.is_repeated else [value]
        for place, item in enumerate(items):
            here = f"{path} {field.name}{place if field.is_repeated else ''}"
            if isinstance(item, Message):
                yield from _texts_of(item, here)
            elif isinstance(item, str) or (isinstance(item, bytes) and field.name in ("s", "strings")):
                yield here.strip(), message, field.name, place if field.is_repeated else None


def _with_all_texts() -> ModelProto:
    made = small()
    made.producer_name, made.domain, made.doc_string = "producer", "domain", "about"
    made.graph.doc_string = "about"
    made.metadata_props.add(key="key", value="value")
    made.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "batch"
    made.graph.node[1].doc_string = "about"
    made.graph.node[0].attribute.add(name="auto_pad", type=3, s=b"NOTSET")
    made.graph.node.append(make_node("Magic", ["y"], ["z"], name="trick", domain="some.where", words=["a", "b"]))
    made.opset_import.append(make_opsetid("some.where", 1))
    made.graph.output[0].name = "z"
    return made


def _changed(made: ModelProto, wanted: str, text: str, *, everywhere: bool = False) -> ModelProto:
    """Return the model with one text replaced, or each that is equal to it, so that it stays a model."""
    changed = copy.deepcopy(made)
    found = {
        path: (message, field, place, getattr(message, field) if place is None else getattr(message, field)[place])
        for path, message, field, place in _texts_of(changed)
    }
    for path, (message, field, place, old) in found.items():
        if path == wanted or (everywhere and old == found[wanted][3]):
            new: Any = text.encode() if isinstance(old, bytes) else text
            if place is None:
                setattr(message, field, new)
            else:
                getattr(message, field)[place] = new
    return changed


def _escapes() -> Models:
    made = _with_all_texts()
    for path, *_ in _texts_of(made):
        yield f"escapes in {path}", _changed(made, path, ESCAPES)
        yield f"escapes wherever it says {path}", _changed(made, path, ESCAPES, everywhere=True)


def _long_names() -> Models:
    made = _with_all_texts()
    for path in ("graph node0 name", "graph node0 op_type", "graph node0 output0", "graph initializer0 name"):
        yield f"a long {path}", _changed(made, path, "n" * LONG, everywhere=True)
        yield f"a long {path} of four bytes each", _changed(made, path, "\U0001f600" * LONG, everywhere=True)
    yield "a long doc_string", _changed(made, "doc_string", "n" * LONG)


def _elsewhere() -> Models:
    for location in ("../w", "/etc/passwd", "", ".", "nothing", "a\0b", "n" * 5_000, ESCAPES, "/dev/zero"):
        yield f"a weight kept in {location[:12]!r}".replace("/", "|"), adding(kept_in(location, floats("w", (3,))))
    for place in (-1, 2**62, 10**30):
        yield f"a weight kept at {place}", adding(kept_in("here.onnx", floats("w", (3,)), offset=place, length=12))


def _bytes() -> Models:
    whole = with_everything().SerializeToString()
    yield "nothing", b""
    yield "zeros", bytes(1_000)
    yield "text", b"{}" * 500
    yield "escapes", ESCAPES.encode() * 50
    yield "gzip of zeros", lambda: gzip.compress(bytes(70 * 2**20), 1)
    yield "half a gzip", gzip.compress(whole)[:-20]
    yield "groups without end", b"\x0b" * 10_000
    yield "a number without end", b"\xff" * 10_000
    yield "a length past the end", b"\x3a\xff\xff\xff\xff\x07"
    for seed in range(MUTATED):
        yield f"mutated {seed}", mutated(whole, seed)


def mutated(content: bytes, seed: int) -> bytes:
    """Return the content with some bytes replaced, removed or doubled."""
    changed, chance = bytearray(content), random.Random(seed)
    for _ in range(chance.randrange(1, 8)):
        place = chance.randrange(len(changed))
        kind = chance.randrange(3)
        if kind == 0:
            changed[place] = chance.randrange(256)
        elif kind == 1:
            del changed[place : place + chance.randrange(1, 40)]
        else:
            changed[place:place] = changed[place : place + chance.randrange(1, 40)]
    return bytes(changed)


def _symbol_numbers() -> Documents:
    for size in (*SIZES, 10**30):
        for key in ("kernel", "stride", "pad", "num_filter"):
            nodes = _network()
            nodes[3] = nodes[3] | {
                "attrs": nodes[3]["attrs"] | {key: f"({size}, {size})" if key[0] in "ksp" else str(size)}
            }
            yield f"a convolution with {key} {size}", document(nodes)
        yield f"an input of {size}", document([variable("data", __shape__=f"(1, {size})"), node("relu", "r", 0)])
        zeros = [node("_zeros", "z", shape=f"({size}, {size})"), node("relu", "r", 0)]
        yield f"an array of {size}", document(zeros)
        yield f"a head at {size}", document(_network(), (size, 0))
        yield f"the head's output {size}", document(_network(), (5, size))
        repeated = [variable("data"), node("relu", "r", 0, __layer__="a", __times__=str(size))]
        yield f"a layer {size} times", document(repeated)
    yield "an input of 5,000 axes", document([variable("data", __shape__=f"({'1, ' * 5_000})"), node("relu", "r", 0)])
    yield "a number of a million digits", b'{"nodes": [' + b"9" * 1_000_000 + b"]}"


def _symbol_graphs() -> Documents:
    for length in (1, 2, 3, 1_000):
        nodes = [node("relu", f"r{number}", (number + 1) % length) for number in range(length)]
        yield f"a cycle of {length}", document(nodes)
    for depth in (8, 9, 100):
        inner = document([variable("x"), node("relu", "r", 0)])
        for _ in range(depth):
            inner = document([variable("x", __shape__="(1, 8)"), node("_foreach", "loop", 0) | {"subgraphs": [inner]}])
        yield f"graphs {depth} deep", inner
    wide = document([variable("x"), *(node("relu", f'"{number}', number) for number in range(20_000))])
    for _ in range(8):
        wide = document([variable("x", __shape__="(1, 8)"), node("_foreach", "loop", 0) | {"subgraphs": [wide]}])
    yield "a wide graph 8 deep", wide
    for depth in (500, 100_000):
        yield f"lists {depth} deep", b'{"nodes": ' + b"[" * depth + b"]" * depth + b"}"
    yield (
        "a chain of 5,000",
        document([variable("x"), *(node("relu", f"r{it}", it) for it in range(5_000))]),
    )
    yield "five million lists", b'{"nodes": [' + b"[]," * 5_000_000 + b"[]]}"
    yield "one node with 100,000 inputs", document([variable("x"), node("Concat", "c", *([0] * 100_000))])


def _symbol_texts() -> Documents:
    made = document(_with_everything())
    for path in list(_places(made)):
        yield f"escapes in {'.'.join(map(str, path))}", _replaced(made, path, ESCAPES)
    for path in (("nodes", 0, "name"), ("nodes", 3, "op"), ("nodes", 3, "attrs", "kernel")):
        yield f"a long {path[-1]}", _replaced(made, path, "n" * LONG)
        yield f"a long {path[-1]} of four bytes each", _replaced(made, path, "\U0001f600" * LONG)
    keyed = copy.deepcopy(made)
    keyed["nodes"][3]["attrs"][ESCAPES] = ESCAPES
    yield "escapes in a key", keyed
    yield "half a character in a name", _replaced(made, ("nodes", 3, "name"), "\ud800")


def _network() -> list[Any]:
    return [variable("data", __shape__="(1, 3, 16, 16)"), *small_network()[1:]]


def _with_everything() -> list[Any]:
    nodes = _network()
    body = document([variable("x"), node("relu", "inner", 0)])
    nodes[9] = nodes[9] | {"attrs": nodes[9]["attrs"] | {"__layer__": "block", "__kind__": "elementwise"}}
    loop = node("_foreach", "loop", 17, in_data_locs="(0,)") | {"subgraphs": [body]}
    return [*nodes, loop, node("Magic", "trick", 18)]


def _places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Return the places of texts and numbers in a document."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _places(inner, (*path, key))
    elif isinstance(value, list):
        for place, inner in enumerate(value):
            yield from _places(inner, (*path, place))
    elif isinstance(value, str) or path[-1] == 0:
        yield path


def _replaced(made: Document, path: Sequence[Any], text: str) -> Document:
    changed = copy.deepcopy(made)
    holder: Any = changed
    for step in path[:-1]:
        holder = holder[step]
    holder[path[-1]] = text
    return changed


def _million_texts() -> bytes:
    texts = b",".join(b'"k%06d":"v%06d"' % (number, number) for number in range(990_000))
    return b'{"nodes": [{"op": "null", "attrs": {' + texts + b'}}], "heads": [[0, 0]]}'


def _symbol_bytes() -> Documents:
    whole = content(_with_everything())
    yield "nothing", b""
    yield "zeros", bytes(1_000)
    yield "escapes", ESCAPES.encode() * 50
    yield "a list", b"[]"
    yield "half", whole[: len(whole) // 2]
    yield "gzip of blanks", lambda: gzip.compress(b" " * (70 * 2**20), 1)
    yield "half a gzip", gzip.compress(whole)[:-20]
    yield "wide characters", b'{"nodes": ["' + "\U0001f600".encode() + b"n" * (31 * 2**20) + b'"]}'
    yield "a million texts", _million_texts
    nodes = b",".join([b'{"op":"null"}'] * 490_000)
    yield "half a million nodes", b'{"nodes": [' + nodes + b'], "heads": [[0, 0]]}'
    for seed in range(MUTATED):
        yield f"mutated {seed}", mutated(whole, seed)


_ONNX = (_sizes, _claims, _values, _operators, _cycles, _depths, _branches, _escapes, _long_names, _elsewhere, _bytes)
