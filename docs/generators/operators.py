"""The page of the neutral operators and the kinds of layers, from the tables that translate operators."""

from collections.abc import Iterable, Iterator

from dlbricks_tui.models.graph import ParamValue, TensorType
from dlbricks_tui.models.kinds import KIND_OF_OP, Kind
from dlbricks_tui.models.mxnet_operators import IGNORED, IGNORED_OF_OP, TRANSLATIONS, neutral_operator
from dlbricks_tui.models.neutral import SHARED_OPS, Site
from dlbricks_tui.models.onnx_operators import ONNX_TRANSLATIONS, OnnxSite, Values
from docs.generators.markdown import MARK, table

HEAD = f"""{MARK}# Operators and kinds

The names of operators in [keys of bricks](../how-it-works/identity.md), and the kinds of layers.

## Neutral operators

An operator that several file formats have has one neutral name and one spelling of its parameters. All others keep the
name of their framework, with a prefix: `mxnet.SoftmaxOutput`, `onnx.Gather`, or `onnx.DOMAIN.NAME` in domains of others.

- Parameters with their default value are left out. A single default stands for each axis: a `stride` of 1 is `[1,1]`.
- `pads` are the pads before all axes, then those after. Only those of `pad` itself include the batch and channel axes.
- Axes count from the front, `shape` is the resulting shape, and numbers have 32 bits.

"""
AFTER_OPERATORS = """
MXNet's operator gets the neutral name only if the neutral operator says all that it does. A softmax with a temperature,
a dropout that is active at inference, a pooling by sums, or a batch norm that also outputs its statistics stays
`mxnet.softmax` and so on. So does an operator with a parameter that MXNet 1.9.1 does not declare.

Operators that compute the same with different kernels keep two names: `relu` is `Activation`, and `mxnet.relu` is the
operator `relu`; `add` needs equal shapes, `mxnet.broadcast_add` does not.

### Parameters that do not count

The types of the inputs already say them, or they concern training, storage or other devices:
"""
KINDS = """
## Kinds

Lists sort and colour layers by kind. The kind is not part of a key. A composite layer has the kind of its heaviest
operator, unless the file sets another. A `constant` is a stored array, or a shape, that counts as a layer.

"""
SHARED = """
## Operators that MXNet has too

At `written`, these operators of ONNX have the neutral name if the condition holds. With equal parameters and shapes, a
brick then has the same key in both formats.

"""

_ATTRIBUTES = {
    "Activation": ("act_type=relu", "act_type=sigmoid", "act_type=tanh", "act_type=softrelu", "act_type=softsign"),
    "LeakyReLU": ("act_type=leaky", "act_type=elu", "act_type=prelu", "act_type=selu", "act_type=gelu"),
    "Pad": ("pad_width=(0,0,1,1)",),
    "Pooling": (
        "pool_type=max",
        "pool_type=avg",
        "pool_type=max global_pool=True",
        "pool_type=avg global_pool=True",
    ),
    "UpSampling": ("sample_type=nearest",),
}
_EQUAL_SHAPES = "all shapes are equal"
_KNOWN_AXES = "the axes are known"
_CONDITIONS = {
    "Add": _EQUAL_SHAPES,
    "BatchNormalization": "not training, and no further outputs",
    "Clip": "both bounds are known",
    "Concat": "no input is a known value",
    "ConvTranspose": "`auto_pad` is `NOTSET`",
    "Div": _EQUAL_SHAPES,
    "Dropout": "not training",
    "Expand": "the rank does not change",
    "Flatten": "`axis` is 1",
    "Gelu": "not approximated",
    "Gemm": "`transB` is 1, `transA` 0, `alpha` and `beta` 1, and the bias is a vector",
    "MaxPool": "no output of indices",
    "Mul": _EQUAL_SHAPES,
    "Pad": "the widths are known, and given for all axes",
    "ReduceMax": _KNOWN_AXES,
    "ReduceMean": _KNOWN_AXES,
    "ReduceSum": _KNOWN_AXES,
    "Reshape": "the target is known",
    "Resize": "repeats elements (`nearest`, `asymmetric`, `floor`), by the same integer along both axes",
    "Selu": "`alpha` and `gamma` have their defaults",
    "Softmax": "along one axis; before version 13, the last one",
    "Sub": _EQUAL_SHAPES,
    "Sum": _EQUAL_SHAPES,
    "Upsample": "nearest, by the same integer along both axes",
}
_VECTOR, _IMAGE, _LARGE_IMAGE = TensorType((1, 8)), TensorType((1, 8, 4, 4)), TensorType((1, 8, 8, 8))
_REPEATING = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
# Each translation accepts at least one of these uses of an operator.
_USES: tuple[tuple[Values, OnnxSite], ...] = tuple(
    (values, OnnxSite(inputs, outputs, version=13, stored=stored, results=1))
    for values, inputs, outputs, stored in (
        ({}, (_VECTOR,), (_VECTOR,), {}),
        ({"kernel_shape": (1, 1)}, (_IMAGE, TensorType((8, 8, 1, 1))), (_IMAGE,), {}),
        ({"transB": 1}, (_VECTOR, TensorType((8, 8))), (_VECTOR,), {}),
        ({}, (_VECTOR,), (_VECTOR,), {1: 0.0, 2: 1.0}),
        ({}, (_VECTOR,), (_VECTOR,), {1: (1, 8)}),
        ({"scales": (1.0, 1.0, 2.0, 2.0)}, (_IMAGE,), (_LARGE_IMAGE,), {}),
        (_REPEATING, (_IMAGE,), (_LARGE_IMAGE,), {}),
    )
)


def page() -> str:
    """Return the page."""
    mxnet = dict(_spellings())
    operators = ((f"`{op}`", mxnet[op], _parameters(op)) for op in SHARED_OPS)
    kinds = ((f"`{kind.value}`", _operators(kind)) for kind in Kind)
    shared = ((f"`{op}`", f"`{shared_op(op)}`", _CONDITIONS.get(op, "")) for op in sorted(ONNX_TRANSLATIONS))
    return "".join(
        [
            HEAD,
            table(("operator", "in MXNet", "parameters (default)"), operators),
            AFTER_OPERATORS,
            f"{_names(sorted(IGNORED))}.\n",
            *(f"\nOf `{op}` also {_names(sorted(names))}.\n" for op, names in IGNORED_OF_OP.items()),
            KINDS,
            table(("kind", "operators"), kinds),
            SHARED,
            table(("ONNX", "neutral", "condition"), shared),
        ]
    )


def shared_op(op: str) -> str:
    """Return the neutral name of an ONNX operator."""
    translate = ONNX_TRANSLATIONS[op]
    return next(found.op for values, site in _USES if (found := translate(values, site)) is not None)


def _spellings() -> Iterator[tuple[str, str]]:
    """Yield each neutral operator with MXNet's operator and the attributes that choose it."""
    site = Site((_VECTOR,), (_VECTOR,))
    for op in TRANSLATIONS:
        for attributes in _ATTRIBUTES.get(op, ("",)):
            words = attributes.split()
            said = [(name, text) for name, _, text in (word.partition("=") for word in words)]
            neutral = neutral_operator(op, tuple(said), site).op
            yield neutral, " ".join(f"`{it}`" for it in (op, *words))


def _operators(kind: Kind) -> str:
    return _names(op for op, it in KIND_OF_OP.items() if it is kind) or "all that are not listed"


def _parameters(op: str) -> str:
    return ", ".join(f"`{name}`{_default(default)}" for name, default in SHARED_OPS[op].items())


def _default(default: ParamValue) -> str:
    return "" if default is None else f" ({default})"


def _names(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
