"""Checks of models against earlier latencies: measure each again, and say whether it is slower.

plan = check_plan(names, file, options, data)    the runs, and the models that cannot be measured
measured = measured_by(plan, data, execute)      each run several times
results = checked(plan, measured, data)          the verdicts
"""

import os
import xml.etree.ElementTree as ET
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, NamedTuple

from dlbricks_tui import __version__
from dlbricks_tui.api.documents import attributes_of
from dlbricks_tui.api.measuring import MeasureOptions, request_of
from dlbricks_tui.api.opening import InputOptions, ModelLoaders, files_for, library
from dlbricks_tui.api.session import SILENT
from dlbricks_tui.bricks.identity import end_to_end_keys
from dlbricks_tui.errors import UserError
from dlbricks_tui.evaluations.baseline import (
    Baseline,
    Difference,
    baseline_of,
    baselines_of_evaluation,
    baselines_of_records,
    judged,
)
from dlbricks_tui.evaluations.evaluation import EvaluationError
from dlbricks_tui.files import write_named
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.host.fingerprint import fingerprint
from dlbricks_tui.jobs.folder import RunFolder
from dlbricks_tui.measure.results import runtime_record
from dlbricks_tui.measure.stopping import Adaptive
from dlbricks_tui.models.graph import Level, Numbers, Shape
from dlbricks_tui.models.library import ModelSource
from dlbricks_tui.models.loading import UNLOADABLE, Loader
from dlbricks_tui.printable import printable, printable_lines
from dlbricks_tui.recorded_host import processors_here
from dlbricks_tui.runs.events import FailedBefore, ModelLeftOut, ProgramFailed, RunEvents
from dlbricks_tui.runs.request import RunRequest, RuntimeChoice, chosen, usual_method
from dlbricks_tui.runs.run import RunOutcome
from dlbricks_tui.runtime.errors import RegistryError
from dlbricks_tui.runtime.registry import Registry
from dlbricks_tui.runtime.runtime import Runtime
from dlbricks_tui.runtime.variant import AskedVariant, Precision, Variant
from dlbricks_tui.settings.variant import KERNELS, USUAL_EXECUTION
from dlbricks_tui.store.change import FEWEST_PROCESSES, USUAL_SHARE, Change, Verdict
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.documents import DamagedResultError, StoreError
from dlbricks_tui.store.exchange import read_export
from dlbricks_tui.store.files import Damage
from dlbricks_tui.store.records import EndToEnd, Provenance, RuntimeRecord, System
from dlbricks_tui.store.selections import OLDEST_FIRST, equal
from dlbricks_tui.wording.answers import change_words, short_combination, unmeasured_line, verdict_line
from dlbricks_tui.wording.numbers import counted


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedModel(AskedVariant):
    """A model in one combination, measured again; latencies are None where there are none."""

    model: str
    # Today's runtime, by its identity, and the variant; None for a model that the file lacks.
    framework: str | None
    runtime: str | None
    level: Level | None
    was_ms: float | None
    is_ms: float | None
    # The share by which the latency has grown, and its 95 % interval.
    change: float | None
    interval: tuple[float, float] | None
    # Corrected for the number of models; None if there are too few samples.
    p_value: float | None
    significant: bool
    verdict: Verdict
    # Why the verdict is unknown; else empty.
    reason: str
    # False if the model could not be measured, or the file has no latency to compare with.
    compared: bool
    # What was different at the earlier measurement.
    differences: tuple[Difference, ...]
    # When the earlier latency was measured, and the numbers of samples.
    when: str | None
    was_samples: int
    is_samples: int
    # The runs that have measured it now.
    runs: tuple[str, ...]

    @property
    def is_failure(self) -> bool:
        """True if it is slower, or could not be compared."""
        return self.verdict is Verdict.SLOWER or not self.compared


def label_of(one: CheckedModel) -> str:
    """Return a model with its combination: `squeezenet1.1 (onnxruntime, 1 thread)`."""
    if one.framework is None or one.level is None:
        return one.model
    variant = Variant(**{it.name: getattr(one, it.name) for it in fields(AskedVariant)})
    return f"{one.model} ({short_combination(one.framework, variant, one.level)})"


def line_of(one: CheckedModel) -> str:
    """Return the verdict on a model in one line, with the differences between the measurements."""
    if one.was_ms is None or one.is_ms is None or one.change is None or one.interval is None:
        return unmeasured_line(label_of(one), one.reason)
    change = change_words(one.change, *one.interval)
    notes = [*([one.reason] if one.reason else []), *(it.in_words for it in one.differences)]
    return verdict_line(one.verdict, label_of(one), one.was_ms, one.is_ms, change, one.p_value, notes)


