"""Operators spelled in one way, whoever wrote the file that they come from: the way would tell who did."""

from collections.abc import Mapping

from dlbricks_tui.models.graph import ParamValue
from dlbricks_tui.models.mxnet.neutral import IGNORED, IGNORED_OF_OP
from dlbricks_tui.models.mxnet.operators import Schema, parameters, schema
from dlbricks_tui.share.errors import CannotTravelError

_NUM_ARGS = "num_args"
# Of what makes no difference to a brick only this decides which inputs there are.
_DECIDES_INPUTS = frozenset({"no_bias", _NUM_ARGS, "num_filter", "num_hidden", "input_dim"})

# They run somebody's code, read files or memory by address, or are what a runtime makes of operators.
_NEVER = frozenset(
    {"Custom", "_CachedOp", "_CachedOpThreadSafe", "_CrossDeviceCopy", "_CustomFunction", "_NDArray", "_Native"}
    | {"_cvimdecode", "_cvimread", "_cvimresize", "_imdecode"}
)
_FUSED_PREFIX = "_sg_"
_ANYTHING = "0"
# What windows do along every axis unless something else is said.
_IMPLIED: Mapping[str, ParamValue] = {"pad": 0, "adj": 0, "stride": 1, "dilate": 1}


def known_operator(op: str) -> Schema:
    """What MXNet declares of an operator that may travel."""
    found = schema(op)
    if found is None:
        raise CannotTravelError(f"holds an operator {op[:40]!r} that MXNet does not have")
    if found.name in _NEVER or found.name.startswith(_FUSED_PREFIX):
        raise CannotTravelError(f"holds an operator {op[:40]!r}, which no suite may hold")
    return found


def spelled(known: Schema, attributes: Mapping[str, str]) -> dict[str, str]:
    """The parameters of an operator that count and are not the default, each in its one spelling."""
    declared = {key: text for key, text in attributes.items() if key in known.types}
    found = parameters(known, declared.items())
    if not found.declared:
        raise CannotTravelError(f"holds an operator {known.name} with a parameter of the wrong type")
    dropped = (IGNORED | IGNORED_OF_OP.get(known.name, frozenset())) - _DECIDES_INPUTS
    written = {key: value for key, value in found.values.items() if value != known.defaults.get(key)}
    if "kernel" in known.types:
        written = _window(written)
    # MXNet demands it of sums, and does not declare it.
    if (count := attributes.get(_NUM_ARGS, "")).isdecimal() and _NUM_ARGS not in known.types:
        written[_NUM_ARGS] = int(count)
    return {
        # What makes no difference has to be said all the same where there is no default.
        key: _ANYTHING if key in dropped else _literal(value)
        for key, value in sorted(written.items())
        if key not in dropped or key not in known.defaults
    }


def _window(written: Mapping[str, ParamValue]) -> dict[str, ParamValue]:
    """What a sliding window does: some files also say what goes without saying."""
    if written.get("global_pool"):
        written = {key: value for key, value in written.items() if key in ("pool_type", "global_pool", "layout")}
    return {
        key: value
        for key, value in written.items()
        if not (isinstance(value, tuple) and set(value) <= {_IMPLIED.get(key)})
        and not (key == "layout" and str(value).startswith("NC"))
        and not (key == "count_include_pad" and (value or not any(_tuple(written.get("pad")))))
    }


def _tuple(value: ParamValue) -> tuple[ParamValue, ...]:
    return value if isinstance(value, tuple) else ()


def _literal(value: ParamValue) -> str:
    if isinstance(value, tuple):
        items = [_literal(item) for item in value]
        return f"({items[0]},)" if len(items) == 1 else f"({', '.join(items)})"
    return value if isinstance(value, str) else repr(value)
