"""Export models as a suite: their bricks among those of decoys, under ids that only the owner's key explains.

Decoys are models from a pool, some with another image size.
"""

import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from dlbricks_tui.jobs.events import Event
from dlbricks_tui.models.errors import ModelError
from dlbricks_tui.models.graph import Level, Shape
from dlbricks_tui.models.library import ModelSource
from dlbricks_tui.runtime.variant import Precision
from dlbricks_tui.share.errors import ShareError
from dlbricks_tui.share.suites.key_file import Meaning, Seed, SuiteKey, write_key
from dlbricks_tui.share.suites.packing import PackedBrick, Packing, SuiteModel, SuitePair
from dlbricks_tui.share.suites.suite_files import (
    MOST_BRICKS,
    MOST_NETWORK_BYTES,
    Manifest,
    SuiteBrick,
    is_archive,
    sha256,
    write_suite,
)
from dlbricks_tui.store.labels import label_of

# The share of decoys with other image sizes: published networks alone could be recognised.
_SHARE_VARIED = 0.5
_SMALLEST, _LARGEST = 0.6, 1.4
# Most networks halve an image five times: 2 to the power of 5.
_STEP = 32
_SECONDS_BETWEEN_EVENTS = 1.0

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
    found: list[SuiteModel] = []
    known = {pair for model in private for pair in model.bricks}
    chosen = alike = 0
    for decoy in _candidates(pool, seed.chance("decoys"), take) if count else ():
        pairs = {pair for model in decoy for pair in model.bricks}
        if pairs <= known:
            alike += 1
            continue
        known |= pairs
        found += decoy
        chosen += 1
        if chosen == count:
            return tuple(found)
    if count:
        offered = len({source.path for source in pool})
        why = _shortage(offered, alike, offered - chosen - alike)
        wanted = "1 decoy is" if count == 1 else f"{count} decoys are"
        raise ShareError(
            f"{wanted} wanted, but only {chosen} can be made{why}; name others with --decoys-from, or ask "
            "for fewer with --decoys"
        )
    return ()


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
    """So many bricks were packed and read back, of all."""

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
    count = len({(model.framework, pair) for model in (*models, *decoys) for pair in model.bricks})
    packer = _Packer(seed, level, packings, count, tell)
    mine = packer.pack_all(models)
    left_out = tuple(packer.left_out)
    others = packer.pack_all(decoys).keys() - mine.keys()
    if not mine:
        why = f": the first {left_out[0].reason}" if left_out else ""
        raise ShareError(f"none of the models has a brick that a suite can hold{why}; nothing was exported")
    if len(packer.bricks) > MOST_BRICKS:
        raise ShareError(
            f"a suite holds {MOST_BRICKS:,} bricks at most, not {len(packer.bricks):,}; export fewer models"
        )
    frameworks = tuple(dict.fromkeys(meaning.framework for meaning in mine.values()))
    bricks = tuple(packer.bricks[each] for each in sorted(packer.bricks))
    manifest = Manifest(seed.id_of("suite"), level, precision, frameworks, bricks)
    names = tuple(dict.fromkeys(model.decomposition.graph.name for model in models))
    text_hash = sha256(manifest.text().encode())
    key = SuiteKey(manifest.suite, text_hash, level, names, mine, frozenset(others))
    return Assembled(manifest, packer.networks, key, left_out)


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


class _Packer:
    def __init__(self, seed: Seed, level: Level, packings: Packings, count: int, tell: Callable[[Event], None]) -> None:
        self._seed = seed
        self._level = level
        self._packings = packings
        self._count = count
        self._tell = tell
        self._began = self._told = time.monotonic()
        self.bricks: dict[str, SuiteBrick] = {}
        self.networks: dict[str, bytes] = {}
        self.left_out: list[OmittedBrick] = []
        # The id of each brick that a framework runs, and its canonical form; no id for those that are left out.
        self._tried: dict[str, dict[SuitePair, tuple[str, str]]] = {}

    def pack_all(self, models: Sequence[SuiteModel]) -> dict[str, Meaning]:
        """Pack the bricks that take time, and return the meaning of each id."""
        found: dict[str, Meaning] = {}
        for model in models:
            graph, packing = model.decomposition.graph, self._packings[model.framework]
            if graph.level is not self._level:
                raise ShareError(
                    f"{graph.name} could not be {self._level.value}; export it with --level {graph.level.value}"
                )
            tried = self._tried.setdefault(model.framework, {})
            new = {pair: occurrence for pair, occurrence in model.bricks.items() if pair not in tried}
            for brick in packing.packed(model, new):
                tried[brick.pair] = self._added(model, brick), brick.canonical
                now, done = time.monotonic(), sum(map(len, self._tried.values()))
                if now >= self._told + _SECONDS_BETWEEN_EVENTS:
                    self._told = now
                    left = (now - self._began) / done * max(0, self._count - done)
                    self._tell(BricksChecked(done, max(done, self._count), left))
            for pair in model.bricks:
                name, canonical = tried[pair]
                if name:
                    found[name] = Meaning(*pair, canonical, model.framework)
        return found

    def _added(self, model: SuiteModel, brick: PackedBrick) -> str:
        reason = brick.reason
        if len(brick.content) > MOST_NETWORK_BYTES:
            reason = f"takes {len(brick.content):,} bytes with its context, more than a suite allows"
        if reason:
            self.left_out.append(OmittedBrick(label_of(brick.canonical), reason))
            return ""
        name = self._seed.id_of("brick", model.framework, *brick.pair)
        form, content = model.decomposition.graph.format, brick.content
        self.networks[name] = content
        self.bricks[name] = SuiteBrick(name, form, brick.layers, brick.cold, len(content), sha256(content))
        return name
