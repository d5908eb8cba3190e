"""Prints what MXNet knows of its operators: aliases, inputs, parameters with types and defaults.

Run where MXNet is installed: python -m dlbricks_tui.runtime.inside.op_table > dlbricks_tui/models/mxnet_ops.json
The table is committed, so that reading a model needs no MXNet.
"""

import ctypes
import json
import re
import sys

from dlbricks_tui.runtime.inside.framework import load_mxnet

INPUT_TYPES = ("NDArray-or-Symbol", "NDArray-or-Symbol[]", "Symbol", "Symbol or Symbol[]")
DEFAULT = re.compile(r"optional, ?default=(.*)$", re.DOTALL)


def operator_table():
    """Operators by name, each with its aliases, inputs and parameters."""
    mxnet = load_mxnet()
    table = {}
    for alias in sorted(mxnet.operator.get_all_registered_operators()):
        if "backward" in alias:
            continue
        name, arguments = _describe(mxnet, alias)
        entry = table.setdefault(name, {"inputs": [], "params": {}})
        if alias != name:
            entry.setdefault("aliases", []).append(alias)
        entry["inputs"] = [key for key, kind in arguments if kind in INPUT_TYPES]
        entry["params"] = {key: _parameter(kind) for key, kind in arguments if kind not in INPUT_TYPES}
    return table


def _describe(mxnet, alias):
    lib, check = mxnet.base._LIB, mxnet.base.check_call
    handle = ctypes.c_void_p()
    check(lib.NNGetOpHandle(alias.encode(), ctypes.byref(handle)))
    texts = [ctypes.c_char_p() for _ in range(4)]
    name, description, variable_count, return_type = texts
    count = ctypes.c_uint()
    names, kinds, notes = (ctypes.POINTER(ctypes.c_char_p)() for _ in range(3))
    references = [ctypes.byref(it) for it in (name, description, count, names, kinds, notes, variable_count, return_type)]
    check(lib.MXSymbolGetAtomicSymbolInfo(handle, *references))
    return name.value.decode(), [(names[i].decode(), kinds[i].decode()) for i in range(count.value)]


def _parameter(kind):
    """[type, default as text] or [type] where the parameter is required."""
    default = DEFAULT.search(kind)
    declared = kind.split(",")[0] if not kind.startswith("{") else "enum"
    if not default:
        return [_short(declared)]
    return [_short(declared), default.group(1).strip("'")]


def _short(declared):
    for sign, short in (("hape", "tuple"), ("tuple", "tuple"), ("bool", "bool"), ("int", "int"), ("long", "int")):
        if sign in declared:
            return short
    return "float" if "float" in declared or "double" in declared else "text"


if __name__ == "__main__":
    rows = ["{}: {}".format(json.dumps(k), json.dumps(v, sort_keys=True)) for k, v in sorted(operator_table().items())]
    sys.stdout.write("{\n" + ",\n".join(rows) + "\n}\n")
