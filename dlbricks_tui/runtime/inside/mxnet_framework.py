"""The module `mxnet` of this interpreter: import it, load symbols, and shorten its error messages."""

from __future__ import annotations

import ctypes
import importlib
import re
import sys
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

from dlbricks_tui.runtime.inside.backend import RefusalError
from dlbricks_tui.runtime.inside.symbol_file import SymbolNodes
from dlbricks_tui.runtime.protocol import Reason

# MXNet still reads these names, which numpy 1.24 removed.
NUMPY_ALIASES = (("bool", bool), ("int", int), ("float", float), ("complex", complex), ("object", object), ("str", str))

# An error message of MXNet begins with places in its source.
SOURCE_PLACE = re.compile(r"\[\d\d:\d\d:\d\d\] \S+:\d+: ")
NOISE = ("Traceback", "  ", "Stack trace")
OUT_OF_MEMORY = "Failed to allocate"


def load_mxnet() -> Any:
    """Import `mxnet`, after numpy."""
    try:
        numpy = importlib.import_module("numpy")
        for name, builtin in NUMPY_ALIASES:
            # hasattr would make numpy warn of deprecated names.
            if name not in vars(numpy):
                setattr(numpy, name, builtin)
        if sys.version_info < (3, 12):
            # MXNet then imports the `distutils` of Python: setuptools would load all of itself for its own.
            sys.meta_path[:] = [it for it in sys.meta_path if type(it).__module__ != "_distutils_hack"]
        with _left_out("onnx"):
            return importlib.import_module("mxnet")
    except (ImportError, AttributeError, OSError) as error:
        raise RefusalError(Reason.NO_FRAMEWORK, f"MXNet cannot be imported: {error}") from error


def refuse_without(module: str) -> None:
    """Raise RefusalError if a module cannot be imported."""
    try:
        importlib.import_module(module)
    except (ImportError, AttributeError, OSError) as error:
        raise RefusalError(Reason.NO_FRAMEWORK, f"{module} cannot be imported: {error}") from error


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


@contextmanager
def _left_out(module: str) -> Iterator[None]:
    """Let MXNet find that an optional module, which takes time to import, is not installed."""
    if module in sys.modules:
        yield
        return
    sys.modules[module] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        del sys.modules[module]


def load(mxnet: Any, file: SymbolNodes, left_out: Collection[int] = ()) -> Any:
    """Return the file as a symbol, its nodes under their aliases."""
    return ask(mxnet, file, lambda: mxnet.symbol.load_json(file.aliased(left_out)))


def refuse_unknown(mxnet: Any, file: SymbolNodes) -> None:
    """Raise RefusalError if MXNet lacks an operator of the file."""
    unknown = file.unknown_to(operators(mxnet))
    if unknown:
        names = ", ".join(file.names[index] for index in unknown[:3])
        raise RefusalError(Reason.UNKNOWN_OPERATOR, f"MXNet lacks the operators of {names}", unknown[0])


def save(symbol: Any) -> str:
    """Return the symbol as text. Since 1.6 MXNet drops the casts of mixed precision unless told otherwise."""
    try:
        text: str = symbol.tojson(remove_amp_cast=False)
    except TypeError:
        text = symbol.tojson()
    return text


def ask(mxnet: Any, file: SymbolNodes, question: Callable[[], Any], reason: Reason = Reason.INCONSISTENT) -> Any:
    """Call a function of MXNet; turn its errors into refusals that use the names of the file."""
    # Since 1.6 the errors of MXNet include Python's own, such as IndexError.
    errors = (mxnet.base.MXNetError, *getattr(mxnet.base, "error_types", {}).values())
    try:
        return question()
    except errors as error:
        message = file.restored(first_meaningful_line(error))
        node = file.node_in(str(error))
        if node is not None and file.names[node] not in message:
            message = f"{file.names[node]}: {message}"
        raise RefusalError(Reason.TOO_LARGE if OUT_OF_MEMORY in message else reason, message, node) from error
