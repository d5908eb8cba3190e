"""Language models in words: the answer in a line, speeds and memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

# The decimal units of the sizes that people see when they download a model.
_GIGABYTE, _LEAST_GIGABYTES = 1e9, 0.1
_BILLION, _MILLION = 1e9, 1e6
# Fewer are millions, also when they are rounded.
_LEAST_BILLION = 999.5e6
# Longer times are told in the next unit.
_MOST_SECONDS, _MOST_MINUTES = 120.0, 90.0


def rate_text(tokens_per_second: float) -> str:
    """Return tokens per second for a column: `1,240`, `41.3`, `7.1`, `0.43`, `0.012`."""
    digits = 0 if tokens_per_second >= 100 else 1 if tokens_per_second >= 1 else 2 if tokens_per_second >= 0.1 else 3
    return f"{tokens_per_second:,.{digits}f}"


def rate_words(tokens_per_second: float) -> str:
    """Return a speed in words: `7.1 tokens per second`."""
    return f"{rate_text(tokens_per_second)} tokens per second"


def delay_text(delay_ms: float) -> str:
    """Return a time that a user waits: `0.12 ms`, `8.3 ms`, `412 ms`, `4.2 s`, `5.9 min`."""
    if delay_ms < 1000:
        return f"{delay_ms:.{0 if delay_ms >= 10 else 1 if delay_ms >= 1 else 2}f} ms"
    seconds = delay_ms / 1000
    if seconds >= _MOST_SECONDS:
        return f"{seconds / 60:.1f} min" if seconds < _MOST_MINUTES * 60 else f"{seconds / 3600:.1f} h"
    return f"{seconds:.{0 if seconds >= 100 else 1}f} s"


def between(low: float, high: float, text: Callable[[float], str]) -> str:
    """Return an interval, with its unit once: `3.7 to 4.1 s`."""
    ends = text(low), text(high)
    (first, _, unit), other = ends[0].partition(" "), ends[1].partition(" ")[2]
    return f"{first if unit == other else ends[0]} to {ends[1]}"


def memory_text(size_bytes: int) -> str:
    """Return the size of a model or of its memory: `84 MB`, `0.42 GB`, `5.1 GB`, `405 GB`."""
    size = size_bytes / _GIGABYTE
    if size < _LEAST_GIGABYTES:
        return f"{size * 1000:.{0 if size >= 0.001 else 1}f} MB"
    return f"{size:,.{0 if size >= 10 else 1 if size >= 1 else 2}f} GB"


def parameters_text(parameters: int) -> str:
    """Return a number of parameters for a column: `8.03 B`, `135 M`."""
    number, unit = _scaled(parameters)
    return f"{number} {unit[0].upper()}"


def parameters_words(parameters: int, active: int) -> str:
    """Return parameters in words: `8.03 billion parameters`, and in a mixture those that compute for a token."""
    number, unit = _scaled(parameters)
    if active == parameters:
        return f"{number} {unit} parameters"
    return f"{number} {unit} parameters, {' '.join(_scaled(active))} for a token"


def _scaled(parameters: int) -> tuple[str, str]:
    scale, unit = (_BILLION, "billion") if parameters >= _LEAST_BILLION else (_MILLION, "million")
    number = parameters / scale
    return f"{number:.{0 if number >= 100 else 1 if number >= 10 else 2}f}", unit