def other_system(plan: "CheckPlan") -> str:
    """Return the remark that another system has measured the baseline; empty if it was this one, or is not known."""
    there, here = plan.baselines.system, fingerprint().id
    if there is None or there.id == here:
        return ""
    return f"{plan.file.name} was measured on another system, {there.id}, and this is {here}: systems differ in speed"


def days_of(plan: "CheckPlan") -> str:
    """Return the days on which the baselines were measured: `2026-11-20`, `2026-11-20 to 2026-11-22`."""
    whens = [item.baseline.result.when for item in plan.items if item.baseline is not None]
    days = sorted({datetime.fromisoformat(when).date().isoformat() for when in whens if when})
    return " to ".join(dict.fromkeys([*days[:1], *days[-1:]]))


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
        if system is not None:
            raise EvaluationError(f"{file} is an evaluation, and does not tell systems apart: leave --system out")
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
        damage = f" ({counted(len(refused), 'line')} left out, the first: {refused[0]})" if refused else ""
        raise EvaluationError(
            f"{file} has no good results of whole models{damage}: measure them by `dlbricks run --end-to-end`, "
            "and export again"
        )
    chosen = _system_of(file, systems, system)
    return Baselines(baselines_of_records(records, chosen), systems[chosen], tuple(refused))


def _system_of(file: Path, systems: Mapping[str, System], named: str | None) -> str:
    if named is not None:
        # The id of a system counts before names and instance types that are equal to it.
        alike = [it.id for it in systems.values() if named in (it.id, it.name, it.instance_type)]
        fitting = [named] if named in systems else alike
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


@dataclass(frozen=True, kw_only=True)
class VerdictOptions:
    """The change that counts, and the measurements that show it."""

    # The share of a latency up to which a change counts as none.
    by: float = USUAL_SHARE
    # Each model is measured in this many processes, one after another.
    processes: int = USUAL_PROCESSES

    def __post_init__(self) -> None:
        if not 0 < self.by < 1:
            raise EvaluationError(f"by {self.by:g}: give more than 0 and less than 1, such as 3%")
        if not 1 <= self.processes <= MOST_PROCESSES:
            raise EvaluationError(f"processes {self.processes}: give a number from 1 to {MOST_PROCESSES}")


class ModelOfRun(NamedTuple):
    """A whole model that a run times: the identity of its runtime, its name and its batch size."""

    runtime: str
    name: str
    batch: int


@dataclass(frozen=True, slots=True)
class TimedTogether:
    """The whole models that one run times, by their places among those of all runs."""

    request: RunRequest
    models: Mapping[int, ModelOfRun]

    def request_for(self, places: Iterable[int]) -> RunRequest:
        """Return the request for the runtimes of these places."""
        runtimes = {self.models[place].runtime for place in places}
        return request_of_parts([it for it in self.request.parts if it.runtime.identity in runtimes])


def request_of_parts(parts: Sequence[RunRequest]) -> RunRequest:
    """Return the request of one run for all of these, which differ in the runtime and its models only."""
    first, *others = parts
    return replace(first, others=tuple([RuntimeChoice(it.runtime, it.models, it.method) for it in others]))


@dataclass(slots=True)
class Measured:
    """Today's results by their places, one of each run, and the reasons why others have none."""

    results: dict[int, list[EndToEnd]] = field(default_factory=lambda: defaultdict(list))
    reasons: dict[int, str] = field(default_factory=dict)
    # Results that are not good do not count.
    doubts: dict[int, str] = field(default_factory=dict)
    # True if the user has stopped a run.
    stopped: bool = False

    def take(self, group: TimedTogether, outcome: RunOutcome, data: DataFolder) -> None:
        """Add the results of a run, and the reasons why models have none."""
        results, reasons = _results_of(outcome, data), dict[str, str]()
        for event in RunEvents(RunFolder(data.runs / outcome.state.run).events_file).new():
            if isinstance(event, ModelLeftOut):
                reasons[event.model] = event.reason
            elif isinstance(event, ProgramFailed) and not event.brick:
                reasons[event.label] = event.message or event.reason
            elif isinstance(event, FailedBefore) and not event.brick:
                reasons[event.label] = event.reason
        for place, model in group.models.items():
            result = results.get(model)
            if result is None:
                # A label may have the batch size, or `end to end`.
                of_model = (f"{model.name} (", f"{model.name} end to end")
                told = (why for label, why in reasons.items() if label == model.name or label.startswith(of_model))
                self.reasons[place] = next(told, outcome.state.message) or "its run ended without a result"
            elif result.good:
                self.results[place].append(result)
            else:
                self.doubts[place] = f"its result is in doubt: {', '.join(result.flags)}"


