"""The scenarios of an evaluation: the newest stored test of each, or else a new measurement by LoadGen."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from dlbricks_tui.analysis.what_if import Execution
from dlbricks_tui.analysis.whole_models import executed_model, job_of
from dlbricks_tui.answers.evaluations.preparing import CheckedEvaluation, EvaluationPart, LocatedModel
from dlbricks_tui.answers.evaluations.results import EvaluatedLoad
from dlbricks_tui.answers.scenarios.load_process import LoadProcessError
from dlbricks_tui.answers.scenarios.predicting import ScenarioOptions, has_rate_of, has_settings_of
from dlbricks_tui.answers.scenarios.results import measured_scenario
from dlbricks_tui.evaluations.evaluation import EvaluatedScenario, Evaluation
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.host.fingerprint import fingerprint
from dlbricks_tui.runs.work import Workplace
from dlbricks_tui.scenarios.scenario import Scenario, ScenarioOrder
from dlbricks_tui.settings.loads import ARRIVAL, SERVING
from dlbricks_tui.settings.setting import fields_of
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.records import LoadTest

_LOG = "scenarios.log"

# Measures a scenario, and returns its test; raises LoadProcessError if that fails.
MeasureLoad = Callable[[ScenarioOrder], LoadTest]


@dataclass(frozen=True, slots=True)
class AskedLoad:
    """A model in a scenario: the order to measure it, and the newest stored test of it."""

    evaluation: Evaluation
    part: EvaluationPart
    model: LocatedModel
    order: ScenarioOrder
    stored: LoadTest | None

    def measured(self, data: DataFolder, measure: MeasureLoad) -> EvaluatedLoad:
        """Return the stored test, or measure the scenario."""
        failure, test = "", self.stored
        if test is None:
            try:
                test = measure(self.order)
            except LoadProcessError as error:
                failure = f"{self.model.wanted.name}, scenario {self.order.scenario.kind.value}: {error}"
        scenario, runtime = self.order.scenario, self.order.execution.runtime
        return EvaluatedLoad(
            model=self.model.wanted.name,
            runtime=runtime.identity,
            level=self.order.execution.level,
            kind=scenario.kind,
            percentile=scenario.percentile,
            bound_ms=scenario.bound_ms,
            rate=scenario.rate,
            batch_sizes=scenario.batch_sizes,
            instances=scenario.instances,
            measured=None if test is None else measured_scenario(test, data),
            failure=failure or None,
            unmet=self._marks(data),
        )

    def _marks(self, data: DataFolder) -> tuple[str, ...]:
        if self.stored is None:
            return self.order.unmet
        with ResultsDatabase(data.store) as store:
            origin = store.provenance_of(self.stored.uuid, self.stored.runtime)
        return self.part.marks_of(self.model, origin, self.evaluation, is_new=False)


@dataclass(frozen=True, slots=True)
class EvaluatedLoads:
    """All scenarios of an evaluation, ready to be measured."""

    asked: tuple[AskedLoad, ...]

    def measured(self, data: DataFolder, measure: MeasureLoad) -> tuple[EvaluatedLoad, ...]:
        """Return the results, and measure those that the store lacks."""
        return tuple([it.measured(data, measure) for it in self.asked])


def ready_loads(checked: CheckedEvaluation, data: DataFolder, *, again: bool) -> EvaluatedLoads:
    """Return the scenarios of an evaluation. All models are read; raise an error if one cannot be measured."""
    asked = tuple(_asked(checked.evaluation, checked.parts, data, again))
    if any(it.stored is None for it in asked):
        # Loaded here: stored tests need no LoadGen.
        from dlbricks_tui.scenarios.loadgen import require_loadgen

        require_loadgen()
    return EvaluatedLoads(asked)


def _asked(
    evaluation: Evaluation, parts: Sequence[EvaluationPart], data: DataFolder, again: bool
) -> Iterator[AskedLoad]:
    for part in parts if evaluation.scenarios else ():
        execution = Execution(part.runtimes[0], evaluation.measuring.level)
        for model in part.models:
            key = _key(model, execution, data)
            for wanted in evaluation.scenarios:
                scenario = _scenario(wanted)
                order = ScenarioOrder(
                    source=model.source,
                    execution=execution,
                    scenario=scenario,
                    inputs=model.inputs,
                    values=model.values,
                    evaluation=evaluation.label,
                    unmet=part.marks_of(model, None, evaluation, is_new=True),
                )
                yield AskedLoad(evaluation, part, model, order, None if again else _stored(key, order, data))


def _scenario(wanted: EvaluatedScenario) -> Scenario:
    return ScenarioOptions(batch_sizes=wanted.batch, **fields_of(wanted, (*ARRIVAL, *SERVING))).scenario()


def _key(model: LocatedModel, execution: Execution, data: DataFolder) -> str:
    """Return the key under which load tests of a model are stored: that of single requests."""
    how = Workplace(data), data.log / _LOG, model.inputs, model.values
    own = job_of(executed_model(model.source, execution, *how))
    if own.graph.batch_size != 1:
        own = job_of(executed_model(model.source, replace(execution, batch_size=1), *how))
    return own.key.model


def _stored(key: str, order: ScenarioOrder, data: DataFolder) -> LoadTest | None:
    """Return the newest stored test of the same scenario."""
    with ResultsDatabase(data.store) as store:
        found = store.load_tests_of(key, fingerprint().id)
    execution = order.execution
    return next(
        (
            it
            for it in found
            if it.runtime == execution.runtime.identity
            and it.level is execution.level
            and has_settings_of(it, order.scenario)
            and has_rate_of(it, order.scenario)
        ),
        None,
    )
