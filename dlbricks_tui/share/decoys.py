"""Models whose bricks hide those of the private ones: drawn from a pool, some of them for images of another size."""

import random
from collections.abc import Callable, Iterator, Mapping, Sequence

from dlbricks_tui.bricks.decomposition import Decomposition
from dlbricks_tui.models.errors import ModelError
from dlbricks_tui.models.graph import Shape
from dlbricks_tui.models.library import ModelSource
from dlbricks_tui.share.errors import ShareError
from dlbricks_tui.share.seed import Seed

# Whoever knows all published networks by heart must not know all decoys: so many of them have shapes of their own.
_SHARE_VARIED = 0.5
_SMALLEST, _LARGEST = 0.6, 1.4
# Most networks halve an image five times.
_STEP = 32

# Loads a model for inputs of the given shapes, by name, and takes it apart.
Taking = Callable[[ModelSource, Mapping[str, Shape]], Decomposition]


def chosen_decoys(
    pool: Sequence[ModelSource], count: int, seed: Seed, private: Sequence[Decomposition], take: Taking
) -> tuple[Decomposition, ...]:
    """So many models of the pool, drawn alike, none of which adds nothing to the ones before it."""
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


def _candidates(pool: Sequence[ModelSource], chance: random.Random, take: Taking) -> Iterator[Decomposition]:
    # Some models of the pool may be one network in one file.
    sources = {source.path: source for source in pool}
    for source in chance.sample(list(sources.values()), len(sources)):
        # Drawn whatever comes of it: one model must not change what is drawn for the next.
        varied = chance.random() < _SHARE_VARIED
        shapes = _varied(source.inputs, chance)
        for given in ([shapes] if varied else []) + [{}]:
            try:
                yield take(source, given)
                break
            except ModelError:
                # It does not take images of that size, or cannot be had at this level.
                continue


def _varied(inputs: Mapping[str, Shape], chance: random.Random) -> dict[str, Shape]:
    """The only image that a network takes, of another size; nothing where it takes something else."""
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
