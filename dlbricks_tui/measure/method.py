"""The two ways to time bricks, and the ids under which their results are stored.

`inside` times bricks where they stand in a network, by the runtime's own profiler. `alone` times each brick as a
separate program, as the paper does.
"""

from enum import Enum


class Method(str, Enum):
    """A way to time bricks."""

    INSIDE = "inside"
    ALONE = "alone"

    @property
    def id(self) -> str:
        """The id that results of this method carry: it changes when the method gives other latencies."""
        return f"{self.value}-{_VERSIONS[self]}"


# `tests/measure/test_method.py` fails when code that decides latencies changes, and says what to do.
_VERSIONS = {Method.INSIDE: "05a85ae2", Method.ALONE: "db37f8ca"}
