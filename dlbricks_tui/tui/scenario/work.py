"""Work of the scenario screen that takes time; the screen runs it in threads."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from dlbricks_tui.errors import UserError
from dlbricks_tui.runtime.variant import stated_threads
from dlbricks_tui.scenarios.scenario import Kind
from dlbricks_tui.tui.analysis.work import options_of
from dlbricks_tui.tui.scenario.form import ScenarioSettings

if TYPE_CHECKING:
    from dlbricks_tui.answers.estimating import Estimator
    from dlbricks_tui.answers.scenarios.predicting import ScenarioAnswer, ScenarioOptions
    from dlbricks_tui.config.config import Config
    from dlbricks_tui.documents.load_curve import LoadPoint
    from dlbricks_tui.estimate.system_estimate import SystemEstimate
    from dlbricks_tui.folders import DataFolder
    from dlbricks_tui.store.records import LoadTest
    from dlbricks_tui.tui.choices import Choices
    from dlbricks_tui.tui.open_model import ModelSpec
    from dlbricks_tui.tui.scenario.measuring import Measuring
    from dlbricks_tui.tui.session import Session

# The usual bound over the time of a single request.
_USUAL_BOUND = 10.0


class ScenarioView(NamedTuple):
    """A scenario of a model with its prediction, and the stored load tests of the model."""

    answer: ScenarioAnswer
    # The predicted latency of the percentile at rates of a server.
    curve: tuple[LoadPoint, ...]
    # What is known of the model by itself, on which the prediction rests.
    results: tuple[SystemEstimate, ...] = ()

    @property
    def tests(self) -> tuple[LoadTest, ...]:
        """All load tests of the model on the system, the newest first."""
        return self.answer.load_tests_of_model

    def is_of(self, test: LoadTest) -> bool:
        """Return whether a load test is of the same scenario and execution."""
        return any(it.uuid == test.uuid for it in self.answer.load_tests)


def begun_measuring(model: str, data: DataFolder) -> Measuring | None:
    """Return the measurement of a model that was begun before, and that nobody has followed to its end."""
    from dlbricks_tui.tui.scenario.measuring import Measuring

    return Measuring.begun(model, data)


def predict_scenario(
    session: Session, spec: ModelSpec, choices: Choices, config: Config, settings: ScenarioSettings
) -> ScenarioView | str:
    """Predict a scenario from stored results; return the reason where that is not possible."""
    from dlbricks_tui.answers.estimating import Remarks, open_estimator
    from dlbricks_tui.answers.scenarios.predicting import scenario_answer

    silent = Remarks(lambda _: None, str, lambda *_: None)
    options = replace(options_of(spec, choices, config), batch=None)
    if settings.threads is not None:
        options = replace(options, threads=settings.threads)
    if settings.runtime is not None:
        options = replace(options, runtime=settings.runtime)
    try:
        # A store of its own: reading models takes long, and other panels estimate meanwhile.
        with open_estimator(options, session.data, silent) as estimator:
            found = scenario_answer(estimator, spec.source, _options_for(estimator, spec, settings))
            scope = estimator.scope_of([spec.source])
            results = tuple(it.found for it in estimator.answers([spec.source], scope))
            if found.scenario.kind is not Kind.SERVER:
                return ScenarioView(found, (), results)
            return ScenarioView(found, tuple((it.rate, it.latency_ms.value) for it in found.curve()), results)
    except UserError as error:
        return str(error)


def _options_for(estimator: Estimator, spec: ModelSpec, settings: ScenarioSettings) -> ScenarioOptions:
    from dlbricks_tui.answers.scenarios.predicting import ScenarioOptions, scenario_answer
    from dlbricks_tui.scenarios.scenario import ScenarioError

    asked = ScenarioOptions(
        kind=Kind.SINGLE, percentile=settings.percentile, instances=settings.instances, full=settings.full
    )
    is_server = settings.kind is Kind.SERVER
    bound_ms = settings.bound_ms
    if is_server and bound_ms is None:
        service = scenario_answer(estimator, spec.source, asked).service
        if service is not None:
            bound_ms = float(f"{_USUAL_BOUND * service.single_ms:.2g}")
        elif settings.rate is None:
            raise ScenarioError(
                "The time of a request is not known, so there is no usual bound: set one, or run the model first."
            )
    rate = settings.rate if is_server else None
    return replace(asked, kind=settings.kind, bound_ms=bound_ms, rate=rate, batch_sizes=settings.batch_sizes)


def settings_of(test: LoadTest, settings: ScenarioSettings) -> ScenarioSettings:
    """Return the settings that predict the scenario of a load test."""
    return replace(
        settings,
        kind=Kind(test.kind),
        bound_ms=test.bound_ms,
        percentile=test.percentile,
        rate=None if test.sought else test.rate,
        batch_sizes=(test.batch_size,),
        instances=test.instances,
        threads=stated_threads(test.runtime),
        runtime=test.runtime,
    )


def runtimes_of(session: Session, spec: ModelSpec) -> tuple[str, ...]:
    """Return the names of the runtimes that run a model, the usual one first."""
    from dlbricks_tui.runtime.registry import Registry
    from dlbricks_tui.tui.run.settings import runtimes_for

    return runtimes_for(Registry(session.data.path), (spec.source,))
