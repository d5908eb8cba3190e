"""The models and runtimes that an evaluation means on this host, the runs that measure it, and what they found."""

import os
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

from dlbricks_tui.api.checks import ModelOfRun, TimedTogether, request_of_parts
from dlbricks_tui.api.from_run import FoundResult, found_result
from dlbricks_tui.api.measuring import MeasureOptions, request_by
from dlbricks_tui.api.opening import library
from dlbricks_tui.bricks.cutting import LayerOrder
from dlbricks_tui.errors import UserError
from dlbricks_tui.evaluations.evaluation import EvaluatedModel, EvaluatedRuntime, Evaluation
from dlbricks_tui.evaluations.evaluation import schema as schema
from dlbricks_tui.evaluations.matching import (
    QUIET,
    Match,
    asked_for,
    host_matches,
    is_possible,
    match_of,
    model_match,
    offered_by,
    runtime_matches,
    version_fits,
)
from dlbricks_tui.folders import SAMPLE_MODELS, DataFolder
from dlbricks_tui.host.fingerprint import fingerprint, instruction_sets
from dlbricks_tui.host.noise import disturbances
from dlbricks_tui.host_files import HostFiles
from dlbricks_tui.jobs.events import Event
from dlbricks_tui.measure.jobs import CutModel
from dlbricks_tui.measure.known import known_in
from dlbricks_tui.measure.plan import Plan, keys_of, plan
from dlbricks_tui.measure.results import conditions_of
from dlbricks_tui.models.content import content_sha256
from dlbricks_tui.models.errors import ModelError
from dlbricks_tui.models.graph import Numbers, Shape
from dlbricks_tui.models.library import Library, ModelSource
from dlbricks_tui.runs.events import ModelLeftOut, ModelLoading
from dlbricks_tui.runs.planning import cut_models
from dlbricks_tui.runs.request import RunRequest
from dlbricks_tui.runs.work import KnownGraphs
from dlbricks_tui.runtime.errors import WorkerLostError
from dlbricks_tui.runtime.registry import Registry
from dlbricks_tui.runtime.runtime import Runtime
from dlbricks_tui.runtime.traits import Format, traits_of
from dlbricks_tui.runtime.variant import AskedVariant, InstructionSet, Precision
from dlbricks_tui.settings.measuring import HOW
from dlbricks_tui.settings.setting import fields_of
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.records import Provenance
from dlbricks_tui.wording.events import note_of

# The beginning of the subject of matches of models.
_MODEL = "model "


@dataclass(frozen=True, slots=True)
class LocatedModel:
    """A model of an evaluation, its file on this host, and the inputs that the library does not know."""

    wanted: EvaluatedModel
    source: ModelSource
    sha256: str
    inputs: Mapping[str, Shape]
    values: Mapping[str, Numbers]
    match: Match


@dataclass(frozen=True, slots=True)
class EvaluationPart:
    """The models with the same inputs that one runtime of an evaluation measures."""

    models: tuple[LocatedModel, ...]
    # One for each variant.
    runtimes: tuple[Runtime, ...]
    # None if only scenarios are measured.
    request: RunRequest | None
    # The requirements on the system and the runtime that are not met.
    unmet: tuple[Match, ...]

    def marks_of(
        self, model: LocatedModel, origin: Provenance | None, evaluation: Evaluation, *, is_new: bool
    ) -> tuple[str, ...]:
        """Return the requirements that were not met when a result of a model was measured.

        The host may have been noisy then and be quiet now, or the other way round: a run records what it was.
        """
        now = [it for it in _unmet(self.unmet, [model]) if is_new or it.subject != QUIET]
        recorded = origin.unmet if origin is not None and origin.evaluation == evaluation.label else ()
        own = [it for it in recorded if not it.startswith(_MODEL) or it.startswith(f"{model.match.subject}:")]
        return tuple(dict.fromkeys((*(it.in_words for it in now), *own)))


@dataclass(frozen=True, slots=True)
class CheckedEvaluation:
    """An evaluation with its matches on this host, and the parts that can be measured here."""

    evaluation: Evaluation
    file: Path
    matches: tuple[Match, ...]
    parts: tuple[EvaluationPart, ...]

    @property
    def mismatches(self) -> tuple[Match, ...]:
        """The requirements that are not met."""
        return tuple([it for it in self.matches if not it.matches])


