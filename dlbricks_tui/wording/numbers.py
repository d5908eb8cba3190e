"""Numbers with their units, ages, lists of names, and sizes and speeds of language models."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, TypeVar

from dlbricks_tui.host_files import cores_within
from dlbricks_tui.printable import printable

if TYPE_CHECKING:
    from dlbricks_tui.estimate.system_estimate import SystemEstimate
    from dlbricks_tui.store.records import Peaks

_Value = TypeVar("_Value")
# Stands before a sum that leaves layers out: such a sum bounds the latency neither from above nor from below.
PARTLY = "part "
# Stands before a latency that is predicted, in full or in part.
PREDICTED = "~"
# In place of a latency: not measured yet, impossible alone, not needed. Before one: its interval is wide.
UNKNOWN, CANNOT, LEFT_OUT, WIDE = "-", "cannot", "unused", "≈"
PREDICTED_LEGEND = f"{PREDICTED} not all measured: the latency of some layers is predicted"

# A picosecond. Smaller latencies are rounding errors.
_LEAST_MS = 1e-9
# Smaller latencies have two digits in columns, down to a nanosecond.
_SMALL_MS, _NANOSECOND_MS = 0.01, 1e-6
# A larger share has no decimals.
_MANY_TIMES = 10.0
_GIBIBYTE = 1 << 30
_LEAST_P = 0.001
# The common ending of names in Table 1, which their numbers make superfluous.
_TRAINED_ON = re.compile(r" Trained on .*")
# The tasks of sample models, by their codes in the manifest.
_TASKS = {
    "IC": "image classification",
    "IP": "image processing",
    "OD": "object detection",
    "RG": "regression",
    "SS": "semantic segmentation",
    "TD": "tabular data",
    "TE": "text embedding",
    "TG": "text generation",
    "TR": "text recognition",
    "VA": "voice activity",
}


def sign_of(*, partial: bool, predicted: bool) -> str:
    """Return what stands before a sum: nothing if each layer in it was measured."""
    return PARTLY if partial else PREDICTED if predicted else ""


def milliseconds(latency_ms: float, *, precise: bool = False) -> str:
    """Return a latency for a column: `1,234`, `123.4`, `12.34`, `0.123`, and `0.0012` for one that is that small.

    A precise one has four significant digits, and no exponent: `1234`, `12.34`, `0.01234`.
    """
    size = abs(latency_ms)
    if precise:
        return "0" if size < _LEAST_MS else f"{latency_ms:.{max(0, 3 - math.floor(math.log10(size)))}f}"
    if size >= 1000:
        return f"{latency_ms:,.0f}"
    digits = 1 if size >= 100 else 2 if size >= 10 else 3
    if _NANOSECOND_MS <= size < _SMALL_MS:
        digits = min(6, 1 - math.floor(math.log10(size)))
    return f"{_rounded(latency_ms, digits):.{digits}f}"


def rough_range(low: float, high: float) -> str:
    """Return a range with two significant digits: `8.1-15`; a single number if both ends look alike."""
    ends = [_two_digits(low), _two_digits(high)]
    return "-".join(dict.fromkeys(ends))


def _two_digits(value: float) -> str:
    if value < _LEAST_MS:
        return "0"
    power = math.floor(math.log10(value))
    rounded = round(value, 1 - power)
    return f"{rounded:,.{max(0, 1 - math.floor(math.log10(rounded)))}f}"


def in_ms(latency_ms: float) -> str:
    """Return a precise latency with its unit: `12.34 ms`."""
    return f"{milliseconds(latency_ms, precise=True)} ms"


def signed_ms(difference_ms: float) -> str:
    """Return a difference of latencies with its sign: `+0.2000 ms`."""
    return f"{'-' if difference_ms < 0 else '+'}{in_ms(abs(difference_ms))}"


def partly(latency_ms: float, *, part: bool, predicted: bool = False) -> str:
    """Return a latency, marked if it is a sum that leaves layers out, and if some of it is predicted."""
    return f"{sign_of(partial=part, predicted=predicted)}{in_ms(latency_ms)}"


def with_interval(latency_ms: float, low_ms: float, high_ms: float, note: str = "") -> str:
    """Return a latency with its interval: `5.800 ms (5.600 to 5.900)`; the note follows inside of the brackets."""
    return f"{in_ms(latency_ms)} ({ends_of(low_ms, high_ms)}{note})"


def ends_of(low_ms: float, high_ms: float) -> str:
    """Return the ends of an interval: `5.600 to 5.900`."""
    return f"{milliseconds(low_ms, precise=True)} to {milliseconds(high_ms, precise=True)}"


def percent(share: float, digits: int = 0) -> str:
    """Return a share as a percentage: `14 %`."""
    return f"{100 * share:.{digits}f} %"


def part_of(some: int, of: int) -> str:
    """Return a part of a whole as a percentage."""
    return percent_of_part(some / of if of else 1.0)


def percent_of_part(share: float) -> str:
    """Return the share of a part as a percentage: `100 %` only for all of a whole, `0 %` only for nothing."""
    return percent(share if share in (0.0, 1.0) else min(max(share, 0.01), 0.99))


def slower_words(share: float) -> str:
    """Return by how much something is slower: `25 % slower`, or `5.3 times slower` from twice on."""
    return f"{percent(share)} slower" if share < 1 else f"{share + 1:.1f} times slower"


def signed_percent(share: float, digits: int = 1) -> str:
    """Return a deviation as a percentage: `+3.1 %`."""
    digits = 0 if abs(share) >= _MANY_TIMES else digits
    return f"{_rounded(100 * share, digits):+,.{digits}f} %"


def p_words(p_value: float | None) -> str:
    """Return a p-value: `0.042`, `<0.001`, and a dash for too few samples."""
    if p_value is None:
        return "-"
    return f"<{_LEAST_P:g}" if p_value < _LEAST_P else f"{p_value:.3f}"


def _rounded(value: float, digits: int) -> float:
    """Return a rounded number; a small negative one as zero without a sign."""
    return round(value, digits) + 0.0


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: `1 layer`, `2,417 layers`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def too_many_threads(threads: Iterable[int | None], cores: int, quota_cores: float | None = None) -> str:
    """Return the warning about more threads than cores, or than a limit of their time; empty if there are none."""
    most = max((number or 0 for number in threads), default=0)
    fitting = cores_within(cores, quota_cores)
    if quota_cores is not None and fitting < min(most, cores):
        limit = f"{quota_cores:g} core{'' if quota_cores == 1 else 's'}"
        return f"{most} threads, and a time limit of {limit} that stops them: --threads {fitting} keeps to it"
    if most <= cores:
        return ""
    return f"{most} threads on {counted(cores, 'core')}: they wait for one another, and latencies vary more"


def duration(seconds: float) -> str:
    """Return a time in the unit that suits it: `40 s`, `12 min`, `1.5 h`."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"


