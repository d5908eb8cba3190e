"""MXNet's operators under their neutral names.

One that only MXNet has keeps its own name behind `mxnet.`. Two that compute the same by different kernels (`relu` and
`Activation`, `broadcast_add` and `elemwise_add`) stay two: their latencies differ.
"""

from collections.abc import Mapping
from functools import lru_cache

from dlbricks_tui.models.mxnet.operators import Schema, parameters, schema
from dlbricks_tui.models.mxnet.translations import TRANSLATIONS
from dlbricks_tui.models.neutral import SHARED_OPS, Neutral, Site, from_the_front, without_defaults

MXNET_PREFIX = "mxnet."

# What the types of the inputs say already, and what changes nothing that a CPU computes at inference.
IGNORED = frozenset(
    {"no_bias", "num_args", "num_filter", "num_hidden", "input_dim"}
    | {"ctx", "workspace", "cudnn_off", "cudnn_tune", "sparse_grad"}
    | {"momentum", "fix_gamma", "use_global_stats"}
    | {"grad_scale", "normalization", "out_grad", "smooth_alpha", "ignore_label", "use_ignore", "valid_thresh"}
)
# Under these names other operators have parameters that do count.
IGNORED_OF_OP: Mapping[str, frozenset[str]] = {
    # How the replicas of one layer find each other.
    "_contrib_SyncBatchNorm": frozenset({"key", "ndev"}),
}

_AXES = frozenset({"axis", "axis1", "axis2", "axes", "dim", "dim1", "dim2"})
# Their axis is one of the result, which has one more.
_ADD_AN_AXIS = frozenset({"expand_dims", "stack", "_npi_stack"})


def neutral_operator(op: str, attributes: Mapping[str, str], site: Site) -> Neutral:
    """The neutral form of an MXNet operator; `attributes` are its parameters as a file spells them."""
    return _neutral_operator(op, tuple(attributes.items()), site)


# Models repeat themselves: most operators have been seen before.
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
    # Whether a scalar was written as an integer decides the type of the result only beside integers.
    return ignored | {"is_int"} if site.computes_with_floats else ignored
