"""Print MXNet's table of operators: aliases, inputs, parameters with types and defaults.

Run where MXNet is installed:

    python -m sample_models.builders.mxnet_operators > dlbricks_tui/models/mxnet_operators.json

The table is committed, so that reading a model needs no MXNet.
"""

from __future__ import annotations

import ctypes
import json
import re
import sys
from typing import Any

from dlbricks_tui.runtime.inside.mxnet_framework import load_mxnet, operators

INPUT_TYPES = ("NDArray-or-Symbol", "NDArray-or-Symbol[]", "Symbol", "Symbol or Symbol[]")
DEFAULT = re.compile(r"optional, ?default=(.*)$", re.DOTALL)


def operator_table() -> dict[str, dict[str, Any]]:
    """Return the operators by name, each with its aliases, inputs and parameters."""
    mxnet = load_mxnet()
    table: dict[str, dict[str, Any]] = {}
    for alias in sorted(operators(mxnet)):
        if "backward" in alias:
            continue
        name, arguments = _describe(mxnet, alias)
        entry = table.setdefault(name, {"inputs": [], "params": {}})
        if alias != name:
            entry.setdefault("aliases", []).append(alias)
        entry["inputs"] = [key for key, kind in arguments if kind in INPUT_TYPES]
        entry["params"] = {key: _parameter(kind) for key, kind in arguments if kind not in INPUT_TYPES}
    return table


def _describe(mxnet: Any, alias: str) -> tuple[str, list[tuple[str, str]]]:
    lib, check = mxnet.base._LIB, mxnet.base.check_call
    handle = ctypes.c_void_p()
    check(lib.NNGetOpHandle(alias.encode(), ctypes.byref(handle)))
    name, description, variable_count, return_type = (ctypes.c_char_p() for _ in range(4))
    count = ctypes.c_uint()
    names, kinds, notes = (ctypes.POINTER(ctypes.c_char_p)() for _ in range(3))
    answers = (name, description, count, names, kinds, notes, variable_count, return_type)
    check(lib.MXSymbolGetAtomicSymbolInfo(handle, *map(ctypes.byref, answers)))
    return (name.value or b"").decode(), [(names[i].decode(), kinds[i].decode()) for i in range(count.value)]


def _parameter(kind: str) -> list[str]:
    """Return [type, default as text], or [type] for a required parameter."""
    default = DEFAULT.search(kind)
    declared = kind.split(",")[0] if not kind.startswith("{") else "enum"
    if not default:
        return [_short(declared)]
    return [_short(declared), default.group(1).strip("'")]


def _short(declared: str) -> str:
    for sign, short in (("hape", "tuple"), ("tuple", "tuple"), ("bool", "bool"), ("int", "int"), ("long", "int")):
        if sign in declared:
            return short
    return "float" if "float" in declared or "double" in declared else "text"


if __name__ == "__main__":
    rows = [f"{json.dumps(op)}: {json.dumps(row, sort_keys=True)}" for op, row in sorted(operator_table().items())]
    sys.stdout.write("{\n" + ",\n".join(rows) + "\n}\n")