def measure_again(
    measured: Measured,
    groups: Sequence[TimedTogether],
    processes: int,
    data: DataFolder,
    execute: Callable[[RunRequest], RunOutcome],
    *,
    go_on: bool = False,
) -> None:
    """Time all models once, then all of them again, until each has results of so many processes or cannot be timed.

    So the samples of a model come from different minutes. A run that is refused raises an error, unless others go on.
    """
    for number in range(1, processes + 1):
        for group in groups:
            done = {place for place in group.models if len(measured.results[place]) >= number}
            short = group.models.keys() - done - measured.reasons.keys()
            if not short:
                continue
            try:
                outcome = execute(group.request_for(short))
            except UserError as refusal:
                if isinstance(refusal, StoreError) or not go_on:
                    raise
                measured.reasons |= dict.fromkeys(short, str(refusal))
                continue
            measured.take(group, outcome, data)
            if outcome.state.was_stopped:
                measured.stopped = True
                return


def _results_of(outcome: RunOutcome, data: DataFolder) -> Mapping[ModelOfRun, EndToEnd]:
    """Return the results of a run by their models; several models can be the same network."""
    by_key: dict[tuple[str, str], EndToEnd] = {}
    with ResultsDatabase(data.store) as store:
        selection = store.select(equal(of="model", run=outcome.state.run), order=OLDEST_FIRST)
        for position in range(len(selection)):
            # The store reports damaged results.
            with suppress(DamagedResultError):
                result = selection.result(position)
                if isinstance(result, EndToEnd):
                    by_key[result.runtime, result.model] = result
    found: dict[ModelOfRun, EndToEnd] = {}
    for decomposition, estimate in outcome.estimates or ():
        graph, runtime = decomposition.graph, estimate.way.runtime
        for key in end_to_end_keys(graph).values():
            if (runtime, key) in by_key:
                found[ModelOfRun(runtime, graph.name, graph.batch_size)] = by_key[runtime, key]
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckOptions(VerdictOptions, InputOptions):
    """Options of a check."""

    # The system to compare with, if the file has several.
    system: str | None = None
    # The runtime that measures now. None: each with a framework of the file.
    runtime: str | None = None


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
class CheckPlan:
    """The models of a check in all combinations, and the runs that measure them."""

    file: Path
    options: CheckOptions
    baselines: Baselines
    items: tuple[Item, ...]
    groups: tuple[TimedTogether, ...]


def check_plan(names: Sequence[str], file: Path, options: CheckOptions, data: DataFolder) -> CheckPlan:
    """Return how to measure the models of these names again, or all of the file, in each of their combinations."""
    baselines, registry = read_baselines(file, options.system), Registry(data.path)
    framework = None if options.runtime is None else registry.find_installed(options.runtime).framework
    fitting = [it for it in baselines.found if framework in (None, it.result.framework)]
    if not fitting:
        known = ", ".join(dict.fromkeys(it.result.framework for it in baselines.found))
        raise EvaluationError(f"{file} has no results by {framework}, only by {known}: choose another runtime, or none")
    items: list[Item] = []
    with ModelLoaders(data, SILENT) as loaders:
        for item in _items(names, fitting, file, data):
            try:
                items.append(_prepared(item, file, options, data, registry, loaders.loader()))
            except (*UNLOADABLE, RegistryError) as refusal:
                items.append(replace(item, reason=str(refusal)))
    return CheckPlan(file, options, baselines, tuple(items), tuple(_groups(items, options)))


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


def _prepared(
    item: Item, file: Path, options: CheckOptions, data: DataFolder, registry: Registry, loader: Loader
) -> Item:
    """Return an item with its model and runtime, or with the reason why the file has nothing to compare it with."""
    baseline = item.baseline
    if baseline is None:
        return item
    if baseline.timing is None:
        cure = "time it by `dlbricks run --end-to-end`"
        return replace(item, reason=f"{file.name} has results of its bricks only: {cure}")
    runtime = runtime_like(baseline, registry, options.runtime)
    found = item.source
    if found is None:
        # An evaluation says where the model is, else that of the library by the same name counts.
        places = [file.absolute().parent / model.path for model in baseline.models if model.path]
        stated = [library(data).find(str(place))[0] for place in places if place.is_file()]
        fitting = [source for source in stated if source.format is runtime.traits.format]
        found = (fitting or library(data).find(baseline.result.model))[0]
    (source,) = files_for([found], runtime)
    usual = loader.load(source, Level.WRITTEN, *_inputs_of(baseline, options)).batch_size
    batch = None if baseline.result.batch == usual else baseline.result.batch
    return replace(item, source=source, runtime=runtime, batch=batch)


