"""Estimates as plain values, and remarks on them: what they lack, and the commands that measure it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from itertools import groupby
from typing import TYPE_CHECKING, Any

from dlbricks_tui.api.documents import attributes_of, document, taken
from dlbricks_tui.api.estimating import Answer, Estimator
from dlbricks_tui.api.opening import reference_to
from dlbricks_tui.api.scope import EstimateOptions, MeasurementScope
from dlbricks_tui.bricks.cutting import Cut, LayerOrder
from dlbricks_tui.bricks.decomposition import Decomposition
from dlbricks_tui.errors import UserError
from dlbricks_tui.estimate.estimate import ByOthers, Coverage
from dlbricks_tui.estimate.explanation import Residual, by_region, by_type, costliest, residual, unpredicted_operators
from dlbricks_tui.estimate.parts import SlowPart, slowest
from dlbricks_tui.estimate.ranking import Point
from dlbricks_tui.estimate.system_estimate import FigureBasis, SystemEstimate, what_is_there
from dlbricks_tui.models.graph import LayerGraph, Level
from dlbricks_tui.models.input_shapes import listed
from dlbricks_tui.models.library import ModelSource
from dlbricks_tui.models.loading import UNLOADABLE
from dlbricks_tui.printable import shell_words
from dlbricks_tui.runtime.errors import RegistryError
from dlbricks_tui.runtime.traits import Format
from dlbricks_tui.runtime.variant import Precision, Variant
from dlbricks_tui.settings.cutting import CUTTING, LEVEL
from dlbricks_tui.settings.setting import fields_of, options_in_words
from dlbricks_tui.settings.variant import PRECISION, VARIANT
from dlbricks_tui.store.change import Verdict
from dlbricks_tui.store.selections import combinations
from dlbricks_tui.wording.answers import doubts_about, faster_words, named_in_commands
from dlbricks_tui.wording.numbers import counted, duration, names_of

if TYPE_CHECKING:
    from dlbricks_tui.config.config import Config
    from dlbricks_tui.estimate.comparison import Accuracy, SharedSettings
    from dlbricks_tui.estimate.ranking import Ranked, Ranking
    from dlbricks_tui.estimate.score import Score
    from dlbricks_tui.store.selections import Way

# The number of slowest sequences that a document lists unless it is asked for another.
MOST_SLOW = 10
# The next step where layers cannot be measured by themselves.
TIME_WHOLE = "run --end-to-end"


@dataclass(frozen=True, slots=True)
class TypeShare:
    """The layers of one type, and their part of the latency."""

    type: str
    layers: int
    latency_ms: float
    share: float


@dataclass(frozen=True, slots=True)
class RegionShare:
    """A part of the model's outermost chain, and its part of the latency; `repeats` is 0 outside of modules."""

    first: int
    last: int
    layers: int
    repeats: int
    latency_ms: float
    share: float


@dataclass(frozen=True, slots=True)
class BrickShare:
    """A brick in a context, and its part of the latency; `layer` is the first layer of its first use."""

    brick: str
    context: str
    layer: int
    uses: int
    latency_ms: float
    share: float
    # True if its latency was not measured.
    predicted: bool = False


@dataclass(frozen=True, slots=True)
class SlowSequence:
    """One of the slowest layer sequences, and its part of the latency."""

    # By index.
    layers: tuple[int, ...]
    names: tuple[str, ...]
    ops: tuple[str, ...]
    brick: str
    latency_ms: float
    share: float
    # The part of it and of all slower ones.
    cumulative_share: float
    # True if its latency was not measured.
    predicted: bool


@dataclass(frozen=True, slots=True)
class Remaining:
    """The bricks that a run would still measure; `seconds` is None where no run has taken place."""

    bricks: int
    seconds: float | None


