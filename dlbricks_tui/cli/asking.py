"""Estimates for commands: which store, system, runtime and level are asked, and what is told about the choice."""

from __future__ import annotations

import argparse
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from dlbricks_tui.cli.choices import cutting, given_shapes, open_loader
from dlbricks_tui.cli.output import narrate
from dlbricks_tui.cli.parser import FromConfig, Parser, UsageError

if TYPE_CHECKING:
    from dlbricks_tui.bricks.decomposition import Decomposition
    from dlbricks_tui.estimate.estimate import Options
    from dlbricks_tui.estimate.inquiry import Inquiry
    from dlbricks_tui.models.graph import Level
    from dlbricks_tui.models.library import ModelSource
    from dlbricks_tui.models.loading import Loader
    from dlbricks_tui.runtime.runtime import Format, Runtime
    from dlbricks_tui.store.generation import Generation


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
    """Whose measurements are asked for; without a runtime, those of the one that covers most of a model."""

    system: str
    runtime: str | None
    level: Level
    is_host: bool


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
        from dlbricks_tui.models.errors import ModelError

        found: list[Asked] = []
        refusals: list[ModelError] = []
        # Of the fifty models of Table 1 some are the same network, in one file.
        known: dict[object, Decomposition] = {}
        for source in sources:
            network = (source.path, *source.inputs.items())
            try:
                decomposition = known.get(network) or self._decomposed(source, level)
            except ModelError as refusal:
                refusals.append(refusal)
                continue
            known[network] = decomposition
            named = replace(decomposition, graph=replace(decomposition.graph, name=source.name))
            found.append(Asked(source, Inquiry(self.generation, named, self.options)))
        if refusals and not found:
            raise refusals[0]
        for left_out in refusals:
            narrate(f"left out: {left_out}")
        return found

    def whose(self, sources: Sequence[ModelSource]) -> Whose:
        """The system, runtime and level of the command line, for these models."""
        from dlbricks_tui.models.graph import Level

        system, is_host = self._system()
        runtime = self._runtime(is_host, {source.format for source in sources})
        if self.args.level is not None:
            return Whose(system, runtime, Level(self.args.level), is_host)
        return Whose(system, runtime, self.preferred_level(system, runtime), is_host)

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
        from dlbricks_tui.bench.fingerprint import fingerprint
        from dlbricks_tui.estimate.selection import find_system
        from dlbricks_tui.store.queries import systems

        host = fingerprint().id
        if self.args.system is None:
            return host, True
        found = find_system(self.args.system, systems(self.generation))
        return found, found == host

    def _runtime(self, is_host: bool, formats: Collection[Format]) -> str | None:
        from dlbricks_tui.estimate.selection import find_runtime
        from dlbricks_tui.runtime.registry import Registry
        from dlbricks_tui.store.queries import runtimes

        if self.args.runtime is not None:
            registered = {runtime.name: runtime.identity for runtime in Registry(self.args.data.path).all()}
            named = registered.get(self.args.runtime)
            return named or find_runtime(self.args.runtime, runtimes(self.generation))
        known = Registry(self.args.data.path).one_of_each_format()
        # Of models of several formats each has its own: the one that covers most of it.
        found = [known[form].identity for form in formats if form in known]
        return found[0] if is_host and len(found) == len(formats) == 1 else None


def _runtime_here(args: argparse.Namespace, generation: Generation) -> Runtime | None:
    """Of the runtimes of this host the one that is asked about: another one may fuse models otherwise."""
    from dlbricks_tui.estimate.selection import find_runtime
    from dlbricks_tui.runtime.registry import Registry
    from dlbricks_tui.store.queries import runtimes

    # Not every command that estimates lets one choose.
    asked = getattr(args, "runtime", None)
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
