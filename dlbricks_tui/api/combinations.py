"""The comparison of one model in several combinations of runtime and variant."""

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from itertools import product
from typing import NamedTuple

from tinydb import where

from dlbricks_tui.api.estimates import next_step
from dlbricks_tui.api.estimating import Estimator, ModelReading
from dlbricks_tui.api.open_models import Choices, ModelSpec
from dlbricks_tui.api.opening import ModelLoaders, run_command
from dlbricks_tui.api.scope import EstimateOptions, MeasuredRuntimes, RuntimeVariants, SelectionOptions
from dlbricks_tui.api.session import SILENT, Remarks
from dlbricks_tui.errors import UserError
from dlbricks_tui.estimate.compositions import EstimateError
from dlbricks_tui.estimate.inquiry import Inquiry, Predictors
from dlbricks_tui.estimate.lookup import levels_measured
from dlbricks_tui.estimate.ranking import Point, Ranked, Ranking, ranked
from dlbricks_tui.estimate.system_estimate import SystemEstimate, preferred_level
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.host.fingerprint import fingerprint
from dlbricks_tui.models.library import ModelSource
from dlbricks_tui.models.loading import UNLOADABLE
from dlbricks_tui.runtime.errors import RegistryError
from dlbricks_tui.runtime.registry import Registry
from dlbricks_tui.runtime.runtime import Runtime
from dlbricks_tui.runtime.variant import (
    USUAL_KERNELS,
    USUAL_VARIANT,
    AskedVariants,
    Precision,
    Variant,
    several,
    stated_variant,
    states,
)
from dlbricks_tui.settings.cutting import CUTTING
from dlbricks_tui.settings.setting import fields_of, require_allowed
from dlbricks_tui.settings.variant import (
    BATCH,
    BATCH_SIZES,
    KERNELS,
    PRECISION,
    SYSTEM,
    THREADS,
    THREADS_DOUBLED,
    VARIANT,
)
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.selections import equal


@dataclass(frozen=True, slots=True, kw_only=True)
class CompareOptions(AskedVariants, SelectionOptions):
    """Options of a comparison. None: all that the store knows of the model.

    A runtime and a part of a variant that are given are compared even without results.
    """

    runtime: str | Sequence[str] | None = None
    # That of the settings, which decides where no runtime has results.
    usual_runtime: str | None = None

    def __post_init__(self) -> None:
        require_allowed(self, (THREADS, BATCH), EstimateError)

    @property
    def names_a_combination(self) -> bool:
        """True if combinations without results are compared."""
        return any(fields_of(self, VARIANT).values())


def compare(
    source: ModelSource,
    options: CompareOptions,
    data: DataFolder,
    store: ResultsDatabase,
    remarks: Remarks,
    *,
    named: str = "",
    go_on: Callable[[], bool] = lambda: True,
) -> Ranking:
    """Compare a model in all combinations that the store knows or the options name; nothing is measured.

    `named` is the model in the commands that measure what is missing. Stop early once `go_on` returns False.
    """
    system, most_bytes = options.system_in(store), options.memory_bytes_in(store)
    cut = fields_of(options, CUTTING)
    how = EstimateOptions(**cut, inputs=options.inputs, values=options.values)
    with ModelLoaders(data, remarks, most_bytes=most_bytes) as readers:
        estimator = Estimator(how, data, store, readers, remarks, how.compositions(), source.format)
        return _Comparison(source, options, estimator, system).ranking(named or source.name, go_on)


def to_be_read(known: Ranking, runtimes: Sequence[Runtime], options: CompareOptions) -> Ranking:
    """Add the combinations of runtimes that the options name and a ranking lacks, as combinations to be read."""
    points = [it.point for it in known.combinations]
    found = points[0].found
    usual = replace(found.variant, instructions=USUAL_KERNELS.instructions, optimisation=USUAL_KERNELS.optimisation)
    nothing = replace(found.estimate, composed=None)
    held = {(it.runtime, it.threads, it.batch_size) for it in points}
    cells = product(runtimes, several(options.threads) or (points[0].threads,), several(options.batch))
    unread = [
        Point(
            runtime.framework,
            threads,
            SystemEstimate(
                found.way._replace(runtime=runtime.identity),
                nothing,
                variant=replace(usual, threads=threads, batch=size),
            ),
        )
        for runtime, threads, size in cells
        if (runtime.framework, threads, size) not in held
    ]
    ranks = (Ranked(it, None) for it in unread)
    return replace(known, combinations=(*known.combinations, *ranks), is_read=False)


