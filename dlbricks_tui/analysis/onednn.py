"""The lines that oneDNN prints about the primitives that it executes."""

import re
from dataclasses import dataclass

REORDER = "reorder"
_LAYOUT = re.compile(r"(src|dst)[_:]\S*?blocked:(\w+)")
_STAMP = re.compile(r"\d+(?:\.\d+)?(?:e\+?\d+)?$")
_NS_PER_MS = 1_000_000


@dataclass(frozen=True, slots=True)
class RanPrimitive:
    """A primitive of oneDNN that ran."""

    # Such as `convolution`, `reorder` or `pooling_v2`.
    primitive: str
    implementation: str
    # The layouts of what it reads and writes, as far as they are blocked.
    layouts: tuple[str, ...]
    # The sizes, as oneDNN writes them.
    problem: str
    taken_ms: float
    # The time of the host's clock at its start; None if the line has none.
    host_ns: int | None = None


def ran_primitive(line: str) -> RanPrimitive | None:
    """Return the primitive that a line tells of: `...,[TIME,]...exec,cpu,PRIMITIVE,IMPLEMENTATION,...,PROBLEM,MS`."""
    words = line.split(",")
    if "exec" not in words:
        return None
    place = words.index("exec")
    rest = words[place + 1 :]
    if len(rest) < 4:
        return None
    try:
        taken_ms = float(rest[-1])
    except ValueError:
        return None
    stamps = [word for word in words[1:place] if _STAMP.match(word)]
    # `x64:gemm:jit` and `pooling_v2` have other names in other versions.
    return RanPrimitive(
        rest[1],
        rest[2],
        tuple(layout for _, layout in _LAYOUT.findall(line)),
        rest[-2] if len(rest) > 4 else "",
        taken_ms,
        round(float(stamps[0]) * _NS_PER_MS) if stamps else None,
    )
