"""Export models as a suite: their bricks among those of decoys, under ids that only the owner's key explains.

Decoys are models from a pool, some with another image size.
"""

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from dlbricks_tui.bricks.decomposition import Decomposition
from dlbricks_tui.bricks.excerpts import Excerpt, excerpt
from dlbricks_tui.bricks.layouts import output_layouts
from dlbricks_tui.measure.plan import is_run
from dlbricks_tui.models.errors import ModelError
from dlbricks_tui.models.graph import Level, Shape
from dlbricks_tui.models.library import ModelSource
from dlbricks_tui.share.errors import BrokenBrickError, ShareError, UnsuitableLayersError
from dlbricks_tui.share.networks.mxnet_network import packed
from dlbricks_tui.share.suites.key_file import Meaning, SuiteKey, write_key
from dlbricks_tui.share.suites.suite import (
    MOST_BRICKS,
    MOST_NETWORK_BYTES,
    Manifest,
    Seed,
    SuiteBrick,
    sha256,
    write_suite,
)
from dlbricks_tui.share.suites.unpacking import Unpacker
from dlbricks_tui.store.labels import label_of

# The share of decoys with other image sizes: published networks alone could be recognised.
_SHARE_VARIED = 0.5
_SMALLEST, _LARGEST = 0.6, 1.4
# Most networks halve an image five times: 2 to the power of 5.
_STEP = 32

# Loads a model for input shapes by name, and decomposes it.
Take = Callable[[ModelSource, Mapping[str, Shape]], Decomposition]
# Raises a ShareError unless reading a file gives the same excerpt.
Check = Callable[[bytes, Excerpt], None]


def chosen_decoys(
    pool: Sequence[ModelSource], count: int, seed: Seed, private: Sequence[Decomposition], take: Take
) -> tuple[Decomposition, ...]:
    """Return `count` random models of the pool, each with bricks that the earlier ones lack."""
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
        raise ShareError(f"{count} decoys are wanted, but only {len(found)} can be made; ask for fewer with --decoys")
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
                # The model does not accept this image size, or cannot be loaded at this level.
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


class OmittedBrick(NamedTuple):
    """A brick of the private models that a suite cannot hold."""

    label: str
    reason: str


@dataclass(frozen=True, slots=True)
class Assembled:
    """A suite before it is written; `networks` are by brick id."""

    manifest: Manifest
    networks: dict[str, bytes]
    key: SuiteKey
    left_out: tuple[OmittedBrick, ...]


def assemble(
    models: Sequence[Decomposition], decoys: Sequence[Decomposition], seed: Seed, level: Level, check: Check
) -> Assembled:
    """Return the suite of these models, without the bricks that cannot be exported."""
    packer = _Packer(seed, level, check)
    mine = packer.pack_all(models)
    left_out = tuple(packer.left_out)
    others = packer.pack_all(decoys).keys() - mine.keys()
    if not mine:
        raise ShareError("none of the models has a brick that a suite can hold; nothing was exported")
    if len(packer.bricks) > MOST_BRICKS:
        raise ShareError(
            f"a suite holds {MOST_BRICKS:,} bricks at most, not {len(packer.bricks):,}; export fewer models"
        )
    manifest = Manifest(seed.id_of("suite"), level, tuple(packer.bricks[each] for each in sorted(packer.bricks)))
    names = tuple(decomposition.graph.name for decomposition in models)
    text_hash = sha256(manifest.text().encode())
    key = SuiteKey(manifest.suite, text_hash, level, names, mine, frozenset(others))
    return Assembled(manifest, packer.networks, key, left_out)


def write_assembled(assembled: Assembled, folder: Path, key_file: Path) -> None:
    """Write the key for the owner and the suite for others, or neither."""
    if key_file.absolute().is_relative_to(folder.absolute()):
        raise ShareError(f"the key {key_file} would be in the suite {folder}, where others find it; name another --key")
    write_key(key_file, assembled.key)
    try:
        write_suite(folder, assembled.manifest, assembled.networks)
    except BaseException:
        with suppress(OSError):
            key_file.unlink()
        raise


def round_trip(unpacker: Unpacker) -> Check:
    """Return a check that reads each file back and compares the excerpt."""

    def check(content: bytes, alone: Excerpt) -> None:
        read = unpacker.unpacked(content, alone.held, alone.cold)
        if (read.brick, read.context) != (alone.brick, alone.context):
            raise UnsuitableLayersError("would not be read back as the same brick in the same context")

    return check


class _Packer:
    def __init__(self, seed: Seed, level: Level, check: Check) -> None:
        self._seed = seed
        self._level = level
        self._check = check
        self.bricks: dict[str, SuiteBrick] = {}
        self.networks: dict[str, bytes] = {}
        self.left_out: list[OmittedBrick] = []
        self._tried: dict[tuple[str, str], str | None] = {}

    def pack_all(self, models: Sequence[Decomposition]) -> dict[str, Meaning]:
        """Pack the bricks that take time, and return the meaning of each id."""
        found: dict[str, Meaning] = {}
        for decomposition in models:
            if decomposition.graph.level is not self._level:
                raise ShareError(
                    f"{decomposition.graph.name} could not be {self._level.value}; "
                    f"export it with --level {decomposition.graph.level.value}"
                )
            layouts = output_layouts(decomposition.graph)
            for occurrence in decomposition.occurrences:
                if not is_run(decomposition.graph, occurrence):
                    continue
                pair = occurrence.brick.key, occurrence.context
                if pair not in self._tried:
                    self._tried[pair] = self._pack(
                        pair, excerpt(decomposition.graph, occurrence.sequence.layers, layouts)
                    )
                name = self._tried[pair]
                if name is not None:
                    found[name] = Meaning(*pair, occurrence.brick.canonical)
        return found

    def _pack(self, pair: tuple[str, str], alone: Excerpt) -> str | None:
        name = self._seed.id_of("brick", *pair)
        try:
            content = packed(alone)
            if len(content) > MOST_NETWORK_BYTES:
                raise UnsuitableLayersError(f"takes {len(content):,} bytes with its context, more than a suite allows")
            self._check(content, alone)
        except (UnsuitableLayersError, BrokenBrickError, ModelError) as error:
            self.left_out.append(OmittedBrick(label_of(alone.brick.canonical), str(error)))
            return None
        self.networks[name] = content
        self.bricks[name] = SuiteBrick(name, alone.held, alone.cold, len(content), sha256(content))
        return name