def compare_in_steps(
    spec: ModelSpec, choices: Choices, data: DataFolder, go_on: Callable[[], bool]
) -> Iterator[Ranking]:
    """Compare a model in all combinations that were measured, at first without those that the matrix adds.

    Raise a UserError where nothing can be compared.
    """
    source, options = (
        spec.source,
        CompareOptions(
            **fields_of(choices, (*CUTTING, SYSTEM)),
            inputs=spec.shapes,
            measured_only=choices.measured_only,
            usual_runtime=choices.usual_runtime,
            usual_threads=choices.usual_threads,
        ),
    )
    # A store of its own: reading models takes long, and others estimate meanwhile.
    with ResultsDatabase(data.store) as store:

        def compared(options: CompareOptions) -> Ranking:
            return compare(source, options, data, store, SILENT, go_on=go_on)

        known = compared(options)
        points = [it.point for it in known.combinations]
        numbers = {it.threads for it in points if it.threads} | {choices.threads or 1, *THREADS_DOUBLED}
        is_open = any(it.threads is None and it.latency_ms is not None for it in points)
        here = [it for it in Registry(data.path).known() if it.traits.format in source.formats]
        elsewhere = [it.found.way.runtime for it in points if it.found.is_measured]
        try:
            every = replace(
                options,
                runtime=(*[it.name for it in here], *elsewhere),
                # Numbers in place of one that is not known would hide its results.
                threads=() if is_open else tuple(sorted(numbers)),
                batch=tuple(sorted({*BATCH_SIZES, *(it.batch_size for it in points)})),
            )
            # A comparison that is not wanted any more has none.
            yield to_be_read(known, here, every) if points else known
            yield compared(every)
        except UserError as refusal:
            yield replace(known, refusals=(*known.refusals, str(refusal)))


class _Combination(NamedTuple):
    runtime: RuntimeVariants
    # At any batch size.
    variant: Variant
    # None: that of the file.
    batch: int | None

    @property
    def identity(self) -> str:
        """The identity of the runtime in this variant."""
        return self.runtime.identity_of(self.variant)


