"""What MXNet 1.9.1 declares of its operators, from a table, so that reading a model needs no MXNet."""

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from dlbricks_tui.models.graph import Params, ParamValue
from dlbricks_tui.models.literals import LiteralError, guess_value, parse_value

# Inputs that hold what a network has learned or carries along; all others are data.
LEARNED_ROLES = frozenset(
    {"weight", "bias", "gamma", "beta", "moving_mean", "moving_var", "parameters", "state", "state_cell"}
    | {"moving_inv_var", "min_data", "max_data", "min_weight", "max_weight", "min_bias", "max_bias"}
    | {"running_mean", "running_var"}
)
LABEL_ROLES = frozenset({"label"})


@dataclass(frozen=True, slots=True)
class Schema:
    """One operator: its name, the names of its inputs, and the types and defaults of its parameters."""

    name: str
    inputs: tuple[str, ...]
    types: dict[str, str]
    defaults: dict[str, ParamValue]

    def role(self, position: int) -> str:
        """What the input at that position is called; operators with many inputs repeat their last."""
        if not self.inputs:
            return "data"
        return self.inputs[min(position, len(self.inputs) - 1)]

    def normalise(self, attributes: dict[str, str]) -> dict[str, ParamValue]:
        """All declared parameters with their values, defaults included; hidden and unknown ones left out."""
        values = dict(self.defaults)
        for key, text in attributes.items():
            kind = self.types.get(key)
            if kind is None:
                continue
            try:
                values[key] = parse_value(text, kind)
            except LiteralError as error:
                raise LiteralError(f"{key}: {error}") from None
        return values


def schema(op: str) -> Schema | None:
    """The schema of an operator by any of its names, None for one that MXNet does not have."""
    return _table().get(op)


def undeclared_params(attributes: dict[str, str]) -> Params:
    """The parameters of an operator without a schema, by their look."""
    return tuple(sorted((key, guess_value(text)) for key, text in attributes.items() if not key.startswith("__")))


@cache
def _table() -> dict[str, Schema]:
    raw = json.loads(Path(__file__).with_name("mxnet_ops.json").read_text(encoding="utf-8"))
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
