"""MXNet symbols from and to symbol files."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from dlbricks_tui.runtime.inside.framework import first_meaningful_line, operators
from dlbricks_tui.runtime.inside.refusal import RefusalError
from dlbricks_tui.runtime.inside.symbol_file import SymbolFile
from dlbricks_tui.runtime.protocol import Reason

OUT_OF_MEMORY = "Failed to allocate"


def load(mxnet: Any, file: SymbolFile, left_out: Collection[int] = ()) -> Any:
    """Return the file as a symbol, its nodes under their aliases."""
    return ask(mxnet, file, lambda: mxnet.symbol.load_json(file.aliased(left_out)))


def refuse_unknown(mxnet: Any, file: SymbolFile) -> None:
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


def ask(mxnet: Any, file: SymbolFile, question: Callable[[], Any], reason: Reason = Reason.INCONSISTENT) -> Any:
    """Call a function of MXNet; turn its errors into refusals that use the names of the file."""
    try:
        return question()
    except _errors(mxnet) as error:
        message = file.restored(first_meaningful_line(error))
        node = file.node_in(str(error))
        if node is not None and file.names[node] not in message:
            message = f"{file.names[node]}: {message}"
        raise RefusalError(Reason.TOO_LARGE if OUT_OF_MEMORY in message else reason, message, node) from error


def _errors(mxnet: Any) -> tuple[type[Exception], ...]:
    """Return the classes of MXNet's errors; since 1.6 they include Python's own, such as IndexError."""
    return (mxnet.base.MXNetError, *getattr(mxnet.base, "error_types", {}).values())