@dataclass(frozen=True, slots=True)
class AnswerFigure:
    """The latency that answers for a model: the same in the workbench, on the command line and in reports."""

    latency_ms: float
    interval_ms: tuple[float, float]
    basis: FigureBasis
    # The times of the oldest and the newest measurement in it, in ISO 8601; None if nothing was measured.
    measured: tuple[str, str] | None


@dataclass(frozen=True, slots=True)
class ModelEstimate(Variant):
    """A model's latency composed of its bricks; latencies are None while no brick of it was measured."""

    model: str
    system: str
    runtime: str | None
    protocol: str | None
    level: Level
    granularity: int
    cut: Cut
    order: LayerOrder
    # True if the runtime computes with other numbers than the model has: see docs/reference/runtimes.md.
    accuracy_unchecked: bool
    sequential_ms: float | None
    parallel_ms: float | None
    workers: int | None
    workers_ms: float | None
    # Always 0: estimates of earlier versions contained a call of the runtime.
    call_ms: float | None
    # The images, sentences or rows in a second, by `measured_ms`, or else by `sequential_ms`.
    per_second: float | None
    # The 95 % interval of `sequential_ms`: its lower and its upper bound.
    interval_ms: tuple[float, float] | None
    # The sum as other models tell it.
    by_others: ByOthers
    coverage: Coverage
    complete: bool
    # True if the sums leave layers out; the model may then take more or less.
    partial: bool
    # The share of predicted latencies in `sequential_ms`.
    predicted_share: float
    # The operators of layers without a latency that the stored results tell too little about.
    unpredicted: tuple[str, ...]
    # True if the layers are those of the file; a runtime that fuses layers takes less.
    unfused: bool
    # The reason why no estimate is possible.
    obstacle: str | None
    # The command that measures more of the model: `run`, or `run --end-to-end`.
    next_step: str | None
    # The end-to-end latency, its 95 % interval, and the share of it by which the estimate is too high.
    measured_ms: float | None
    measured_interval_ms: tuple[float, float] | None
    error: float | None
    residual: Residual | None
    # Sentences on what makes the figures doubtful, such as a slow host, with the command that settles it.
    doubts: tuple[str, ...]
    critical_path: tuple[int, ...]
    types: tuple[TypeShare, ...]
    regions: tuple[RegionShare, ...]
    costliest: tuple[BrickShare, ...]
    # The slowest layer sequences, the slowest first.
    slowest: tuple[SlowSequence, ...]
    remaining: Remaining
    # The latency that answers; None if too little is known.
    answer: AnswerFigure | None


@dataclass(frozen=True, slots=True)
class ComparedCombination(Variant):
    """A model by one runtime in one variant, beside the best of all; latencies are None where none is known."""

    runtime: str
    level: Level
    protocol: str | None
    accuracy_unchecked: bool
    # The sequential estimate, if it has all layers, its 95 % interval, and the share of predicted latencies in it.
    estimate_ms: float | None
    interval_ms: tuple[float, float] | None
    predicted_share: float
    # The end-to-end latency.
    measured_ms: float | None
    # The images, sentences or rows in a second, by `measured_ms`, or else by `estimate_ms`.
    per_second: float | None
    # The time for one image, sentence or row over that of the first combination, which has 1.
    ratio: float | None
    # The probability of such a difference by chance; None for the best, and where samples are too few.
    p_value: float | None
    # The difference from the best, None for the best itself, and why it is unknown; else empty.
    verdict: Verdict | None
    reason: str
    best: bool
    # The command that measures it, if it has no measured latency.
    command: str | None


@dataclass(frozen=True, slots=True)
class Comparison:
    """A model in several combinations of runtime and variant on one system: the highest throughput first."""

    model: str
    system: str
    combinations: tuple[ComparedCombination, ...]
    # The number of combinations with results of only some of the model's layers, which are left out.
    left_out: int
    # The reasons why combinations that were asked for are left out.
    refusals: tuple[str, ...]


def comparison(found: Ranking) -> Comparison:
    """Return a comparison as plain values."""
    return taken(Comparison, found, combinations=tuple(map(_compared, found.combinations)))


