"""Putting what depends on each other in order."""

from collections.abc import Collection, Sequence
from heapq import heapify, heappop, heappush


def topological_order(sources: Sequence[Collection[int]]) -> list[int]:
    """Each number after its distinct sources, otherwise ascending; what is in a cycle or behind one is left out."""
    readers: list[list[int]] = [[] for _ in sources]
    for number, found in enumerate(sources):
        for source in found:
            readers[source].append(number)
    waits_for = [len(found) for found in sources]
    ready = [number for number, count in enumerate(waits_for) if not count]
    heapify(ready)
    order: list[int] = []
    while ready:
        number = heappop(ready)
        order.append(number)
        for reader in readers[number]:
            waits_for[reader] -= 1
            if not waits_for[reader]:
                heappush(ready, reader)
    return order
