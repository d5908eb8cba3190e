"""Check models against earlier latencies: how to measure each of them again.

plan = check_plan(names, file, options, data)    the runs, and the models that cannot be measured
measured = measure_again(plan, data, execute)    each run several times
results = checked(plan, measured, data)          the verdicts
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from dlbricks_tui.answers.opening import InputOptions, files_for, library, open_loader
from dlbricks_tui.evaluations.baseline import Baseline, baselines_of_evaluation, baselines_of_records
from dlbricks_tui.evaluations.evaluation import EvaluationError, RecordedResult
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.host.fingerprint import fingerprint
from dlbricks_tui.measure.stopping import Adaptive
from dlbricks_tui.models.graph import Level, Numbers, Shape
from dlbricks_tui.models.library import ModelSource
from dlbricks_tui.models.loading import UNLOADABLE, Loader
from dlbricks_tui.recorded_host import processors_here
from dlbricks_tui.runs.request import InputShape, InputValue, RunRequest, chosen, usual_method
from dlbricks_tui.runtime.errors import RegistryError
from dlbricks_tui.runtime.registry import Registry
from dlbricks_tui.runtime.runtime import Runtime
from dlbricks_tui.runtime.variant import AskedVariant, Precision
from dlbricks_tui.settings.variant import KERNELS, USUAL_EXECUTION
from dlbricks_tui.store.change import FEWEST_PROCESSES, USUAL_SHARE
from dlbricks_tui.store.files import Damage
from dlbricks_tui.store.importing import read_export
from dlbricks_tui.store.records import EndToEnd, Provenance, RuntimeRecord, System

_EVALUATION_SUFFIX = ".toml"
_EXPORT_SUFFIXES = (".json", ".json.gz")
_EXPORTED = (EndToEnd, System, RuntimeRecord, Provenance)


@dataclass(frozen=True, slots=True)
class Baselines:
    """The earlier latencies in a file, the system that measured them (None: not known), and lines without a record."""

    found: tuple[Baseline, ...]
    system: System | None = None
    refused: tuple[Damage, ...] = ()


def read_baselines(file: Path, system: str | None = None) -> Baselines:
    """Return the earlier latencies in an evaluation, or those of one system in exported results.

    That system is the named one, this host, or the only one.
    """
    name = file.name.lower()
    if name.endswith(_EVALUATION_SUFFIX):
        # Loaded here: exports need no reader of evaluations.
        from dlbricks_tui.evaluations.file import read_evaluation

        evaluation = read_evaluation(file)
        if not evaluation.results:
            raise EvaluationError(
                f"{file} has no results to compare with: write it from a run, by `dlbricks evaluate --from RUN -o FILE`"
            )
        return Baselines(baselines_of_evaluation(evaluation))
    # An export without an ending is JSON.
    if file.suffix and not name.endswith(_EXPORT_SUFFIXES):
        raise EvaluationError(
            f"{file} is neither an evaluation (.toml) nor a file of exported results (.json, .json.gz): name one that "
            "`dlbricks evaluate --from` or `dlbricks results export` has written"
        )
    records, refused = read_export(file, _EXPORTED)
    measured = dict.fromkeys(it.system for it in records if isinstance(it, EndToEnd) and it.good)
    systems = {it.id: it for it in records if isinstance(it, System) and it.id in measured}
    if not systems:
        raise EvaluationError(
            f"{file} has no good results of whole models: measure them by `dlbricks run --end-to-end`, and export again"
        )
    chosen = _system_of(file, systems, system)
    return Baselines(baselines_of_records(records, chosen), systems[chosen], tuple(refused))


def _system_of(file: Path, systems: Mapping[str, System], named: str | None) -> str:
    if named is not None:
        fitting = [it.id for it in systems.values() if named in (it.id, it.name, it.instance_type)]
        if len(fitting) != 1:
            called = "no system" if not fitting else f"{len(fitting)} systems"
            raise EvaluationError(f"{file} has {called} called {named!r}: name one of {', '.join(sorted(systems))}")
        return fitting[0]
    host = fingerprint().id
    if host not in systems and len(systems) > 1:
        raise EvaluationError(
            f"{file} has results of {len(systems)} systems, and this host is none of them: name one by --system: "
            f"{', '.join(sorted(systems))}"
        )
    return host if host in systems else next(iter(systems))


# The samples of one process vary less than processes do, and only several of them show by how much.
USUAL_PROCESSES = FEWEST_PROCESSES
MOST_PROCESSES = 20


def refuse_impossible(by: float, processes: int) -> None:
    """Raise an error if a comparison cannot have this smallest change that counts, or this number of processes."""
    if not 0 < by < 1:
        raise EvaluationError(f"by {by:g}: give more than 0 and less than 1, such as 3%")
    if not 1 <= processes <= MOST_PROCESSES:
        raise EvaluationError(f"processes {processes}: give a number from 1 to {MOST_PROCESSES}")


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckOptions(InputOptions):
    """Options of a check."""

    # A smaller change counts as none.
    by: float = USUAL_SHARE
    # Each model is measured in this many processes.
    processes: int = USUAL_PROCESSES
    # The system to compare with, if the file has several.
    system: str | None = None
    # The runtime that measures now. None: each with a framework of the file.
    runtime: str | None = None

    def __post_init__(self) -> None:
        refuse_impossible(self.by, self.processes)


@dataclass(frozen=True, slots=True)
class Item:
    """A model in one combination: its earlier latency, and how to measure it now or why that is not possible."""

    name: str
    baseline: Baseline | None
    source: ModelSource | None = None
    runtime: Runtime | None = None
    # None: that of the file.
    batch: int | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class CheckedTogether:
    """The items that one run measures, by their places in the plan."""

    request: RunRequest
    places: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class CheckPlan:
    """The models of a check in all combinations, and the runs that measure them."""

    file: Path
    options: CheckOptions
    baselines: Baselines
    items: tuple[Item, ...]
    groups: tuple[CheckedTogether, ...]


def check_plan(names: Sequence[str], file: Path, options: CheckOptions, data: DataFolder) -> CheckPlan:
    """Return how to measure the models of these names again, or all of the file, in each of their combinations."""
    baselines, registry = read_baselines(file, options.system), Registry(data.path)
    framework = None if options.runtime is None else registry.find_installed(options.runtime).framework
    fitting = [it for it in baselines.found if framework in (None, it.result.framework)]
    if not fitting:
        known = ", ".join(dict.fromkeys(it.result.framework for it in baselines.found))
        raise EvaluationError(f"{file} has no results by {framework}, only by {known}: choose another runtime, or none")
    with open_loader(data, lambda *_: None) as loader:
        preparation = _Preparation(file, options, data, registry, loader)
        items = tuple([preparation.prepared(it) for it in _items(names, fitting, file, data)])
    return CheckPlan(file, options, baselines, items, tuple(_groups(items, options)))


def _items(names: Sequence[str], baselines: Sequence[Baseline], file: Path, data: DataFolder) -> Iterator[Item]:
    by_model: defaultdict[str, list[Baseline]] = defaultdict(list)
    for baseline in baselines:
        by_model[baseline.result.model].append(baseline)
    wanted: dict[str, ModelSource | None] = {}
    for name in names or by_model:
        if name in by_model:
            wanted.setdefault(name, None)
        else:
            wanted.update({source.name: source for source in library(data).find(name)})
    for name, source in wanted.items():
        if name not in by_model:
            yield Item(name, None, reason=f"{file.name} has no latency of it")
        yield from (Item(name, baseline, source) for baseline in by_model.get(name, ()))


@dataclass(frozen=True, slots=True)
class _Preparation:
    """Finds the model and the runtime of each item."""

    file: Path
    options: CheckOptions
    data: DataFolder
    registry: Registry
    loader: Loader

    def prepared(self, item: Item) -> Item:
        """Return an item with its model and runtime, or with the reason why it cannot be measured."""
        baseline = item.baseline
        if baseline is None:
            return item
        if baseline.timing is None:
            cure = "time it by `dlbricks run --end-to-end`"
            return replace(item, reason=f"{self.file.name} has results of its bricks only: {cure}")
        try:
            runtime = runtime_like(baseline, self.registry, self.options.runtime)
            (source,) = files_for([item.source or self._source_of(baseline, runtime)], runtime)
            inputs, values = _inputs_of(baseline, self.options)
            usual = self.loader.load(source, Level.WRITTEN, inputs, values).batch_size
        except (*UNLOADABLE, RegistryError) as refusal:
            return replace(item, reason=str(refusal))
        batch = None if baseline.result.batch == usual else baseline.result.batch
        return replace(item, source=source, runtime=runtime, batch=batch)

    def _source_of(self, baseline: Baseline, runtime: Runtime) -> ModelSource:
        """Return the model where an evaluation says that it is, or else that of the library by the same name."""
        places = [self.file.absolute().parent / model.path for model in baseline.models if model.path]
        stated = [library(self.data).find(str(place))[0] for place in places if place.is_file()]
        fitting = [source for source in stated if source.format is runtime.traits.format]
        return (fitting or library(self.data).find(baseline.result.model))[0]


def runtime_like(baseline: Baseline, registry: Registry, named: str | None = None) -> Runtime:
    """Return the runtime of this host with the framework and in the variant of an earlier result, of any version.

    An unchanged one comes first, then one of the same version.
    """
    found = baseline.result
    here = [it for it in registry.all() if it.framework == found.framework]
    if named is not None or not here:
        here = [registry.find_installed(named or found.framework)]
    alike = [_in_variant_of(it, found) for it in here]
    unchanged = [it for it in alike if it.identity == baseline.runtime]
    same_version = [it for it in alike if it.version == found.version]
    return [*unchanged, *same_version, *alike][0]


def _in_variant_of(runtime: Runtime, found: RecordedResult) -> Runtime:
    """Return a runtime with the threads, variables, precision and kernels of a result."""
    variables = tuple(sorted(found.variables.items()))
    untuned = replace(
        runtime,
        settings=replace(runtime.settings, threads=found.threads, environment=variables, precision=Precision.F32),
    )
    # A quantised file needs no precision.
    reduced = found.precision if found.precision.is_unchecked else None
    limits = {it.field: found.parts[it.field] for it in KERNELS if found.parts[it.field] is not USUAL_EXECUTION[it]}
    return untuned.on(processors_here()).with_variant(AskedVariant(precision=reduced, **limits))


def _inputs_of(baseline: Baseline, options: CheckOptions) -> tuple[Mapping[str, Shape], Mapping[str, Numbers]]:
    """Return the shapes and values of inputs; those of the options come before those of an evaluation."""
    if not baseline.models:
        return options.inputs, options.values
    stated = baseline.models[0]
    return {**stated.inputs, **options.inputs}, {**stated.values, **options.values}


def _groups(items: Sequence[Item], options: CheckOptions) -> Iterator[CheckedTogether]:
    """Yield a run for all models that are measured alike."""
    alike: defaultdict[RunRequest, list[int]] = defaultdict(list)
    for place, item in enumerate(items):
        if item.baseline is not None and item.runtime is not None:
            alike[_request(item, item.baseline, item.runtime, options)].append(place)
    for request, places in alike.items():
        sources = [source for place in places if (source := items[place].source) is not None]
        yield CheckedTogether(replace(request, models=chosen(sources)), tuple(places))


def _request(item: Item, baseline: Baseline, runtime: Runtime, options: CheckOptions) -> RunRequest:
    """Return the request of a run that measures an item; its models are left open."""
    inputs, values = _inputs_of(baseline, options)
    return RunRequest(
        models=(),
        runtime=runtime,
        batch_sizes=() if item.batch is None else (item.batch,),
        inputs=tuple(InputShape(name, shape) for name, shape in inputs.items()),
        values=tuple(InputValue(name, value) for name, value in values.items()),
        level=baseline.level,
        end_to_end=True,
        bricks=False,
        again=True,
        retry_failed=True,
        method=baseline.method or usual_method(Adaptive(), runtime, baseline.level),
    )