def _compared(found: Ranked) -> ComparedCombination:
    one, estimate_ms = found.point.found, found.point.estimate_ms
    composed = None if estimate_ms is None else one.estimate.composed
    return taken(
        ComparedCombination,
        one.way,
        found,
        found.point,
        **one.variant.parts,
        protocol=one.way.protocol or None,
        accuracy_unchecked=one.variant.precision.is_unchecked,
        interval_ms=(composed.latency.low_ms, composed.latency.high_ms) if composed else None,
        predicted_share=one.estimate.predicted_share if composed else 0.0,
        p_value=None if found.change is None else found.change.p_value,
        reason="" if found.change is None else found.change.reason,
        best=found.is_best,
        command=found.point.cure or None,
    )


def model_estimate(decomposition: Decomposition, one: SystemEstimate, most_slow: int = MOST_SLOW) -> ModelEstimate:
    """Return an estimate with all that explains it, and so many of the slowest layer sequences."""
    found, graph = one.estimate, decomposition.graph
    composed, timed, figure = found.composed, one.end_to_end, one.figure
    dates: tuple[str, str] | None = None
    if figure is not None and figure.between is not None:
        oldest, newest = (datetime.fromtimestamp(it, timezone.utc).isoformat() for it in figure.between)
        dates = oldest, newest
    return taken(
        ModelEstimate,
        one,
        found,
        found.cutting,
        **one.variant.parts,
        system=one.way.system,
        runtime=one.way.runtime or None,
        protocol=one.way.protocol or None,
        accuracy_unchecked=one.variant.precision.is_unchecked,
        sequential_ms=composed.sequential_ms if composed else None,
        parallel_ms=composed.parallel_ms if composed else None,
        workers=found.options.workers,
        workers_ms=composed.workers_ms if composed else None,
        call_ms=0.0 if composed else None,
        interval_ms=(composed.latency.low_ms, composed.latency.high_ms) if composed else None,
        complete=found.coverage.complete,
        partial=found.is_partial,
        unpredicted=unpredicted_operators(graph, found),
        unfused=found.is_unfused,
        obstacle=found.obstacle or None,
        next_step=next_step(one),
        measured_ms=timed.value_ms if timed else None,
        measured_interval_ms=(timed.low_ms, timed.high_ms) if timed else None,
        residual=residual(one),
        doubts=doubts_about(one, named_in_commands(graph)),
        critical_path=found.critical_layers,
        types=tuple(taken(TypeShare, it, type=it.label) for it in by_type(graph, found)),
        regions=tuple(
            taken(RegionShare, it, first=min(it.layers), last=max(it.layers), layers=len(it.layers))
            for it in by_region(graph, found)
        ),
        costliest=tuple(
            taken(BrickShare, it, it.part, brick=it.part.brick.key, layer=it.part.layers[0]) for it in costliest(found)
        ),
        slowest=tuple(_slow(graph, it) for it in slowest(found, most_slow).parts),
        remaining=Remaining(len(found.remaining.pairs), found.remaining.seconds),
        answer=None
        if figure is None
        else AnswerFigure(figure.latency.value_ms, figure.latency[1:], figure.basis, dates),
    )


def _slow(graph: LayerGraph, it: SlowPart) -> SlowSequence:
    layers = [graph.layers[index] for index in it.part.layers]
    names, ops = tuple(layer.name for layer in layers), tuple(layer.op for layer in layers)
    return taken(
        SlowSequence, it, it.part, names=names, ops=ops, brick=it.part.brick.key, cumulative_share=it.cumulative
    )


def next_step(one: SystemEstimate) -> str | None:
    """Return the command that measures more of the model; None if no run does."""
    found = one.estimate
    if found.remaining.pairs and not found.obstacle:
        return "run"
    return TIME_WHOLE if found.is_partial and one.end_to_end is None else None