def check_file(file: Path, data: DataFolder) -> CheckedEvaluation:
    """Return an evaluation with what of this host, its runtimes and models matches it."""
    # Loaded here: only files need a reader of TOML.
    from dlbricks_tui.evaluations.file import read_evaluation

    return check_evaluation(read_evaluation(file), file, data)


def check_evaluation(evaluation: Evaluation, file: Path, data: DataFolder) -> CheckedEvaluation:
    """Return what of this host matches an evaluation, and the runs for it. Nothing is measured."""
    instructions = instruction_sets(HostFiles())
    watched = disturbances() if evaluation.system.quiet else None
    of_host = list(host_matches(evaluation.system, fingerprint(), instructions, watched))
    read = {traits_of(it.framework).format for it in evaluation.runtimes}
    models = [_located(it, file.absolute().parent, library(data), read) for it in evaluation.models]
    found = [it for it in models if isinstance(it, LocatedModel)]
    matches = [*of_host, *(it.match if isinstance(it, LocatedModel) else it for it in models)]
    parts: list[EvaluationPart] = []
    for wanted in evaluation.runtimes:
        traits = traits_of(wanted.framework)
        runtime = _nearest_runtime(wanted, data)
        of_runtime = list(runtime_matches(wanted, traits, runtime, os.environ, instructions))
        taken = [_in_format(it, traits.format) for it in found if traits.format in it.source.formats]
        if not taken and found:
            form = traits.format.value
            cure = f"state the {form} file of a model, or take the runtime out of the file"
            of_runtime.append(match_of(traits.title, f"{form} models", "none", False, cure, needed=True))
        matches += of_runtime
        if runtime is None or not taken:
            continue
        variants = _variants(wanted, runtime, instructions)
        for alike in _by_inputs(taken) if variants else ():
            # Variants that are impossible here are left out, and concern no result.
            unmet = tuple([it for it in (*of_host, *of_runtime) if not (it.matches or it.needed)])
            request = _request(evaluation, wanted, variants, alike, unmet)
            parts.append(EvaluationPart(tuple(alike), variants, request, unmet))
    for it in (it for it in found if not read.intersection(it.source.formats)):
        form = it.source.format.value
        asked, cure = f"a runtime for {form} models", f"add a runtime to the file that runs {form} models"
        matches.append(match_of(f"{_MODEL}{it.wanted.name}", asked, "none in the file", False, cure, needed=True))
    return CheckedEvaluation(evaluation, file, tuple(matches), tuple(parts))


def _located(
    wanted: EvaluatedModel, folder: Path, models: Library, formats: Collection[Format]
) -> LocatedModel | Match:
    """Return a model with its file, or the mismatch if there is none.

    The file of the stated content counts: at the path, by name in the library, or by content in the library. Without
    such a file, the first of another content is the mismatch. `formats` are those that the runtimes read.
    """
    first: LocatedModel | None = None
    for source in _named(wanted, folder, models, formats):
        located = _with_content(wanted, source)
        if located is not None and located.match.matches:
            return located
        first = first or located
    # Hashing the whole library is the last resort.
    others = (it for it in models.sources() if wanted.sha256 and it.name != wanted.name)
    for source in (each for it in others for each in _each_format(it, formats)):
        located = _with_content(wanted, source)
        if located is not None and located.match.matches:
            return located
    return first or model_match(wanted, None)


def _named(wanted: EvaluatedModel, folder: Path, models: Library, formats: Collection[Format]) -> Iterator[ModelSource]:
    """Yield the file at the path of a model, then those of its name in the library.

    Another file than the one at the path is the model only if it has the stated content.
    """
    if wanted.path:
        with suppress(OSError, ValueError):
            path = folder / wanted.path
            if path.is_file():
                yield from models.find(str(path))
        if not wanted.sha256:
            return
    for source in (it for it in models.sources() if it.name == wanted.name):
        # Any content: the model may be taken in each of its formats.
        yield from [source] if not wanted.sha256 else _each_format(source, formats)


