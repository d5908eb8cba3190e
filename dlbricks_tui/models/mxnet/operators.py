"""MXNet 1.9.1's declarations of its operators, from a table, so that reading a model needs no MXNet."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path

from dlbricks_tui.models.graph import ParamValue
from dlbricks_tui.models.literals import LiteralError, guess_value, parse_value

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