_CSV_COLUMNS = (
    *("model", "system", "runtime", "level", "granularity", "cut", "sequential_ms", "low_ms", "high_ms"),
    *("parallel_ms", "workers", "workers_ms", "measured_layers", "missing_layers", "unmeasurable_layers"),
    *("bridged_layers", "complete", "partial", "unfused", "obstacle", "measured_ms", "error"),
    *("batch", "threads", "precision", "per_second", "predicted_layers", "predicted_share", "accuracy_unchecked"),
)


def csv_row(one: ModelEstimate) -> dict[str, Any]:
    """Return an estimate as a row of values."""
    found: dict[str, Any] = document(one)
    low_ms, high_ms = one.interval_ms or (None, None)
    found |= {"low_ms": low_ms, "high_ms": high_ms, **{f"{name}_layers": n for name, n in found["coverage"].items()}}
    return {name: found[name] for name in _CSV_COLUMNS}


def slow_rows(one: ModelEstimate) -> list[dict[str, Any]]:
    """Return the slowest layers of an estimate as rows of values; a cell holds one value."""
    rows = [{"model": one.model, **document(it)} for it in one.slowest]
    return [row | {name: " ".join(map(str, row[name])) for name in ("layers", "names", "ops")} for row in rows]


_OF_WAY = ("system", "runtime", "level", "protocol")


def score_document(way: Way, score: Score) -> dict[str, Any]:
    """Return a score, and the way of measuring that it judges, as a JSON document."""
    how = document(attributes_of(way, *_OF_WAY))
    return {**how, **document(score), **attributes_of(score, "error", "holds")}


def accuracy_document(group: SharedSettings, found: Accuracy) -> dict[str, Any]:
    """Return the agreement of estimates with measurements as a JSON document."""
    how = document({**attributes_of(group.way, *_OF_WAY), **attributes_of(group, "granularity", "cut")})
    return {**how, **document(found)}


# The gaps of more models share a line.
_MOST_TOLD = 5


@dataclass(frozen=True, slots=True)
class Cures:
    """Builds the `dlbricks run` commands that would complete estimates.

    They repeat the options of this command that decide about the bricks to measure.
    """

    config: Config
    models: Sequence[str]
    # The options for inputs as they were given.
    given: Sequence[str]
    options: EstimateOptions

    def of(self, scope: MeasurementScope, lacking: Sequence[Answer], *options: str) -> str:
        """Return the commands for these models, one for each format."""
        where = "" if scope.is_host else f" there, on {scope.system}"
        commands = [f"`{self.command(scope, held, *options)}`" for held in _by_format(lacking)]
        return f"run {' and '.join(commands)}{where}"

    def command(self, scope: MeasurementScope, lacking: Sequence[Answer], *options: str) -> str:
        """Return the command for models of one format."""
        # A model that is not in the library was named by its path.
        models = [reference_to(it.source, has_name=it.source.name in self.models) for it in lacking[:_MOST_TOLD]]
        models += ["..."] * (len(lacking) > _MOST_TOLD)
        return shell_words(["dlbricks", "run", *models, *self._measuring_alike(scope, lacking), *options])

    def _measuring_alike(self, scope: MeasurementScope, lacking: Sequence[Answer]) -> Iterator[str]:
        """Yield the options without which a run would measure other bricks, or by another runtime."""
        wanted, cutting = self.options, self.options.cutting
        taken = {scope.threads_taken(it.source, it.found.way.runtime) for it in lacking}
        threads = wanted.threads or (taken.pop() if len(taken) == 1 else None)
        given = fields_of(wanted, VARIANT) | {"level": scope.level, "threads": threads}
        if not scope.is_host and wanted.runtime:
            # The other system may register it under another name, but not under another framework.
            given["runtime"] = lacking[0].found.way.runtime.partition("-")[0] or None
        chosen = ((it, given.get(it.field, getattr(cutting, it.field, None))) for it in (*CUTTING, LEVEL, *VARIANT))
        usual = {it: getattr(self.config, it.field) for it in CUTTING}
        yield from options_in_words(chosen, {PRECISION: Precision.F32, **usual})
        yield from self.given