def _each_format(source: ModelSource, formats: Collection[Format]) -> list[ModelSource]:
    """Return each file of a model; those of other formats come last."""
    ordered = sorted(source.formats, key=lambda form: form not in formats)
    return [replace(source.in_format(form), twin=None) for form in ordered]


def _with_content(wanted: EvaluatedModel, source: ModelSource) -> LocatedModel | None:
    """Return a model with a file, and whether that has the stated content; None if it cannot be read."""
    try:
        sha256 = content_sha256(source.path)
    except UserError:
        return None
    inputs = {name: it for name, it in wanted.inputs.items() if source.inputs.get(name) != tuple(it)}
    values = {name: it for name, it in wanted.values.items() if source.values.get(name) != tuple(it)}
    return LocatedModel(wanted, source, sha256, inputs, values, model_match(wanted, source.path, sha256))


def _in_format(model: LocatedModel, form: Format) -> LocatedModel:
    """Return a model with its file of a format."""
    source = replace(model.source.in_format(form), twin=None)
    is_same = source.path == model.source.path
    return replace(model, source=source, sha256=model.sha256 if is_same else content_sha256(source.path))


def _nearest_runtime(wanted: EvaluatedRuntime, data: DataFolder) -> Runtime | None:
    """Return the runtime of this host with the framework: one of a fitting version if there is any."""
    known = [it for it in Registry(data.path).all() if it.framework == wanted.framework]
    fitting = [it for it in known if version_fits(wanted.version, it.version)]
    alike = [it for it in fitting if dict(it.settings.environment).items() <= wanted.variables.items()]
    return next(iter([*alike, *fitting, *known]), None)


def _variants(
    wanted: EvaluatedRuntime, runtime: Runtime, instructions: Sequence[InstructionSet]
) -> tuple[Runtime, ...]:
    """Return the runtime in each variant that is possible here.

    A variable that the runtime has already keeps its value, which is then a mismatch if the evaluation states another.
    """
    traits, settings = runtime.traits, runtime.settings
    variables = {**wanted.variables, **dict(settings.environment)}
    tuned = replace(runtime, settings=replace(settings, environment=tuple(sorted(variables.items()))))
    possible: dict[str, Any] = {}
    for setting, offered in offered_by(traits, instructions).items():
        asked = asked_for(wanted, setting)
        possible[setting.field] = tuple([it for it in asked if is_possible(it, offered)])
        if asked and not possible[setting.field]:
            return ()
    # A model that is quantised in its file runs as it is.
    found = [
        tuned.with_variant(replace(it, precision=None) if it.precision is Precision.FILE else it)
        for it in replace(wanted, **possible).each(AskedVariant())
    ]
    return tuple({it.identity: it for it in found}.values())


def _by_inputs(models: Sequence[LocatedModel]) -> list[list[LocatedModel]]:
    """Return the models of each run: a run has one shape for each name of an input, and one model of each name."""
    groups: list[list[LocatedModel]] = []
    for it in models:
        for group in groups:
            has_inputs = (group[0].inputs, group[0].values) == (it.inputs, it.values)
            if has_inputs and all(other.source.name != it.source.name for other in group):
                group.append(it)
                break
        else:
            groups.append([it])
    return groups


def _request(
    evaluation: Evaluation,
    wanted: EvaluatedRuntime,
    variants: Sequence[Runtime],
    models: Sequence[LocatedModel],
    unmet: Sequence[Match],
) -> RunRequest | None:
    how = evaluation.measuring
    if not (how.bricks or how.end_to_end):
        return None
    options = MeasureOptions(
        granularity=how.granularity,
        cut=how.cut,
        order=how.order or LayerOrder.BRANCH,
        inputs=models[0].inputs,
        values=models[0].values,
        end_to_end=how.end_to_end,
        batch=wanted.batch or None,
        **fields_of(how, HOW),
    )
    request = request_by(variants, options, [it.source for it in models])
    marks = tuple([it.in_words for it in _unmet(unmet, models)])
    return replace(request, bricks=how.bricks, evaluation=evaluation.label, unmet=marks)


def _unmet(others: Sequence[Match], models: Sequence[LocatedModel]) -> list[Match]:
    """Return the requirements that results of these models do not meet."""
    return [*others, *(it.match for it in models if not it.match.matches)]


_LOG = "evaluations.log"


