"""Scenarios: the load that a model can serve, predicted, or measured by LoadGen in a process of its own."""

import os
from collections.abc import Callable

from dlbricks_tui.answers.estimating import open_estimator
from dlbricks_tui.answers.opening import model_named
from dlbricks_tui.answers.scenarios.load_process import measure as measure_order
from dlbricks_tui.answers.scenarios.load_process import order_of
from dlbricks_tui.answers.scenarios.predicting import ScenarioOptions, scenario_answer
from dlbricks_tui.answers.scenarios.results import ScenarioResult, scenario_result
from dlbricks_tui.answers.scope import EstimateOptions
from dlbricks_tui.api.estimating import REMARKS, Model, folder_at
from dlbricks_tui.jobs.events import Event
from dlbricks_tui.wording.scenarios import message_line


def scenario(
    model: Model,
    options: ScenarioOptions,
    execution: EstimateOptions | None = None,
    *,
    measure: bool = False,
    progress: Callable[[str], None] | None = None,
    data: os.PathLike[str] | str | None = None,
) -> ScenarioResult:
    """Predict how much load a model can serve, from stored results, and measure it by LoadGen if `measure` is true.

    `execution` says by which runtime, in which variant, the model is executed. `progress` is called with a line when a
    test of LoadGen begins and ends. An exception, such as KeyboardInterrupt, ends the measurement and its processes. A
    notebook, in which an event loop runs, may call this function as any other.
    """
    folder, execution = folder_at(data), execution or EstimateOptions()
    source = model_named(os.fspath(model), folder)
    with open_estimator(execution, folder, REMARKS) as estimator:
        answer = scenario_answer(estimator, source, options)
    if not measure:
        return scenario_result(answer, None, folder, predicts=True)
    order = order_of(answer, is_system_named=execution.system is not None)

    def take(message: Event) -> None:
        if progress is not None and (line := message_line(message, order.scenario)):
            progress(line)

    return scenario_result(answer, measure_order(order, folder, take), folder, predicts=True)
