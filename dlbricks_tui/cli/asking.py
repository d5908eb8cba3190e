"""Estimates for commands: which store, system, runtime and level are asked, and what is told about the choice."""

from __future__ import annotations

import argparse
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from dlbricks_tui.cli.choices import cutting, given_shapes, open_loader
from dlbricks_tui.cli.output import narrate, worded
from dlbricks_tui.cli.parser import FromConfig, Parser, UsageError

if TYPE_CHECKING:
    from dlbricks_tui.bricks.decomposition import Decomposition
    from dlbricks_tui.config.config import Config
    from dlbricks_tui.estimate.estimate import Options
    from dlbricks_tui.estimate.inquiry import Inquiry
    from dlbricks_tui.estimate.system_estimate import SystemEstimate
    from dlbricks_tui.models.graph import Level
    from dlbricks_tui.models.library import ModelSource
    from dlbricks_tui.models.loading import Loader
    from dlbricks_tui.runtime.runtime import Runtime
    from dlbricks_tui.runtime.traits import Format
    from dlbricks_tui.store.generation import Generation

_THREADS = re.compile(r"threads-(\d{1,4})\b")


def add_composition_options(parser: Parser) -> None:
    """Takes what is composed and how: workers, rules, bridging."""
    parser.add_argument(
        "--workers", metavar="K", type=int, default=FromConfig("estimate.workers"), help="compose for K workers too"
    )
    parser.add_argument(
        "--rules", metavar="FILE", type=Path, help="a TOML file that says which layers may run in parallel"
    )
    parser.add_argument(
        "--bridge",
        action="store_true",
        help="let guesses from similar bricks stand in for missing ones; the interval grows accordingly",
    )


def composition_options(args: argparse.Namespace) -> Options:
    """What the command line wants composed."""
    from dlbricks_tui.estimate.estimate import Options
    from dlbricks_tui.estimate.rules import NO_RULES, read_rules

    if args.workers is not None and args.workers < 1:
        raise UsageError(f"--workers {args.workers}: at least one worker is needed")
    return Options(args.workers, read_rules(args.rules) if args.rules else NO_RULES, args.bridge)


@dataclass(frozen=True, slots=True)
class Whose:
    """Whose measurements are asked for."""

    system: str
    level: Level
    is_host: bool
    # The runtime that the command names.
    named: str | None
    # Otherwise, on this host, those that a run would take.
    usual: Mapping[Format, Runtime]

    def runtime_for(self, source: ModelSource) -> str | None:
        """The runtime that is asked about a model; None for whichever covers most of it."""
        if self.named is not None:
            return self.named
        usual = self.usual.get(source.format)
        return None if usual is None else usual.identity

    def threads_taken(self, source: ModelSource, runtime: str) -> str | None:
        """With how many threads the usual runtime would be this one, where that is another number than usual."""
        usual, found = self.usual.get(source.format), _THREADS.search(runtime)
        if usual is None or found is None or runtime == usual.identity:
            return None
        return found[1] if usual.with_threads(int(found[1])).identity == runtime else None


class Asked(NamedTuple):
    """A model that is asked about."""

    source: ModelSource
    inquiry: Inquiry


