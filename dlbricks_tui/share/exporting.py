"""Export models as a suite: their bricks among those of decoys, under ids that only the owner's key explains.

Decoys are models from a pool, some with another image size.
"""

import random
import time
from bisect import bisect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import NamedTuple

from dlbricks_tui.bricks.decomposition import Decomposition
from dlbricks_tui.jobs.events import Event
from dlbricks_tui.models.errors import ModelError
from dlbricks_tui.models.graph import Level, Shape
from dlbricks_tui.models.library import ModelSource
from dlbricks_tui.runtime.variant import Precision
from dlbricks_tui.share.errors import ShareError
from dlbricks_tui.share.packing import Packing, SuiteModel
from dlbricks_tui.share.suite_files import (
    MOST_BRICKS,
    MOST_NETWORK_BYTES,
    Manifest,
    Meaning,
    Seed,
    SuiteBrick,
    SuiteKey,
    is_archive,
    sha256,
    write_key,
    write_suite,
)
from dlbricks_tui.store.index import label_of
from dlbricks_tui.store.records import ANY_CONTEXT

# The share of decoys with other image sizes: published networks alone could be recognised.
_SHARE_VARIED = 0.5
_SMALLEST, _LARGEST = 0.6, 1.4
# Most networks halve an image five times: 2 to the power of 5.
_STEP = 32
_SECONDS_BETWEEN_EVENTS = 1.0

# A size class of decoys has at least so many models.
_FEWEST_OF_A_SIZE = 8

# Loads a model for input shapes by name, and cuts it into bricks, once for each framework of the suite.
Take = Callable[[ModelSource, Mapping[str, Shape]], Sequence[SuiteModel]]
# The packing of each framework.
Packings = Mapping[str, Packing]


def chosen_decoys(
    pool: Sequence[ModelSource],
    count: int,
    seed: Seed,
    private: Sequence[SuiteModel],
    take: Take,
) -> tuple[SuiteModel, ...]:
    """Return `count` random models of the pool, each with bricks that the earlier ones lack."""
    if not count:
        return ()
    found: list[SuiteModel] = []
    known = {brick for model in private for brick in model.bricks}
    chosen = alike = 0
    for decoy in _candidates(pool, seed.chance("decoys"), take):
        bricks = {brick for model in decoy for brick in model.bricks}
        if bricks <= known:
            alike += 1
            continue
        known |= bricks
        found += decoy
        chosen += 1
        if chosen == count:
            return tuple(found)
    offered = len({source.path for source in pool})
    why = _shortage(offered, alike, offered - chosen - alike)
    wanted = "1 decoy is" if count == 1 else f"{count} decoys are"
    raise ShareError(
        f"{wanted} wanted, but only {chosen} can be made{why}; name others with --decoys-from, or ask for fewer with "
        "--decoys"
    )