def runtime_like(baseline: Baseline, registry: Registry, named: str | None = None) -> Runtime:
    """Return the runtime of this host with the framework and in the variant of an earlier result, of any version.

    An unchanged one comes first, then one of the same version.
    """
    found = baseline.result
    here = [it for it in registry.all() if it.framework == found.framework]
    if named is not None or not here:
        here = [registry.find_installed(named or found.framework)]
    variables = tuple(sorted(found.variables.items()))
    # A quantised file needs no precision.
    reduced = found.precision if found.precision.is_unchecked else None
    limits = {it.field: found.parts[it.field] for it in KERNELS if found.parts[it.field] is not USUAL_EXECUTION[it]}
    variant, alike = AskedVariant(precision=reduced, **limits), list[Runtime]()
    for it in here:
        plain = replace(it.settings, threads=found.threads, environment=variables, precision=Precision.F32)
        alike.append(replace(it, settings=plain).on(processors_here()).with_variant(variant))
    return min(alike, key=lambda it: (it.identity != baseline.runtime, it.version != found.version))


def _inputs_of(baseline: Baseline, options: CheckOptions) -> tuple[Mapping[str, Shape], Mapping[str, Numbers]]:
    """Return the shapes and values of inputs; those of the options come before those of an evaluation."""
    if not baseline.models:
        return options.inputs, options.values
    stated = baseline.models[0]
    return {**stated.inputs, **options.inputs}, {**stated.values, **options.values}


def _groups(items: Sequence[Item], options: CheckOptions) -> Iterator[TimedTogether]:
    """Yield a run for all models that are measured alike."""
    alike: defaultdict[RunRequest, dict[int, ModelSource]] = defaultdict(dict)
    for place, item in enumerate(items):
        if item.baseline is not None and item.runtime is not None and item.source is not None:
            (inputs, values), level = _inputs_of(item.baseline, options), item.baseline.level
            how = MeasureOptions(
                inputs=inputs, values=values, level=level, batch=item.batch, again=True, retry_failed=True
            )
            method = item.baseline.method or usual_method(Adaptive(), item.runtime, level)
            request = request_of(how, RuntimeChoice(item.runtime, (), method), end_to_end=True)
            alike[replace(request, bricks=False)][place] = item.source
    for request, sources in alike.items():
        batches = {place: was.result.batch for place in sources if (was := items[place].baseline) is not None}
        models = {place: ModelOfRun(request.runtime.identity, sources[place].name, it) for place, it in batches.items()}
        yield TimedTogether(replace(request, models=chosen(list(sources.values()))), models)


def measured_by(plan: CheckPlan, data: DataFolder, execute: Callable[[RunRequest], RunOutcome]) -> Measured:
    """Measure everything in as many processes as the options say."""
    measured = Measured()
    measure_again(measured, plan.groups, plan.options.processes, data, execute, go_on=True)
    return measured


def verdict_of(change: Change | None, lacking: str) -> dict[str, Any]:
    """Return what a document says of a change; where nothing was compared, the verdict is unknown for that reason."""
    if change is None:
        return {"change": None, "interval": None, "significant": False, "verdict": Verdict.UNKNOWN, "reason": lacking}
    return attributes_of(change, "change", "interval", "significant", "verdict", "reason")


def _today(item: Item, results: Sequence[EndToEnd], store: ResultsDatabase) -> Baseline | None:
    if item.baseline is None or item.runtime is None or not results:
        return None
    system, origin = fingerprint(), store.provenance_of(results[-1].run, results[-1].runtime)
    found = baseline_of(results, runtime_record(item.runtime, system), system, origin)
    # The variant is the same. Identities of runtimes do not tell that a model is quantised in its file.
    return replace(found, result=replace(found.result, precision=item.baseline.result.precision))


