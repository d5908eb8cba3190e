"""Numbers as people read them."""

# Before a sum that leaves layers out, which is no bound of anything.
PARTLY = "…"


def milliseconds(value_ms: float) -> str:
    """A latency with as many digits as mean something: `1,234`, `123.4`, `12.34`, `0.123`."""
    if abs(value_ms) >= 1000:
        return f"{value_ms:,.0f}"
    return f"{value_ms:.{1 if abs(value_ms) >= 100 else 2 if abs(value_ms) >= 10 else 3}f}"


def percent(share: float, digits: int = 0) -> str:
    """A share of one: `14 %`."""
    return f"{100 * share:.{digits}f} %"


def part_of(some: int, of: int) -> str:
    """A part of a whole: `85 %`. It is only `100 %` if nothing lacks, and only `0 %` if there is nothing."""
    if some in (0, of) or not of:
        return percent(some / of if of else 1.0)
    return percent(min(max(some / of, 0.01), 0.99))


def signed_percent(share: float) -> str:
    """A deviation: `+3.1 %`."""
    return f"{100 * share:+.1f} %"


def counted(number: int, what: str) -> str:
    """So many of something: `1 layer`, `2,417 layers`."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def duration(seconds: float) -> str:
    """A time as a person says it: `40 s`, `12 min`, `1.5 h`."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