def like_sized(pool: Sequence[ModelSource], private: Mapping[Path, SuiteModel], count: int) -> list[ModelSource]:
    """Return the models of a pool that are in one size class with private ones, to choose `count` decoys from.

    Private models are given by their files, which the pool may hold. Classes are those of the whole pool, so that the
    decoys of a model are those of any other in its class: they tell the class, and no more.
    """
    ordered = sorted({source.path: source for source in pool}.values(), key=lambda it: (size_of(it), it.path))
    wanted = max(_FEWEST_OF_A_SIZE, 2 * count + 1)
    # The last class has the rest, too.
    last = max(0, len(ordered) // wanted - 1)
    classes = {source.path: min(place // wanted, last) for place, source in enumerate(ordered)}
    first_sizes = [size_of(ordered[number * wanted]) for number in range(1, last + 1)]
    chosen = {
        classes[path] if path in classes else bisect(first_sizes, _size(model.decomposition))
        for path, model in private.items()
    }
    return [source for source in ordered if classes[source.path] in chosen and source.path not in private]


def size_of(source: ModelSource) -> float:
    """Return about what a sample costs in a suite: the number of its different layers times the size of its inputs."""
    return (source.unique_layers or 1) * max(1, sum(map(prod, source.inputs.values())))


def _size(model: Decomposition) -> float:
    """Return about what a model that was read costs in a suite."""
    return len(model.bricks) * max(1, sum(prod(it.type.shape or ()) for it in model.graph.inputs))


def _shortage(offered: int, alike: int, unreadable: int) -> str:
    """Return why offered models are no decoys, as the end of a sentence."""
    if not offered:
        return ": no other file in the format of your models is offered"
    reasons = {
        "with no other bricks than those of your models and of other decoys": alike,
        "that cannot be read": unreadable,
    }
    told = " and ".join(f"{number} {reason}" for reason, number in reasons.items() if number)
    return f": of {offered} offered, {told}" if told else ""


def _candidates(pool: Sequence[ModelSource], chance: random.Random, take: Take) -> Iterator[Sequence[SuiteModel]]:
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
class ExportNoted(Event):
    """Something that the owner should know, such as a model that is left out."""

    text: str


@dataclass(frozen=True, slots=True)
class BricksChecked(Event):
    """The number of bricks that were packed and read back, of all."""

    done: int
    of: int
    seconds_left: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteWritten(Event):
    """The suite is in its file, and the key in another one; `left_out` are the reasons why models are not in it."""

    suite: str
    path: str
    key: str
    bricks: int
    decoy_bricks: int
    # Of models.
    decoys: int
    untravelled: tuple[OmittedBrick, ...] = ()
    left_out: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Assembled:
    """A suite before it is written; `networks` are by brick id."""

    manifest: Manifest
    networks: dict[str, bytes]
    key: SuiteKey
    left_out: tuple[OmittedBrick, ...]


def assemble(
    models: Sequence[SuiteModel],
    decoys: Sequence[SuiteModel],
    seed: Seed,
    level: Level,
    packings: Packings,
    precision: Precision = Precision.F32,
    tell: Callable[[Event], None] = lambda _: None,
) -> Assembled:
    """Return the suite of these models, without the bricks that cannot be exported, and tell how far it is."""
    everything = (*models, *decoys)
    for graph in (model.decomposition.graph for model in everything):
        if graph.level is not level:
            raise ShareError(f"{graph.name} could not be {level.value}; export it with --level {graph.level.value}")
    count = len({(model.framework, brick) for model in everything for brick in model.bricks})
    # The id of each brick that a framework runs; empty for those that are left out.
    ids: dict[tuple[str, str], str] = {}
    bricks: dict[str, SuiteBrick] = {}
    networks: dict[str, bytes] = {}
    left_out: list[OmittedBrick] = []
    began = told = 0.0
    for place, model in enumerate(everything):
        framework, form = model.framework, model.decomposition.graph.format
        new = {brick: occurrence for brick, occurrence in model.bricks.items() if (framework, brick) not in ids}
        for brick, canonical, cold, content, reason in packings[framework].packed(model, new):
            if len(content) > MOST_NETWORK_BYTES:
                reason = f"takes {len(content):,} bytes with its context, more than a suite allows"
            name = ids[framework, brick] = "" if reason else seed.id_of("brick", framework, brick, ANY_CONTEXT)
            if name:
                networks[name] = content
                bricks[name] = SuiteBrick(name, form, 1, cold, len(content), sha256(content))
            elif place < len(models):
                left_out.append(OmittedBrick(label_of(canonical), reason))
            now, done = time.monotonic(), len(ids)
            if done == 1:
                # The first brick waits for the start of its framework: its time says nothing about the others.
                began = told = now
            elif now >= told + _SECONDS_BETWEEN_EVENTS:
                told = now
                tell(BricksChecked(done, max(done, count), (now - began) / (done - 1) * max(0, count - done)))
    mine = _meanings(models, ids)
    if not mine:
        why = f": the first {left_out[0].reason}" if left_out else ""
        raise ShareError(f"none of the models has a brick that a suite can hold{why}; nothing was exported")
    if len(bricks) > MOST_BRICKS:
        raise ShareError(f"a suite holds {MOST_BRICKS:,} bricks at most, not {len(bricks):,}; export fewer models")
    frameworks = tuple(dict.fromkeys(meaning.framework for meaning in mine.values()))
    in_order = tuple(bricks[each] for each in sorted(bricks))
    manifest = Manifest(seed.id_of("suite"), level, precision, frameworks, in_order)
    names = tuple(dict.fromkeys(model.decomposition.graph.name for model in models))
    others = frozenset(_meanings(decoys, ids).keys() - mine.keys())
    key = SuiteKey(manifest.suite, sha256(manifest.text().encode()), level, names, mine, others)
    return Assembled(manifest, networks, key, tuple(left_out))


def _meanings(models: Sequence[SuiteModel], ids: Mapping[tuple[str, str], str]) -> dict[str, Meaning]:
    """Return the meaning of each brick of the models that is in the suite, by its id."""
    return {
        name: Meaning(brick, ANY_CONTEXT, place.brick.canonical, it.framework)
        for it in models
        for brick, place in it.bricks.items()
        if (name := ids[it.framework, brick])
    }


def write_assembled(assembled: Assembled, path: Path, key_file: Path) -> None:
    """Write the key for the owner and the suite for others, or neither."""
    if not is_archive(path) and key_file.absolute().is_relative_to(path.absolute()):
        raise ShareError(f"the key {key_file} would be in the suite {path}, where others find it; name another --key")
    if key_file.absolute() == path.absolute():
        raise ShareError(f"{path} cannot be the suite and its key; name another --key")
    write_key(key_file, assembled.key)
    try:
        write_suite(path, assembled.manifest, assembled.networks)
    except BaseException:
        with suppress(OSError):
            key_file.unlink()
        raise