def checked(plan: CheckPlan, measured: Measured, data: DataFolder) -> tuple[CheckedModel, ...]:
    """Return the verdict on each item."""
    with ResultsDatabase(data.store) as store:
        today = [_today(it, measured.results.get(place, ()), store) for place, it in enumerate(plan.items)]
    judgements = judged([(it.baseline, now) for it, now in zip(plan.items, today, strict=True)], plan.options.by)
    found: list[CheckedModel] = []
    for place, (item, it) in enumerate(zip(plan.items, judgements, strict=True)):
        was, now, change = it.was, it.now, it.change
        lacking = measured.reasons.get(place) or measured.doubts.get(place) or item.reason
        recorded = None if was is None else was.result
        result = CheckedModel(
            model=item.name,
            framework=None if recorded is None else recorded.framework,
            runtime=None if item.runtime is None else item.runtime.identity,
            **({} if recorded is None else recorded.parts),
            level=None if was is None else was.level,
            was_ms=None if was is None or was.timing is None else was.timing.value_ms,
            is_ms=None if change is None else change.is_ms,
            p_value=None if change is None else change.p_value,
            **verdict_of(change, lacking),
            compared=change is not None,
            differences=it.differences,
            when=None if recorded is None else recorded.when,
            was_samples=0 if recorded is None else len(recorded.samples_ms),
            is_samples=0 if now is None else len(now.result.samples_ms),
            runs=tuple(it.run for it in measured.results.get(place, ())),
        )
        found.append(result)
    return tuple(found)


_SUITE, _PACKAGE = "dlbricks check", "dlbricks.check"


def refuse_unwritable(path: Path) -> None:
    """Raise EvaluationError before anything is measured if the file of the verdicts cannot be written."""
    if path.is_dir():
        raise EvaluationError(f"--junit {path}: that is a folder; name a file in it")
    if not path.absolute().parent.is_dir():
        raise EvaluationError(f"--junit {path}: there is no folder {path.absolute().parent}")
    # A device or a pipe is written to as it is.
    there = path.resolve().parent if path.is_file() or not path.exists() else path
    if not os.access(there, os.W_OK):
        raise EvaluationError(f"--junit {path}: this user may not write to {there}; name another file")


def write_junit(path: Path, checked: Sequence[CheckedModel], plan: CheckPlan, began: datetime) -> None:
    """Write the verdicts of a check that began then."""
    seconds = (datetime.now(timezone.utc) - began).total_seconds()
    stated = {"against": str(plan.file), "by": f"{plan.options.by:g}", "dlbricks": __version__}
    content = junit_xml(checked, began, seconds, fingerprint().id, stated).encode()
    try:
        write_named(path, lambda file: file.write(content))
    except OSError as error:
        raise EvaluationError(f"--junit {path} cannot be written: {error.strerror}; name another file") from error


def junit_xml(
    checked: Sequence[CheckedModel], began: datetime, seconds: float, system: str, stated: Mapping[str, str]
) -> str:
    """Return a check as JUnit XML, with what is stated of it."""
    root = ET.Element("testsuites")
    cases = [_case(one) for one in checked]
    suite = ET.SubElement(
        root,
        "testsuite",
        id="0",
        package=_PACKAGE,
        name=_SUITE,
        tests=str(len(cases)),
        failures=str(_count(cases, "failure")),
        errors=str(_count(cases, "error")),
        skipped=str(_count(cases, "skipped")),
        time=f"{seconds:.3f}",
        # The schema has no time zone.
        timestamp=began.strftime("%Y-%m-%dT%H:%M:%S"),
        hostname=printable(system),
    )
    properties = ET.SubElement(suite, "properties")
    for name, value in stated.items():
        ET.SubElement(properties, "property", name=name, value=printable(value))
    suite.extend(cases)
    for name in ("system-out", "system-err"):
        ET.SubElement(suite, name)
    ET.indent(root)
    return f"<?xml version='1.0' encoding='utf-8'?>\n{ET.tostring(root, encoding='unicode')}\n"


def _case(one: CheckedModel) -> ET.Element:
    # CI systems draw the times of a test case, which are today's latencies here.
    seconds = (one.is_ms or 0.0) / 1000
    case = ET.Element("testcase", name=printable(label_of(one)), classname=_PACKAGE, time=f"{seconds:.6f}")
    outcome = _outcome(one)
    if outcome:
        # Characters that XML cannot hold, such as ESC, are spelled out.
        found = ET.SubElement(case, outcome, message=printable(one.reason or line_of(one)), type=one.verdict.value)
        found.text = printable_lines("\n".join([line_of(one), *(it.in_words for it in one.differences)]))
    return case


def _outcome(one: CheckedModel) -> str:
    """Return the element of what is wrong; empty for a test case that passes."""
    if one.verdict is Verdict.SLOWER:
        return "failure"
    if one.verdict is Verdict.UNKNOWN:
        return "skipped" if one.compared else "error"
    return ""


def _count(cases: Sequence[ET.Element], outcome: str) -> int:
    return sum(case.find(outcome) is not None for case in cases)