def remarks_on_answers(
    estimator: Estimator, cures: Cures, scope: MeasurementScope, answers: Sequence[Answer]
) -> Iterator[str]:
    """Yield what a person should know beside estimates: faster combinations, and what each lacks."""
    for answer in answers:
        # Where the options chose the combination of a model, the fastest one may be another.
        if words := faster_words(answer.found, answer.fastest):
            yield f"{answer.source.name}: {words}"
    for answer in answers:
        yield from _unmeasurable(answer)
    yield from _unpredicted(answers)
    possible = [it for it in answers if not it.found.estimate.obstacle]
    yield from _impossible(cures, scope, answers)
    incomplete = [it for it in possible if it.found.estimate.remaining.pairs]
    yield from _gaps(cures, scope, [it for it in incomplete if it.found.is_measured])
    unmeasured = [it for it in incomplete if not it.found.is_measured]
    predicted = [it for it in unmeasured if it.found.estimate.composed is not None]
    yield from _nothing_fits(estimator, cures, scope, predicted, "nothing measured fits")
    without = [it for it in unmeasured if it.found.estimate.composed is None]
    yield from _nothing_fits(estimator, cures, scope, without, "nothing fits")


def level_remark(estimator: Estimator, scope: MeasurementScope) -> str:
    """Return that the estimates are at level written, if the results decided so."""
    if estimator.options.level is None and scope.level is Level.WRITTEN:
        return f"{scope.system} has results at level written and none at fused: estimating at written"
    return ""


def _unmeasurable(answer: Answer) -> Iterator[str]:
    """Yield which layers of a model cannot be measured, and for what reason."""
    found, layers = answer.found.estimate, answer.decomposition.graph.layers
    unmeasurable: dict[str, list[str]] = {}
    for part in found.parts:
        if part.reason:
            named = [f"layer {index} {layers[index].name!r} ({layers[index].op})" for index in part.layers]
            unmeasurable.setdefault(part.reason, []).extend(named)
    for reason, named in unmeasurable.items():
        yield f"unmeasurable: {answer.source.name}: {listed(named)}: {reason}"
    if found.composed is not None and found.is_partial and not found.remaining.pairs:
        yield (
            f"{answer.source.name}: the sum leaves out layers that cannot be measured by themselves, so the model may "
            "take more or less; `dlbricks run` with --end-to-end times the whole model"
        )


def _unpredicted(answers: Sequence[Answer]) -> Iterator[str]:
    """Yield for which models some missing layers have no prediction, and the operators of these."""
    refused = [
        (answer, operators)
        for answer in answers
        if answer.found.estimate.coverage.predicted
        and (operators := unpredicted_operators(answer.decomposition.graph, answer.found.estimate))
    ]
    if refused:
        unknown = list(dict.fromkeys(each for _, found in refused for each in found))
        known = f"too little is known of {names_of(unknown, _MOST_TOLD)}"
        yield f"not all missing layers of {_names(answer for answer, _ in refused)} are predicted: {known}"


def _impossible(cures: Cures, scope: MeasurementScope, answers: Sequence[Answer]) -> Iterator[str]:
    """Yield for what reason models have no estimate, and the command that times them whole."""
    for answer in answers:
        if obstacle := answer.found.estimate.obstacle:
            timed = answer.found.end_to_end is not None
            cure = "" if timed else f"; time the whole model: {cures.of(scope, [answer], '--end-to-end')}"
            yield f"no estimate of {answer.source.name} is possible: {obstacle}{cure}"


