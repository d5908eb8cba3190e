"""The dominator tree of a layer graph: through which layers every path to a layer leads."""

from collections.abc import Iterable


class DominatorTree:
    """Grows leaf by leaf, in topological order; vertices are 0 to `count` - 1 and the root is vertex `count`.

    Jump pointers find a common dominator in logarithmic time: walking up parent by parent is quadratic where, as in
    an unrolled recurrent network, a late layer reads many early ones.
    """

    def __init__(self, count: int) -> None:
        self.root = count
        self.depth = [0] * (count + 1)
        self._parent = [count] * (count + 1)
        self._jump = [count] * (count + 1)

    def add(self, vertex: int, sources: Iterable[int]) -> int:
        """Hangs a vertex below its immediate dominator, which is returned: the root if it has no sources."""
        dominator = -1
        for source in sources:
            dominator = source if dominator < 0 else self._common(dominator, source)
        if dominator < 0:
            dominator = self.root
        depth, jump = self.depth, self._jump
        hop = jump[dominator]
        equal_hops = depth[dominator] - depth[hop] == depth[hop] - depth[jump[hop]]
        self._parent[vertex] = dominator
        depth[vertex] = depth[dominator] + 1
        jump[vertex] = jump[hop] if equal_hops else dominator
        return dominator

    def _common(self, one: int, other: int) -> int:
        depth, jump, parent = self.depth, self._jump, self._parent
        if depth[one] < depth[other]:
            one, other = other, one
        while depth[one] > depth[other]:
            one = jump[one] if depth[jump[one]] >= depth[other] else parent[one]
        while one != other:
            # Vertices of one depth have jumps of one length.
            if jump[one] != jump[other]:
                one, other = jump[one], jump[other]
            else:
                one, other = parent[one], parent[other]
        return one