class _Comparison:
    """Reads a model as each runtime has it, at each batch size once."""

    def __init__(self, source: ModelSource, options: CompareOptions, estimator: Estimator, system: str) -> None:
        self._source, self._options, self._estimator, self._system = source, options, estimator, system
        self._store = estimator.store
        self._runtimes = MeasuredRuntimes(estimator.data, self._store, system)
        self._predictors = Predictors(self._store, estimator.data.cache)
        self._inquiries: dict[tuple[str, Variant, int | None], Inquiry] = {}
        self._refusals: list[UserError] = []

    def ranking(self, named: str, go_on: Callable[[], bool]) -> Ranking:
        """Return the combinations in order; raise the first refusal if there is nothing else."""
        runtimes = []
        for runtime in self._asked():
            with self._refusals_kept():
                self._inquiry(self._usual(runtime))
                runtimes.append(runtime)
        found = {each: one for runtime in runtimes for each, one in self._with_results(runtime, go_on)}
        complete = {each: one for each, one in found.items() if one.figure is not None}
        wanted = self._wanted(runtimes, complete or found)
        known: list[Point] = []
        for each in wanted if go_on() else ():
            with self._refusals_kept():
                one = found.get(each) or self._estimate(each)
                command = "" if one.figure is not None else self._command(named, each, one)
                if one.figure is None and not self._options.measured_only:
                    one = self._estimate(each, self._predictors)
                one = replace(one, timing=self._inquiry(each).timing(one.way))
                known.append(Point(self._label(each, wanted), each.variant.threads, one, command))
        if self._refusals and not known:
            raise self._refusals[0]
        refusals = tuple(dict.fromkeys(map(self._estimator.remarks.word_error, self._refusals)))
        left_out = 0 if self._options.names_a_combination else len(found.keys() - set(wanted))
        own = self._inquiry(self._usual(runtimes[0])).decomposition.graph.batch_size if runtimes else 1
        is_host = self._system == fingerprint().id
        return Ranking(self._source.name, self._system, ranked(known), left_out, refusals, is_host, own)

    @contextmanager
    def _refusals_kept(self) -> Iterator[None]:
        """Go on after a model that cannot be read, or a precision that a runtime lacks."""
        try:
            yield
        except (*UNLOADABLE, RegistryError) as refusal:
            self._refusals.append(refusal)

    # The combinations

    def _asked(self) -> list[RuntimeVariants]:
        """Return the runtimes that the options name, or else those with results, or else the usual one."""
        named = [self._runtimes.named(each, self._source) for each in several(self._options.runtime)]
        if named:
            return list({it.identity: it for held in named for it in held}.values())
        usual = self._options.usual_runtime
        return self._runtimes.with_results(self._source) or [self._runtimes.usual(self._source, usual)]

    def _with_results(
        self, runtime: RuntimeVariants, go_on: Callable[[], bool]
    ) -> Iterator[tuple[_Combination, SystemEstimate]]:
        """Yield the combinations of a runtime in which any brick of the model was measured."""
        counting = equal(system=self._system) & where("runtime").one_of(list(runtime.measured))
        sizes = sorted({int(size) for size in self._store.select(counting, order=()).numbers("batch_size").tolist()})
        for batch in dict.fromkeys([None, *(self._batch(runtime, size) for size in sizes)]):
            for identity in runtime.measured if go_on() else ():
                each = _Combination(runtime, stated_variant(identity), batch)
                one = None
                # The size may be of other models.
                with suppress(*UNLOADABLE):
                    one = self._inquiry(each).on(self._system, identity)
                if one is not None:
                    yield each, one

    def _wanted(self, runtimes: Sequence[RuntimeVariants], known: Collection[_Combination]) -> list[_Combination]:
        """Return the known combinations, with each value of the options in place of theirs.

        A runtime without known ones has the combination that a run without options would measure, or the one in which
        it has measured most of other models: their results tell more. Where they were not measured, unusual precisions
        and kernels are left out unless an option names them.
        """
        options, found = self._options, dict[_Combination, None]()
        for runtime in runtimes:
            usual = self._usual(runtime)
            own = [each for each in known if each.runtime == runtime]
            if not own and (options.names_a_combination or not known):
                own = [self._predictable(runtime, usual)]
            plain = [each for each in own if not self._differs_unasked(each, usual)]
            for each in own:
                for variant in options.each(each.variant):
                    batch = self._batch(runtime, variant.batch) if options.batch else each.batch
                    wanted = _Combination(runtime, replace(variant, batch=1), batch)
                    if wanted in known or not plain or not self._differs_unasked(wanted, usual):
                        found[wanted] = None
        return list(found)

    def _predictable(self, runtime: RuntimeVariants, usual: _Combination) -> _Combination:
        """Return the usual combination, or the one with most results if the usual one has none."""
        plain = [it for it in runtime.measured if states(it, None, usual.variant.precision, usual.variant.kernels)]
        if not plain or usual.identity in plain:
            return usual
        return usual._replace(variant=stated_variant(plain[0]))

    def _differs_unasked(self, each: _Combination, usual: _Combination) -> bool:
        """Return whether a combination differs from the usual one in its precision or kernels, without an option."""
        open_parts = (it.field for it in (PRECISION, *KERNELS) if not getattr(self._options, it.field))
        return any(getattr(each.variant, part) is not getattr(usual.variant, part) for part in open_parts)

    def _usual(self, runtime: RuntimeVariants) -> _Combination:
        threads = self._options.usual_threads
        if threads is None and runtime.here is not None:
            threads = runtime.here.settings.threads
        own = USUAL_VARIANT if runtime.here is None else stated_variant(runtime.here.identity)
        return _Combination(runtime, replace(own, threads=threads, precision=Precision.F32), None)

    def _batch(self, runtime: RuntimeVariants, batch: int | None) -> int | None:
        """Return a batch size, None for that of the file."""
        return None if batch == self._inquiry(self._usual(runtime)).decomposition.graph.batch_size else batch

    # Their estimates

    def _estimate(self, each: _Combination, predictors: Predictors | None = None) -> SystemEstimate:
        """Return the estimate of a combination; without predictors it has no latencies if nothing was measured."""
        identity, inquiry = each.identity, self._inquiry(each)
        if predictors is not None:
            inquiry = Inquiry(self._store, inquiry.decomposition, None, predictors)
        return inquiry.on(self._system, identity) or inquiry.empty(
            self._system, identity, precision=each.variant.precision
        )

    def _inquiry(self, each: _Combination) -> Inquiry:
        """Return the model as a runtime has it at a batch size, with the results of its bricks."""
        key = each.runtime.identity, replace(each.variant, threads=None), each.batch
        if key not in self._inquiries:
            levels = [levels_measured(self._store, self._system, identity) for identity in each.runtime.measured]
            level = self._options.level or preferred_level(sorted({level for held in levels for level in held}))
            # Another runtime of the framework fuses models alike.
            alike = (it for it in self._runtimes.registered if it.framework == each.runtime.framework)
            here = each.runtime.here or next(alike, None)
            if here is not None:
                here = here.with_precision(each.variant.precision).with_kernels(each.variant)
            at_size = replace(self._estimator, options=replace(self._estimator.options, batch=each.batch))
            self._inquiries[key] = at_size.inquiry(self._source, ModelReading(each.runtime.form, here, level))
        return self._inquiries[key]

    # Their rows

    def _label(self, each: _Combination, wanted: Sequence[_Combination]) -> str:
        """Return the framework of a runtime, with its version where several have it, or else its name."""
        own, others = each.runtime.identity, {it.runtime.identity for it in wanted} - {each.runtime.identity}
        version = own.partition(" ")[0]
        for text in (each.runtime.framework, version):
            if not any(other.startswith(text) for other in others):
                return text
        return each.runtime.name

    def _command(self, named: str, each: _Combination, one: SystemEstimate) -> str:
        """Return the command that measures a combination; empty if this host has no such runtime."""
        runtime = each.runtime.variant(each.variant)
        if runtime is None or runtime.identity != each.identity:
            return ""
        _, *more = (next_step(one) or "run").split()
        return run_command(named, runtime, one.way.level, each.batch, self._options, *more)
