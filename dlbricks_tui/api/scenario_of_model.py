"""A scenario of one model as a user sets it: its prediction, and the load tests of the model."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

from dlbricks_tui.api import scenarios as predicting
from dlbricks_tui.api.scenarios import ScenarioOptions
from dlbricks_tui.runtime.variant import stated_threads
from dlbricks_tui.scenarios.scenario import ScenarioError, ScenarioKind, usual_percentile
from dlbricks_tui.settings.loads import AskedScenario

if TYPE_CHECKING:
    from dlbricks_tui.api.estimating import Estimator
    from dlbricks_tui.api.scenarios import ScenarioAnswer
    from dlbricks_tui.estimate.system_estimate import SystemEstimate
    from dlbricks_tui.models.library import ModelSource
    from dlbricks_tui.store.records import LoadTest

# The usual bound over the time of a single request.
_USUAL_BOUND = 10.0


@dataclass(frozen=True, kw_only=True)
class ScenarioSettings(AskedScenario):
    """A scenario as the user has chosen it; None is the usual value.

    The default bound of a server is ten times its estimate; other kinds have none.
    """

    # The names of the runtimes to choose from, the usual one first.
    runtimes: tuple[str, ...] = ()
    kind: ScenarioKind = ScenarioKind.SERVER
    # The largest batch of waiting requests, or several sizes: these ones.
    batch_sizes: tuple[int, ...] = ()
    threads: int | None = None
    runtime: str | None = None
    # What the usual bound stands for, once it is known.
    usual_bound_ms: float | None = field(default=None, compare=False)

    @property
    def bound_in_words(self) -> str:
        bound_ms = self.usual_bound_ms if self.bound_ms is None else self.bound_ms
        if bound_ms is not None:
            return f"{bound_ms:g} ms"
        return "default" if self.kind is ScenarioKind.SERVER else "none"

    @property
    def percentile_in_words(self) -> str:
        return f"p{usual_percentile(self.kind) if self.percentile is None else self.percentile:g}"

    def like(self, test: LoadTest) -> ScenarioSettings:
        """Return the settings that predict the scenario of a load test."""
        return replace(
            self,
            kind=ScenarioKind(test.kind),
            bound_ms=test.bound_ms,
            percentile=test.percentile,
            rate=None if test.sought else test.rate,
            batch_sizes=(test.batch_size,),
            instances=test.instances,
            threads=stated_threads(test.runtime),
            runtime=test.runtime,
        )


class ScenarioOfModel(NamedTuple):
    """A scenario of a model with its prediction, and the stored load tests of the model."""

    answer: ScenarioAnswer
    # The predicted latency of the percentile at rates of a server.
    curve: tuple[tuple[float, float], ...]
    # What is known of the model by itself, on which the prediction rests.
    results: tuple[SystemEstimate, ...] = ()

    def is_of(self, test: LoadTest | None) -> bool:
        """Return whether a load test is of the same scenario and execution."""
        return test is not None and any(it.uuid == test.uuid for it in self.answer.load_tests)


def predicted_scenario(estimator: Estimator, source: ModelSource, settings: ScenarioSettings) -> ScenarioOfModel:
    """Predict a scenario from stored results; raise a UserError where that is not possible."""
    found = predicting.scenario_answer(estimator, source, _options_for(estimator, source, settings))
    results = tuple(it.found for it in estimator.answers([source], estimator.scope_of([source])))
    is_server = found.scenario.kind is ScenarioKind.SERVER
    curve = tuple((it.rate, it.latency_ms.value) for it in found.curve()) if is_server else ()
    return ScenarioOfModel(found, curve, results)


def _options_for(estimator: Estimator, source: ModelSource, settings: ScenarioSettings) -> ScenarioOptions:
    asked = ScenarioOptions(
        kind=ScenarioKind.SINGLE, percentile=settings.percentile, instances=settings.instances, full=settings.full
    )
    is_server = settings.kind is ScenarioKind.SERVER
    bound_ms = settings.bound_ms
    if is_server and bound_ms is None:
        service = predicting.scenario_answer(estimator, source, asked).service
        if service is not None:
            bound_ms = float(f"{_USUAL_BOUND * service.single_ms:.2g}")
        elif settings.rate is None:
            raise ScenarioError(
                "nothing was measured of it yet, so there is no default bound: set one, or run the model first"
            )
    rate = settings.rate if is_server else None
    return replace(asked, kind=settings.kind, bound_ms=bound_ms, rate=rate, batch_sizes=settings.batch_sizes)
