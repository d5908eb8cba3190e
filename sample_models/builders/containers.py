"""Networks first written as nested Torch containers: a member is called by its place in its container.

A network is an expression of steps. The layer `4/1/2` is the second member of the first member of the fourth.
"""

from collections.abc import Callable

from sample_models.builders.network import Network
from sample_models.builders.symbol_writer import Output

Step = Callable[[Network, Output, str], Output]

relu: Step = Network.relu
identity: Step = Network.identity
enlarge: Step = Network.upsample


def conv(filters: int, kernel: int, stride: int = 1) -> Step:
    """A convolution whose padding keeps the size of the image."""

    def write(net: Network, x: Output, name: str) -> Output:
        return net.conv(x, name, filters, kernel, stride, pad=kernel // 2)

    return write


def norm(net: Network, x: Output, name: str) -> Output:
    return net.batch_norm(x, name, eps=1e-5)


def halve_by_max(net: Network, x: Output, name: str) -> Output:
    return net.max_pool(x, name, kernel=2, stride=2)


def halve_by_mean(net: Network, x: Output, name: str) -> Output:
    return net.mean_pool(x, name, kernel=2, stride=2)


def chain(*members: Step) -> Step:
    """The members one after the other."""

    def write(net: Network, x: Output, name: str) -> Output:
        with net.scope(name):
            return sequence(net, x, *members)

    return write


def total(*branches: Step) -> Step:
    """The sum of branches that all take the same input."""
    return _merged(Network.add, branches)


def joined(*branches: Step) -> Step:
    """The branches, which all take the same input, side by side on the channel axis."""
    return _merged(Network.concat, branches)


def sequence(net: Network, x: Output, *members: Step) -> Output:
    """The members one after the other, without a container around them."""
    for place, member in enumerate(members, start=1):
        x = member(net, x, str(place))
    return x


def _merged(merge: Callable[..., Output], branches: tuple[Step, ...]) -> Step:
    def write(net: Network, x: Output, name: str) -> Output:
        with net.scope(name):
            outputs = [branch(net, x, str(place)) for place, branch in enumerate(branches, start=1)]
            return merge(net, str(len(branches) + 1), *outputs)

    return write
