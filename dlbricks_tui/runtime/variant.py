"""The variant in which a runtime runs a model: its threads, its batch size and its precision."""

import re
from dataclasses import dataclass
from enum import Enum

# Shapes of all frameworks can hold this batch size.
MOST_IN_A_BATCH = 2**31 - 1

# As the identity of a runtime spells them.
_THREADS = re.compile(r"\bthreads-(\d{1,9})\b")
_PRECISION = re.compile(r"\bprecision-(\w+)")


class Precision(str, Enum):
    """The type of the numbers that a runtime computes with. Quantised models keep their own types."""

    F32 = "f32"
    BF16 = "bf16"


@dataclass(frozen=True, slots=True)
class Variant:
    """The threads, batch size and precision of an estimate. `threads` is None where it is not known."""

    threads: int | None = None
    batch_size: int = 1
    precision: Precision = Precision.F32


USUAL_VARIANT = Variant()


def stated_threads(identity: str) -> int | None:
    """Return the number of threads in the identity of a runtime; None if the framework decides it."""
    found = _THREADS.search(identity)
    return None if found is None else int(found[1])


def stated_precision(identity: str) -> Precision:
    """Return the precision in the identity of a runtime, which leaves out the usual one."""
    found = _PRECISION.search(identity)
    known = {each.value: each for each in Precision}
    return Precision.F32 if found is None else known.get(found[1], Precision.F32)
