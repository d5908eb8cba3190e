"""The module `mxnet` of this interpreter: import it, describe it, and shorten its error messages."""

from __future__ import annotations

import ctypes
import importlib
import os
import platform
import re
from functools import lru_cache
from typing import Any

from dlbricks_tui.runtime.inside.refusal import RefusalError
from dlbricks_tui.runtime.protocol import Described, Reason

# MXNet still reads these names, which numpy 1.24 removed.
NUMPY_ALIASES = (("bool", bool), ("int", int), ("float", float), ("complex", complex), ("object", object), ("str", str))

# An error message of MXNet begins with places in its source.
SOURCE_PLACE = re.compile(r"\[\d\d:\d\d:\d\d\] \S+:\d+: ")
NOISE = ("Traceback", "  ", "Stack trace")


def load_mxnet() -> Any:
    """Import `mxnet`, after numpy."""
    try:
        _restore_aliases(importlib.import_module("numpy"))
        return importlib.import_module("mxnet")
    except (ImportError, AttributeError, OSError) as error:
        raise RefusalError(Reason.NO_FRAMEWORK, f"MXNet cannot be imported: {error}") from error


def refuse_without(module: str) -> None:
    """Raise RefusalError if a module cannot be imported."""
    try:
        importlib.import_module(module)
    except (ImportError, AttributeError, OSError) as error:
        raise RefusalError(Reason.NO_FRAMEWORK, str(error)) from error


def describe(mxnet: Any) -> Described:
    """Return the versions in this interpreter."""
    return Described(
        python=platform.python_version(),
        framework="mxnet",
        version=mxnet.__version__,
        numpy=importlib.import_module("numpy").__version__,
        features=tuple(sorted(_features())),
        fuses=fuses(mxnet),
    )


def fuses(mxnet: Any) -> bool:
    """Return true if MXNet optimises graphs by default, which began with 1.6."""
    return (
        hasattr(mxnet.symbol.Symbol, "optimize_for")
        and "MKLDNN" in _features()
        and os.environ.get("MXNET_SUBGRAPH_BACKEND", "MKLDNN") == "MKLDNN"
    )


@lru_cache(maxsize=1)
def operators(mxnet: Any) -> frozenset[str]:
    """Return all names of MXNet's operators."""
    count, names = ctypes.c_uint(), ctypes.POINTER(ctypes.c_char_p)()
    mxnet.base.check_call(mxnet.base._LIB.MXListAllOpNames(ctypes.byref(count), ctypes.byref(names)))
    return frozenset(names[i].decode() for i in range(count.value))


def first_meaningful_line(error: Exception) -> str:
    """Return the message of an error without places in MXNet's source."""
    lines = [line for line in str(error).splitlines() if line.strip() and not line.startswith(NOISE)]
    said = SOURCE_PLACE.sub("", lines[0] if lines else type(error).__name__)
    return said[len("MXNetError: ") :] if said.startswith("MXNetError: ") else said


def _restore_aliases(numpy: Any) -> None:
    for name, builtin in NUMPY_ALIASES:
        # hasattr would make numpy warn of deprecated names.
        if name not in vars(numpy):
            setattr(numpy, name, builtin)


def _features() -> frozenset[str]:
    runtime = importlib.import_module("mxnet.runtime")
    return frozenset(feature.name for feature in runtime.Features().values() if feature.enabled)
