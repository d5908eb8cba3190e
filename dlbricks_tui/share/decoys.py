"""Decoys: models from a pool whose bricks hide those of the private ones, some with another image size."""

import random
from collections.abc import Callable, Iterator, Mapping, Sequence

from dlbricks_tui.bricks.decomposition import Decomposition
from dlbricks_tui.models.errors import ModelError
from dlbricks_tui.models.graph import Shape
from dlbricks_tui.models.library import ModelSource
from dlbricks_tui.share.errors import ShareError
from dlbricks_tui.share.suite import Seed

# The share of decoys with other image sizes: published networks alone could be recognised.
_SHARE_VARIED = 0.5
_SMALLEST, _LARGEST = 0.6, 1.4
# Most networks halve an image five times: 2 to the power of 5.
_STEP = 32

# Loads a model for input shapes by name, and decomposes it.
Take = Callable[[ModelSource, Mapping[str, Shape]], Decomposition]


def chosen_decoys(
    pool: Sequence[ModelSource], count: int, seed: Seed, private: Sequence[Decomposition], take: Take
) -> tuple[Decomposition, ...]:
    """Return `count` random models of the pool, each with bricks that those before it lack."""
    found: list[Decomposition] = []
    known = {pair for decomposition in private for pair in decomposition.suite}
    for decoy in _candidates(pool, seed.chance("decoys"), take) if count else ():
        if decoy.suite <= known:
            continue
        known |= decoy.suite
        found.append(decoy)
        if len(found) == count:
            return tuple(found)
    if count:
        raise ShareError(f"there are {len(found)} models to take decoys from, not {count}; ask for fewer with --decoys")
    return ()


def _candidates(pool: Sequence[ModelSource], chance: random.Random, take: Take) -> Iterator[Decomposition]:
    # Some models of the pool share one file.
    sources = {source.path: source for source in pool}
    for source in chance.sample(list(sources.values()), len(sources)):
        # Always drawn: one model must not change the draws for the next.
        varied = chance.random() < _SHARE_VARIED
        shapes = _varied(source.inputs, chance)
        for given in ([shapes] if varied else []) + [{}]:
            try:
                yield take(source, given)
                break
            except ModelError:
                # It does not accept this image size, or cannot be loaded at this level.
                continue


def _varied(inputs: Mapping[str, Shape], chance: random.Random) -> dict[str, Shape]:
    """Return another size for the only image input of a network; nothing if it has other inputs."""
    share = chance.random()
    if len(inputs) != 1:
        return {}
    ((name, shape),) = inputs.items()
    if len(shape) != 4 or shape[2] != shape[3] or shape[2] < _STEP:
        return {}
    side = shape[2]
    sizes = [it for it in range(_STEP, 2 * side, _STEP) if _SMALLEST <= it / side <= _LARGEST and it != side]
    if not sizes:
        return {}
    size = sizes[int(share * len(sizes))]
    return {name: (*shape[:2], size, size)}