@dataclass(frozen=True, slots=True)
class ReadVariant:
    """The models of a part in one variant, read and cut, and the request that measures them."""

    part: EvaluationPart
    request: RunRequest
    # With the models of the evaluation that they are.
    models: tuple[tuple[LocatedModel, CutModel], ...]


@dataclass(frozen=True, slots=True)
class StoredFinding:
    """A model in one combination, and the result that the store has of it."""

    variant: ReadVariant
    located: LocatedModel
    model: CutModel
    result: FoundResult


def read_variants(
    checked: CheckedEvaluation, data: DataFolder, tell: Callable[[str], None]
) -> tuple[tuple[ReadVariant, ...], tuple[str, ...]]:
    """Return each variant with its models, and the models that cannot be read, each with the reason."""
    left_out: dict[str, None] = {}

    def take(event: Event) -> None:
        if isinstance(event, ModelLeftOut):
            left_out[f"{event.model} cannot be read: {event.reason}"] = None
        elif not isinstance(event, ModelLoading) and (note := note_of(event)) is not None:
            tell(note.text)

    # Runtimes that a file states twice are measured once.
    stated = {request: part for part in checked.parts if part.request is not None for request in part.request.parts}
    graphs: KnownGraphs = {}
    read: list[ReadVariant] = []
    for request, part in stated.items():
        library = Library(SAMPLE_MODELS, data.path, request.runtime.traits.format)
        located = {it.source.name: it for it in part.models}
        # Those that cannot be read are told as left out.
        with suppress(ModelError, WorkerLostError):
            models = cut_models(request, library, data.cache, data.log / _LOG, take, known=graphs)
            found = tuple([(located[it.decomposition.graph.name], it) for it in models])
            read += [ReadVariant(part, request, found)] if found else []
    return tuple(read), tuple(left_out)


class SharedRun(NamedTuple):
    """The variants of one run, and its models by their places among all findings."""

    variants: Sequence[ReadVariant]
    timed: TimedTogether


def shared_runs(read: Sequence[ReadVariant]) -> list[SharedRun]:
    """Return the runs for these variants. Those of a run have requests that differ in the runtime and its models only.

    A run has each runtime once, as its results come from one file of each name.
    """
    alike: defaultdict[tuple[RunRequest, int], list[ReadVariant]] = defaultdict(list)
    taken: Counter[tuple[RunRequest, str]] = Counter()
    places: dict[RunRequest, Mapping[int, ModelOfRun]] = {}
    numbers = count()
    for it in read:
        first, identity = read[0].request, it.request.runtime.identity
        shared = replace(it.request, runtime=first.runtime, models=first.models, method=first.method)
        alike[shared, taken[shared, identity]].append(it)
        taken[shared, identity] += 1
        graphs = [model.decomposition.graph for _, model in it.models]
        places[it.request] = {next(numbers): ModelOfRun(identity, each.name, each.batch_size) for each in graphs}
    found: list[SharedRun] = []
    for variants in alike.values():
        models = {place: model for it in variants for place, model in places[it.request].items()}
        found.append(SharedRun(variants, TimedTogether(request_of_parts([it.request for it in variants]), models)))
    return found


def lacks_results(run: SharedRun, store: ResultsDatabase) -> bool:
    """Return whether the store lacks a result that a run would measure."""
    return any(any(it.request.bricks or job.whole for job in plan_of(it, store).jobs) for it in run.variants)


def findings(read: Sequence[ReadVariant], store: ResultsDatabase) -> list[StoredFinding]:
    """Return what the store has of each model in each combination."""
    found: list[StoredFinding] = []
    for variant in read:
        for located, model in variant.models:
            result = found_result(store, variant.request, model, located.wanted.name, located.sha256)
            found.append(StoredFinding(variant, located, model, result))
    return found


def plan_of(variant: ReadVariant, store: ResultsDatabase) -> Plan:
    """Return what a run of a variant would measure, and what failed before."""
    request, models = variant.request, [model for _, model in variant.models]
    conditions = conditions_of(fingerprint().id, request.runtime, request.method)
    known = known_in(store, conditions, keys_of(models, request.end_to_end, request.method))
    return plan(models, known, request.rule, request.end_to_end, method=request.method)
