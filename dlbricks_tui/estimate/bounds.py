"""Upper bounds of the latencies of bricks that cannot be predicted, from bricks with a latency."""

import math
from collections.abc import Iterable
from functools import cached_property

from dlbricks_tui.estimate.prediction.features import Features, features_of

# A brick of as much work takes at most this many times as long: of the same operator, and of another one.
_LIKE, _UNLIKE = math.exp(0.5), math.exp(2.0)


class UpperBounds:
    """Bricks with upper bounds of their latencies."""

    def __init__(self, bricks: Iterable[tuple[str, float]]) -> None:
        self._high_ms = {canonical: high_ms for canonical, high_ms in bricks if high_ms}

    def most_ms(self, canonical: str) -> float:
        """Return the bound of a brick: what the nearest one takes, in proportion to their work, several times."""
        features = features_of(canonical, "") if self._known else None
        if features is None:
            return max(self._high_ms.values(), default=0.0)
        nearest, high_ms = min(self._known, key=lambda it: _distance(features, it[0]))
        more = max(one - other for one, other in zip(_work(features), _work(nearest), strict=True))
        return high_ms * math.exp(more) * (_LIKE if features.operator == nearest.operator else _UNLIKE)

    @cached_property
    def _known(self) -> list[tuple[Features, float]]:
        found = ((features_of(canonical, ""), high_ms) for canonical, high_ms in self._high_ms.items())
        return [(features, high_ms) for features, high_ms in found if features is not None]


def _distance(one: Features, other: Features) -> float:
    work = sum(abs(mine - yours) for mine, yours in zip(_work(one), _work(other), strict=True))
    return work + 2.0 * (one.operator != other.operator)


def _work(features: Features) -> tuple[float, float]:
    """Return the logarithms of the arithmetic and of all bytes that are read and written."""
    arithmetic, *moved = features.sizes[:4]
    return arithmetic, math.log(math.fsum(map(math.exp, moved)))