def _gaps(cures: Cures, scope: MeasurementScope, incomplete: Sequence[Answer]) -> Iterator[str]:
    """Yield how many layers models lack, and the commands that measure them."""
    if len(incomplete) > _MOST_TOLD:
        bricks = len({pair for it in incomplete for pair in it.found.estimate.remaining.pairs})
        cure = cures.of(scope, incomplete)
        yield f"{len(incomplete)} models are incomplete ({counted(bricks, 'brick')} to run): {cure}"
        return
    for answer in incomplete:
        coverage, remaining = answer.found.estimate.coverage, answer.found.estimate.remaining
        takes = "" if remaining.seconds is None else f", about {duration(max(1.0, remaining.seconds))}"
        known = f", {coverage.predicted} of them predicted" if coverage.predicted else ""
        lacks = f"it lacks {coverage.missing} of {counted(coverage.layers, 'layer')}{known}"
        yield (
            f"{answer.source.name} is incomplete: {lacks} "
            f"({counted(len(remaining.pairs), 'brick')} to run{takes}): {cures.of(scope, [answer])}"
        )


def _nothing_fits(
    estimator: Estimator, cures: Cures, scope: MeasurementScope, without: Sequence[Answer], what: str
) -> Iterator[str]:
    """Yield that no brick of these models was measured in the wanted way, and which results there are."""
    system = f"this host, {scope.system}," if scope.is_host else scope.system
    for held in _by_format(without):
        wanted = scope.runtime_for(held[0].source)
        runtime = f" by {wanted}" if wanted else ""
        there = what_is_there(combinations(estimator.store.select(order=())), scope.system, wanted)
        yield (
            f"{what} {_names(held)}: none of its bricks was measured at level {scope.level.value} on "
            f"{system}{runtime}; {there}; {cures.of(scope, held)}"
        )


def _by_format(answers: Sequence[Answer]) -> list[list[Answer]]:
    found: dict[Format, list[Answer]] = {}
    for answer in answers:
        found.setdefault(answer.source.format, []).append(answer)
    return list(found.values())


def _names(answers: Iterable[Answer]) -> str:
    return names_of([it.source.name for it in answers], _MOST_TOLD)


@dataclass(slots=True)
class VariantAnswers:
    """The answers of models in several variants, and the refusals of variants that this host cannot answer."""

    answers: list[Answer] = field(default_factory=list)
    # By the names of the models.
    points: dict[str, list[Point]] = field(default_factory=dict)
    refused: list[UserError] = field(default_factory=list)


def answers_of_variants(
    variants: Sequence[EstimateOptions],
    sources: Sequence[ModelSource],
    cures: Cures,
    opened: Callable[[EstimateOptions], AbstractContextManager[Estimator]],
    tell: Callable[[str], None],
) -> VariantAnswers:
    """Return the answers of models in each variant, and tell what they lack; raise the refusal where none can be.

    Variants that differ in threads and batch sizes only stand together: models are read once for them.
    """
    found = VariantAnswers()
    for _, group in groupby(variants, key=lambda it: replace(it, threads=None, batch=None)):
        options = list(group)
        with opened(options[0]) as first:
            for each in options:
                estimator, its_cures = replace(first, options=each), replace(cures, options=each)
                try:
                    scope = estimator.scope_of(sources)
                    held = estimator.answers(sources, scope)
                except (*UNLOADABLE, RegistryError) as refusal:
                    found.refused.append(refusal)
                    tell(f"left out: {refusal.in_command}")
                    continue
                found.answers += held
                for answer in held:
                    estimate = answer.found.estimate
                    is_incomplete = estimate.remaining.pairs and not estimate.obstacle
                    cure = its_cures.command(scope, [answer]) if is_incomplete else ""
                    point = Point(each.runtime or "", each.threads, answer.found, cure)
                    found.points.setdefault(answer.source.name, []).append(point)
                composed = [it for it in held if it.found.estimate.composed and it.found.estimate.remaining.pairs]
                for line in (*_gaps(its_cures, scope, composed), *_impossible(its_cures, scope, held)):
                    tell(line)
    if found.refused and not found.answers:
        raise found.refused[0]
    return found
