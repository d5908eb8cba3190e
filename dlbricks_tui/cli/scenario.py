"""`dlbricks scenario`: how much load a model can serve, predicted and measured."""

from __future__ import annotations

import argparse
from contextlib import closing
from typing import TYPE_CHECKING

from dlbricks_tui.answers.opening import library
from dlbricks_tui.answers.scenarios import (
    ScenarioAnswer,
    ScenarioOptions,
    scenario_answer,
)
from dlbricks_tui.cli.options import (
    USUAL_RUNTIME,
    add_models_argument,
    estimate_options_of,
    values_of,
)
from dlbricks_tui.cli.output import data_console, narrate, narrate_once, write_json, write_lines
from dlbricks_tui.cli.parser import (
    Parser,
    Status,
    Typed,
    UsageError,
    add_json_option,
    add_quiet_option,
    add_schema_option,
    add_setting,
    add_settings,
)
from dlbricks_tui.cli.signals import signals_interrupt
from dlbricks_tui.cli.store import open_estimator
from dlbricks_tui.errors import UserError
from dlbricks_tui.runtime.variant import remarks_on, stated_precision
from dlbricks_tui.scenarios.scenario import ScenarioKind, is_positive
from dlbricks_tui.settings.cutting import CUTTING
from dlbricks_tui.settings.loads import BATCHES, BOUND, FULL, INSTANCES, KIND, PERCENTILE, RATE
from dlbricks_tui.settings.setting import fields_of
from dlbricks_tui.settings.variant import KERNELS, PRECISION, RUNTIME, SYSTEM, THREADS
from dlbricks_tui.wording.scenarios import histogram_below

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dlbricks_tui.answers.loads import LoadProcessError, MeasuredTest
    from dlbricks_tui.documents.parts import Part
    from dlbricks_tui.folders import DataFolder

_WIDEST = 100
_PICTURE_LINES = 14


def register(parser: Parser) -> None:
    """Add the options of `scenario`."""
    add_models_argument(parser, many=False)
    parser.add_argument(KIND.option, metavar=KIND.kind.sign, type=Typed(KIND.kind), required=True, help=KIND.about)
    add_settings(parser, BOUND, PERCENTILE, RATE, INSTANCES)
    add_setting(parser, BATCHES, many=True, default=())
    about = f"{RUNTIME.about}, or with --predict one of the store"
    add_setting(parser, RUNTIME, default=None, about=about, usual=USUAL_RUNTIME)
    add_setting(parser, THREADS, default=None, about="threads of each instance")
    add_settings(parser, PRECISION, *KERNELS)
    add_setting(parser, FULL)
    how = parser.add_mutually_exclusive_group()
    how.add_argument(
        "--predict",
        action="store_true",
        help="predict from stored results in place of measuring; show stored tests too",
    )
    how.add_argument("--both", action="store_true", help="show the prediction beside the measurement")
    add_setting(parser, SYSTEM, about=f"with --predict: {SYSTEM.about}")
    add_quiet_option(parser)
    add_json_option(parser)
    add_schema_option(parser, "ScenarioResult", module="loads")
    parser.set_defaults(handler=answer_scenario)


def answer_scenario(args: argparse.Namespace) -> int:
    """Predict a scenario, measure it, or both, and say whether its verdict is positive."""
    answer = _answer(args)
    predicts = args.predict or args.both
    if predicts:
        for note in answer.notes if answer.prediction is not None else ():
            narrate_once(note)
        if answer.refusal:
            narrate(f"no prediction: {answer.refusal}")
    if answer.execution is not None:
        for remark in remarks_on([stated_precision(answer.execution.runtime.identity)]):
            narrate_once(remark)
    found = None if args.predict else _measured(args, answer)
    measured = None if isinstance(found, UserError) else found
    if args.json:
        # Loaded here: only documents need it.
        from dlbricks_tui.answers.loads import scenario_result

        write_json(scenario_result(answer, found, args.data, predicts=predicts))
    elif predicts or measured is not None:
        _show(answer, measured, args.data, predicts=predicts)
    if args.predict:
        return Status.DONE if answer.prediction is not None and answer.prediction.valid else Status.DONE_WITH_FAILURES
    return Status.DONE if measured is not None and is_positive(measured.test) else Status.DONE_WITH_FAILURES


def _answer(args: argparse.Namespace) -> ScenarioAnswer:
    options = ScenarioOptions(**values_of(args, (KIND, BOUND, PERCENTILE, RATE, BATCHES, INSTANCES, FULL)))
    sources = library(args.data).find(args.model)
    if len(sources) != 1:
        raise UsageError(f"{args.model} stands for {len(sources)} models; name one, such as table1:14")
    execution = estimate_options_of(
        args, SYSTEM, RUNTIME, THREADS, PRECISION, *KERNELS, **fields_of(args.config, CUTTING)
    )
    with open_estimator(execution, args.data) as estimator:
        return scenario_answer(estimator, sources[0], options)


def _measured(args: argparse.Namespace, answer: ScenarioAnswer) -> MeasuredTest | LoadProcessError:
    """Measure the scenario, and return its test, or the failure, which is narrated."""
    # Loaded here: predictions need no process.
    from dlbricks_tui.answers.loads import LoadProcessError, measure, order_of
    from dlbricks_tui.cli.job_progress import narrated_load

    order = order_of(answer, is_system_named=args.system is not None)
    try:
        with signals_interrupt(), closing(narrated_load(order.scenario, quiet=args.quiet)) as narration:
            measured = measure(order, args.data, narration.take)
    except LoadProcessError as error:
        narrate(str(error))
        return error
    for warning in measured.warnings:
        narrate_once(warning)
    return measured


def _show(answer: ScenarioAnswer, measured: MeasuredTest | None, data: DataFolder, *, predicts: bool) -> None:
    # Loaded here: the JSON document needs no tables.
    from dlbricks_tui.cli.rendering import show_parts
    from dlbricks_tui.documents.scenario import scenario_parts, stored_parts

    test = measured.test if measured is not None else answer.best_test or next(iter(answer.load_tests), None)
    prediction = answer.prediction if predicts else None
    logs = None if test is None else data.scenarios / test.uuid
    told = str(logs) if logs is not None and logs.is_dir() else ""
    show_parts(scenario_parts(answer, prediction, test, is_new=measured is not None, logs=told))
    if prediction is not None:
        show_parts(_curve(answer, measured), _WIDEST)
    if test is not None:
        write_lines(histogram_below(test, data_console().width))
    if measured is None:
        show_parts(stored_parts(answer))


def _curve(answer: ScenarioAnswer, measured: MeasuredTest | None) -> Iterator[Part]:
    """Yield a picture of a server: its predicted latency against the rate, and the tests of the measurement."""
    points = answer.curve()
    if answer.scenario.kind is not ScenarioKind.SERVER or not points:
        return
    # Loaded here: other kinds have no picture.
    from dlbricks_tui.documents.load_pictures import LoadCurve, load_plot
    from dlbricks_tui.documents.parts import BLANK_LINE, Plots

    predicted = [(it.rate, it.latency_ms.value) for it in points]
    curve = LoadCurve.of(answer, predicted, None if measured is None else measured.tests)
    yield BLANK_LINE
    yield Plots((load_plot(curve, answer.scenario),), _PICTURE_LINES)