def age(seconds: float) -> str:
    """Return how long ago something was, in one unit: `5 min`, `3 h`, `12 d`, `3 y`."""
    if seconds < 3600:
        return f"{max(0.0, seconds) / 60:.0f} min"
    if seconds < 48 * 3600:
        return f"{seconds / 3600:.0f} h"
    days = seconds / 86400
    return f"{days:.0f} d" if days < 1000 else f"{days / 365.25:.0f} y"


def gibibytes(memory_bytes: int) -> str:
    """Return the size of a memory: `8 GiB`, and a dash where it is unknown."""
    return f"{memory_bytes / _GIBIBYTE:.0f} GiB" if memory_bytes else "-"


def price_per_hour(dollars: float | None) -> str:
    """Return the price of an hour: `$ 0.17/h`, and a dash where it is unknown."""
    return "-" if dollars is None else f"$ {dollars:g}/h"


def speed(billions: float | None) -> str:
    """Return a speed in billions per second for a column: `98.5`, `2,450`, and a dash where it is unknown."""
    return "-" if billions is None else f"{billions:,.0f}" if billions >= 100 else f"{billions:.3g}"


def speeds(peaks: Peaks) -> str:
    """Return peaks as a list: `98.5 GFLOP/s (avx512), 61 GFLOP/s (avx2), 21 GB/s from memory`."""
    arithmetic = [f"{speed(value)} GFLOP/s ({instructions})" for instructions, value in peaks.arithmetic]
    return ", ".join([*arithmetic, *(f"{speed(value)} GB/s from {level}" for level, value in peaks.bandwidth)])


def model_label(name: str, table1_id: str | None, most: int) -> str:
    """Return a short name of a model: its number in Table 1 and its name without the data set, cut to `most`."""
    short = printable(_TRAINED_ON.sub("", name))
    text = short if table1_id is None else f"{table1_id} {short}"
    return text if len(text) <= most else f"{text[: most - 1].rstrip()}…"


def names_of(models: Sequence[str], most: int = 3) -> str:
    """Return the names of the models, the first few of many."""
    more = len(models) - most
    return ", ".join(models[:most]) + (f" and {counted(more, 'other')}" if more > 0 else "")


def capitalised(text: str) -> str:
    """Return the text with a capital first letter, and the rest as it is."""
    return text[:1].upper() + text[1:]


def or_dash(written: Callable[[_Value], str], value: _Value | None) -> str:
    """Return a value as a cell; a dash if there is none."""
    return "-" if value is None else written(value)


_JUST_NOW_SECONDS = 60.0


def now() -> float:
    """Return the time in seconds since 1970."""
    return time.time()


def seconds_since(when: str) -> float:
    """Return the seconds since a moment (ISO 8601)."""
    return now() - datetime.fromisoformat(when).timestamp()


def ago(when: str) -> str:
    """Return how long ago a moment (ISO 8601) was: `3 h ago`; empty for an empty text."""
    if not when:
        return ""
    moment = datetime.fromisoformat(when).timestamp()
    return age_words((moment, moment))


def minute_of(when: str) -> str:
    """Return a stored time by the minute: `2026-11-28 20:46`."""
    return when[:16].replace("T", " ")


def age_words(between: tuple[float, float] | None) -> str:
    """Return how long ago measurements were made: `4 min ago`, `3 h to 12 d ago`, `up to 3 h ago`.

    It is empty if that is not known.
    """
    if between is None:
        return ""
    oldest, newest = (max(0.0, now() - moment) for moment in between)
    if oldest < _JUST_NOW_SECONDS:
        return "just now"
    first, last = age(newest), age(oldest)
    if newest < _JUST_NOW_SECONDS:
        return f"up to {last} ago"
    return f"{last} ago" if first == last else f"{first} to {last} ago"


def measured_ago(found: Iterable[SystemEstimate]) -> str:
    """Return how long ago the measurements in some estimates were made: `measured 3 h to 12 d ago`.

    It is empty if nothing was measured.
    """
    each = [(it.measured_between, None if it.figure is None else it.figure.between) for it in found]
    known = [between for both in each for between in both if between is not None]
    if not known:
        return ""
    between = min(first for first, _ in known), max(last for _, last in known)
    return f"measured {age_words(between)}"


def task_words(task: str | None) -> str:
    """Return a task in words; empty for models without one."""
    return _TASKS.get(task, task) if task else ""


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
