"""MXNet's operators under their neutral names.

An operator that only MXNet has keeps its own name behind `mxnet.`. Operators that compute the same by different kernels
stay apart (`relu` and `Activation`, `broadcast_add` and `elemwise_add`), as their latencies differ.

"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from dlbricks_tui.models.graph import UNKNOWN_TYPE
from dlbricks_tui.models.mxnet.operators import Schema, parameters, schema
from dlbricks_tui.models.mxnet.symbol_file import SymbolFile
from dlbricks_tui.models.mxnet.translations import TRANSLATIONS
from dlbricks_tui.models.neutral import SHARED_OPS, InnerForms, Neutral, Site, from_the_front, without_defaults

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
