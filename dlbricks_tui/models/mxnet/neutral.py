"""MXNet's operators under their neutral names.

An operator that only MXNet has keeps its own name behind `mxnet.`. Operators that compute the same by different kernels
stay apart (`relu` and `Activation`, `broadcast_add` and `elemwise_add`), as their latencies differ.

"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path

from dlbricks_tui.models.graph import UNKNOWN_TYPE, ParamValue
from dlbricks_tui.models.literals import LiteralError, guess_value, parse_value
from dlbricks_tui.models.mxnet.symbol_file import SymbolFile
from dlbricks_tui.models.mxnet.translations import TRANSLATIONS
from dlbricks_tui.models.neutral import SHARED_OPS, InnerForms, Neutral, Site, from_the_front, without_defaults

Values = dict[str, ParamValue]

# Inputs for weights, states or training labels. All other inputs are data.
_BOUND_ONCE = frozenset(
    {"weight", "bias", "gamma", "beta", "moving_mean", "moving_var", "parameters", "state", "state_cell", "label"}
    | {"moving_inv_var", "min_data", "max_data", "min_weight", "max_weight", "min_bias", "max_bias"}
    | {"running_mean", "running_var"}
)


@dataclass(frozen=True, slots=True)
class Schema:
    """One operator: its name, the names of its inputs, and the types and defaults of its parameters."""

    name: str
    inputs: tuple[str, ...]
    types: Mapping[str, str]
    defaults: Values


@dataclass(frozen=True, slots=True)
class Parameters:
    """The parameters of a node. The table declares only those in `declared`."""

    values: Values
    declared: bool


def schema(op: str) -> Schema | None:
    """Return the schema of an operator by any of its names, None for an unknown one."""
    return _table().get(op)


def parameters(known: Schema | None, attributes: Iterable[tuple[str, str]]) -> Parameters:
    """Return all parameters with their values, defaults included.

    A value of another type than the declared one is guessed: MXNet itself will accept or reject it.
    """
    values, declared = (dict(known.defaults), True) if known else ({}, False)
    for key, text in attributes:
        kind = known.types.get(key) if known else None
        try:
            values[key] = parse_value(text, kind) if kind else guess_value(text)
        except LiteralError:
            kind, values[key] = None, guess_value(text)
        declared = declared and kind is not None
    return Parameters(values, declared)


@lru_cache(maxsize=1 << 10)
def bound_once(op: str, inputs: int) -> tuple[bool, ...]:
    """Return for each input of a node whether it takes a weight, a state or a label."""
    known = schema(op)
    if known is None or not known.inputs:
        return (False,) * inputs
    # Operators of many inputs repeat their last one.
    names = known.inputs + known.inputs[-1:] * (inputs - len(known.inputs))
    return tuple(name in _BOUND_ONCE for name in names[:inputs])


@cache
def _table() -> dict[str, Schema]:
    raw = json.loads(Path(__file__).with_name("operators.json").read_text(encoding="utf-8"))
    table: dict[str, Schema] = {}
    for name, entry in raw.items():
        found = Schema(
            name,
            tuple(entry["inputs"]),
            {key: declared[0] for key, declared in entry["params"].items()},
            {key: parse_value(declared[1], declared[0]) for key, declared in entry["params"].items() if declared[1:]},
        )
        for known_as in (name, *entry.get("aliases", ())):
            table[known_as] = found
    return table


MXNET_PREFIX = "mxnet."

# Parameters that follow from the types of the inputs, or make no difference for inference on a CPU.
IGNORED = frozenset(
    {"no_bias", "num_args", "num_filter", "num_hidden", "input_dim"}
    | {"ctx", "workspace", "cudnn_off", "cudnn_tune", "sparse_grad"}
    | {"momentum", "fix_gamma", "use_global_stats"}
    | {"grad_scale", "normalization", "out_grad", "smooth_alpha", "ignore_label", "use_ignore", "valid_thresh"}
)
# Parameters that other operators need under these names.
IGNORED_OF_OP: Mapping[str, frozenset[str]] = {
    # The replicas of one layer find each other by these.
    "_contrib_SyncBatchNorm": frozenset({"key", "ndev"}),
}

_AXES = frozenset({"axis", "axis1", "axis2", "axes", "dim", "dim1", "dim2"})
# Operators whose axis is one of the result, which has one axis more than the input.
_ADD_AN_AXIS = frozenset({"expand_dims", "stack", "_npi_stack"})


def neutral_operator(op: str, attributes: Mapping[str, str], site: Site) -> Neutral:
    """Return the neutral form of an MXNet operator; `attributes` are its parameters as in the file."""
    return _neutral_operator(op, tuple(attributes.items()), site)


# Most operators of a model occur several times.
@lru_cache(maxsize=1 << 15)
def _neutral_operator(op: str, attributes: tuple[tuple[str, str], ...], site: Site) -> Neutral:
    known = schema(op)
    if known is None:
        return Neutral(f"{MXNET_PREFIX}{op}", without_defaults(parameters(known, attributes).values, {}))
    ignored = _ignored(known, site)
    found = parameters(known, [(key, text) for key, text in attributes if key not in ignored])
    if found.declared and (translate := TRANSLATIONS.get(known.name)) is not None:
        translated = translate(found.values, site)
        if translated is not None:
            return Neutral(translated.op, without_defaults(translated.values, SHARED_OPS[translated.op]))
    rank = site.rank + 1 if site.rank is not None and known.name in _ADD_AN_AXIS else site.rank
    values = {key: from_the_front(value, rank) if key in _AXES else value for key, value in found.values.items()}
    return Neutral(f"{MXNET_PREFIX}{known.name}", without_defaults(values, known.defaults))


def _ignored(known: Schema, site: Site) -> frozenset[str]:
    ignored = IGNORED | IGNORED_OF_OP.get(known.name, frozenset())
    # The type of an integer scalar matters only beside integers.
    return ignored | {"is_int"} if site.computes_with_floats else ignored


@dataclass(frozen=True, slots=True)
class NestedGraph:
    """A canonical form without names, and the neutral names of the operators."""

    canonical: str
    ops: tuple[str, ...]


def nested_graph(file: SymbolFile, forms: InnerForms) -> NestedGraph:
    """Return the canonical form of a subgraph. The file has no types for it, and they follow from the operator around
    it.
    """
    form: list[object] = []
    ops: list[str] = []
    for node in file.nodes:
        if node.is_variable:
            form.append("variable")
            continue
        neutral = neutral_operator(node.op, node.params, Site((UNKNOWN_TYPE,) * len(node.inputs), ()))
        inner = [nested_graph(subgraph.file, forms) for subgraph in node.subgraphs]
        form.append([neutral.op, neutral.params, node.inputs, [graph.canonical for graph in inner]])
        ops += [op for graph in inner for op in graph.ops] or [neutral.op]
    form.append(file.heads)
    return NestedGraph(forms.spell(form), tuple(ops))