@dataclass(frozen=True, slots=True)
class Desk:
    """Where models and measurements meet."""

    args: argparse.Namespace
    generation: Generation
    loader: Loader
    options: Options

    def inquiries(self, sources: Sequence[ModelSource], level: Level) -> list[Asked]:
        """The models, ready to be asked about; those that cannot be loaded are named and left out.

        Where none can be loaded, raises what is wrong with the first.
        """
        from dlbricks_tui.estimate.inquiry import Inquiry
        from dlbricks_tui.models.left_out import UNLOADABLE, LeftOut

        found: list[Asked] = []
        left_out = LeftOut(worded)
        # Of the fifty models of Table 1 some are the same network, in one file.
        known: dict[object, Decomposition] = {}
        for source in sources:
            network = (source.path, *source.inputs.items())
            try:
                decomposition = known.get(network) or self._decomposed(source, level)
            except UNLOADABLE as refusal:
                left_out.add(source, refusal)
                continue
            known[network] = decomposition
            named = replace(decomposition, graph=replace(decomposition.graph, name=source.name))
            found.append(Asked(source, Inquiry(self.generation, named, self.options)))
        if left_out.first is not None and not found:
            raise left_out.first
        for line in left_out.lines:
            narrate(f"left out: {line}")
        return found

    def whose(self, sources: Sequence[ModelSource]) -> Whose:
        """The system, runtimes and level of the command line, for these models."""
        from dlbricks_tui.models.graph import Level

        system, is_host = self._system()
        named = self._named(sources)
        usual = usual_runtimes(self.args) if is_host else {}
        asked = Whose(system, Level.FUSED, is_host, named, usual)
        if self.args.level is not None:
            return replace(asked, level=Level(self.args.level))
        wanted = {asked.runtime_for(source) for source in sources}
        return replace(asked, level=self._level(system, wanted, others=named is None))

    def estimate(self, asked: Asked, whose: Whose) -> SystemEstimate:
        """What was measured of a model by the runtime that is asked about.

        Where that is nothing and nobody has named it, by another one of the same framework on the system.
        """
        from dlbricks_tui.estimate.selection import best_offer
        from dlbricks_tui.store.queries import runtimes

        inquiry, wanted = asked.inquiry, whose.runtime_for(asked.source)
        found = inquiry.on(whose.system, wanted)
        usual = whose.usual.get(asked.source.format)
        if found is None and whose.named is None and usual is not None:
            known = runtimes(self.generation)
            alike = {identity for identity, each in known.items() if each.framework == usual.framework}
            offer = best_offer([it for it in inquiry.offers if it.way.runtime in alike], whose.system, None)
            found = None if offer is None else inquiry.by(offer.way)
        return found or inquiry.empty(whose.system, wanted or "")

    def preferred_level(self, system: str, runtime: str | None) -> Level:
        """What is estimated on a system when nobody says it."""
        from dlbricks_tui.estimate.lookup import levels_measured
        from dlbricks_tui.estimate.selection import preferred_level

        return preferred_level(levels_measured(self.generation, system, runtime))

    def _decomposed(self, source: ModelSource, level: Level) -> Decomposition:
        from dlbricks_tui.bricks.decomposition import decompose
        from dlbricks_tui.models.errors import FusionRefusedError
        from dlbricks_tui.models.graph import Level

        shapes = given_shapes(self.args)
        try:
            graph = self.loader.load(source, level, shapes)
        except FusionRefusedError as refused:
            narrate(f"{source.name}: its written layers are taken, as it cannot be fused: {refused}")
            graph = self.loader.load(source, Level.WRITTEN, shapes)
        return decompose(graph, cutting(self.args))

    def _system(self) -> tuple[str, bool]:
        from dlbricks_tui.estimate.selection import find_system
        from dlbricks_tui.host.fingerprint import fingerprint
        from dlbricks_tui.store.queries import systems

        host = fingerprint().id
        if self.args.system is None:
            return host, True
        found = find_system(self.args.system, systems(self.generation))
        return found, found == host

    def _level(self, system: str, wanted: Collection[str | None], *, others: bool) -> Level:
        from dlbricks_tui.estimate.lookup import levels_measured
        from dlbricks_tui.estimate.selection import preferred_level

        levels = {level for runtime in wanted for level in levels_measured(self.generation, system, runtime)}
        return preferred_level(sorted(levels) or (levels_measured(self.generation, system) if others else ()))

    def _named(self, sources: Sequence[ModelSource]) -> str | None:
        """The runtime that the command names, which has to run all the models."""
        from dlbricks_tui.estimate.selection import find_runtime
        from dlbricks_tui.runtime.registry import Registry
        from dlbricks_tui.runtime.traits import traits_of
        from dlbricks_tui.store.queries import runtimes

        asked: str | None = self.args.runtime
        if asked is None:
            return None
        config: Config = self.args.config
        registered = {it.name: it.with_threads(config.threads) for it in Registry(self.args.data.path).all()}
        if asked in registered:
            found, framework = registered[asked].identity, registered[asked].framework
        else:
            known = runtimes(self.generation)
            found = find_runtime(asked, known)
            framework = known[found].framework
        runs = traits_of(framework).format
        for source in sources:
            if source.format is not runs:
                raise UsageError(
                    f"runtime {asked} runs {runs.value} models, and {source.name} is one of {source.format.value}: "
                    "name another --runtime, or none"
                )
        return found


def usual_runtimes(args: argparse.Namespace) -> Mapping[Format, Runtime]:
    """Who would run models of which format, by the settings."""
    from dlbricks_tui.runtime.registry import Registry

    registry = Registry(args.data.path)
    config: Config = args.config
    found = registry.one_of_each_format(registry.find(config.runtime) if config.runtime else None)
    return {form: runtime.with_threads(config.threads) for form, runtime in found.items()}


def _runtime_here(args: argparse.Namespace, generation: Generation) -> Runtime | None:
    """Of the runtimes of this host the one that is asked about: another one may fuse models otherwise."""
    from dlbricks_tui.estimate.selection import find_runtime
    from dlbricks_tui.runtime.registry import Registry
    from dlbricks_tui.store.queries import runtimes

    # Not every command that estimates lets one choose.
    asked = getattr(args, "runtime", None) or args.config.runtime
    if asked is None:
        return None
    known = Registry(args.data.path).all()
    named = next((it for it in known if it.name == asked), None)
    if named is not None:
        return named
    identity = find_runtime(asked, runtimes(generation))
    return next((it for it in known if it.identity == identity), None)


@contextmanager
def open_desk(args: argparse.Namespace, options: Options) -> Iterator[Desk]:
    """The user's store and a loader of models; what of the store is damaged is said in the end."""
    from dlbricks_tui.store.store import Store

    with Store(args.data.store) as store, open_loader(args, _runtime_here(args, store.generation)) as loader:
        yield Desk(args, store.generation, loader, options)
        if store.damage:
            narrate(f"{len(store.damage)} damaged lines of the store are set aside: see `dlbricks results verify`")
