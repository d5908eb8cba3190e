"""`dlbricks scenario`: how much load a model can serve, predicted and measured."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

from dlbricks_tui.cli.jobs import detach
from dlbricks_tui.cli.options import USUAL_RUNTIME, add_models_argument, estimate_options_of, values_of
from dlbricks_tui.cli.output import narrate, narrate_once, show_parts, write_json
from dlbricks_tui.cli.parser import Arguments, Parser, Status, Typed, UsageError
from dlbricks_tui.cli.progress import signals_interrupt
from dlbricks_tui.errors import UserError
from dlbricks_tui.settings.cutting import CUTTING
from dlbricks_tui.settings.language import WEIGHTS
from dlbricks_tui.settings.loads import (
    ANY_KIND,
    ANY_PRECISION,
    BATCHES,
    BOUND,
    FULL,
    INSTANCES,
    KIND,
    PERCENTILE,
    RATE,
    TOKENS,
    USERS,
    UserLoad,
)
from dlbricks_tui.settings.setting import fields_of
from dlbricks_tui.settings.variant import KERNELS, PRECISION, RUNTIME, SYSTEM, THREADS

if TYPE_CHECKING:
    from dlbricks_tui.api.loads import LoadProcessError, MeasuredTest
    from dlbricks_tui.api.scenarios import ScenarioAnswer
    from dlbricks_tui.api.session import Session
    from dlbricks_tui.folders import DataFolder
    from dlbricks_tui.scenarios.scenario import ScenarioOrder

_WIDEST = 100
_WITH_TOKENS = "with `tokens`:"
_PICTURE_LINES = 14


def register(parser: Parser) -> None:
    """Add the options of `scenario`."""
    add_models_argument(parser, many=False, more="; with `tokens` a language model, as `dlbricks llm` takes it")
    kind = ANY_KIND.kind
    parser.add_argument(KIND.option, metavar=kind.sign, type=Typed(kind), required=True, help=ANY_KIND.about)
    parser.add_setting(BOUND)
    parser.add_setting(PERCENTILE, usual="90 for `single` and `tokens`, else 99")
    parser.add_settings(RATE, INSTANCES)
    about = f"{BATCHES.about}; with `tokens`, make up to N answers together"
    parser.add_setting(BATCHES, many=True, default=(), about=about, usual=f"{BATCHES.usual}; `tokens` 8")
    about = f"{RUNTIME.about}, or with --predict one of the store"
    parser.add_setting(RUNTIME, default=None, about=about, usual=USUAL_RUNTIME)
    parser.add_setting(THREADS, default=None, about="threads of each instance")
    parser.add_settings(ANY_PRECISION, *KERNELS, FULL)
    for setting in TOKENS:
        about = setting.about if setting.about.startswith(_WITH_TOKENS) else f"{_WITH_TOKENS} {setting.about}"
        parser.add_setting(setting, many=setting is USERS, default=() if setting is USERS else None, about=about)
    how = parser.add_mutually_exclusive_group()
    about = "predict from stored results in place of measuring; show stored tests too"
    parser.add_flag("--predict", about=about, to=how)
    parser.add_flag("--both", about="show the prediction beside the measurement", to=how)
    parser.add_detach(to=how)
    parser.add_setting(SYSTEM, about=f"with --predict: {SYSTEM.about}")

    def of_tokens(args: Arguments) -> bool:
        return bool(args.kind is UserLoad.TOKENS)

    others = (BOUND, RATE, INSTANCES, FULL, SYSTEM, *KERNELS)
    without = (*(it.option for it in others), "--both", "--input", "--value")
    parser.only(*without, where=lambda it: not of_tokens(it), why="is not for --kind tokens: leave it out")
    parser.only(*(it.option for it in TOKENS), where=of_tokens, why="is for --kind tokens: leave it out")
    parser.end(answer_scenario, "loads.ScenarioDocument", quiet=True)


def answer_scenario(args: Arguments) -> int:
    """Predict a scenario, measure it, or both, and say whether its verdict is positive."""
    if args.kind is UserLoad.TOKENS:
        return _answer_users(args)
    if args.precision is not None and not PRECISION.kind.accepts(args.precision):
        raise UsageError(f"--precision {args.precision.value} is for --kind tokens")
    answer = _answer(args)
    predicts = args.predict or args.both
    if predicts:
        if answer.prediction is not None:
            narrate_once(*answer.notes)
        if answer.refusal:
            narrate(f"no prediction: {answer.refusal}")
    narrate_once(*answer.remarks)
    if args.detach:
        # Loaded here: a prediction needs none of it.
        from dlbricks_tui.api.loads import order_of

        order = order_of(answer, is_system_named=args.system is not None)
        return detach("load test", order, [answer.source.name], args)
    found = None if args.predict else _measured(args, answer)
    measured = None if isinstance(found, UserError) else found
    if args.json:
        # Loaded here: only documents need it.
        from dlbricks_tui.api.loads import scenario_result

        write_json(scenario_result(answer, found, args.session.data, predicts=predicts))
    elif predicts or measured is not None:
        _show(answer, measured, args.session.data, predicts=predicts)
    if args.predict:
        return Status.of(answer.prediction is None or not answer.prediction.valid)
    return Status.of(measured is None or not measured.is_positive)


def _answer(args: Arguments) -> ScenarioAnswer:
    # Loaded here: the help needs no store.
    from dlbricks_tui.api.scenarios import ScenarioOptions

    options = ScenarioOptions(**values_of(args, (KIND, BOUND, PERCENTILE, RATE, BATCHES, INSTANCES, FULL)))
    settings = (SYSTEM, RUNTIME, THREADS, PRECISION, *KERNELS)
    execution = estimate_options_of(args, *settings, **fields_of(args.config, CUTTING))
    return args.session.scenario_answer(args.model, options, execution)


def _answer_users(args: Arguments) -> int:
    """Say how many users of a language model are served, and whether those that were asked for are."""
    from dlbricks_tui.api.jobs import words_of
    from dlbricks_tui.api.language_answers import named_model
    from dlbricks_tui.api.loads import TokenLoadOptions, measure_token_load, order_of_load, token_load
    from dlbricks_tui.cli.progress import JobNarration
    from dlbricks_tui.documents.token_loads import token_load_parts

    given = values_of(args, (*TOKENS, PERCENTILE))
    threads = args.threads or args.config.threads
    given |= {"threads": threads and (threads,), "runtimes": args.runtime and (args.runtime,)}
    if args.precision is not None:
        given["precisions"] = (WEIGHTS.kind.read(args.precision.value),)
    if len(args.batch) > 1:
        raise UsageError("--batch: --kind tokens makes up to N answers together: give one number")
    if args.batch:
        (given["batch"],) = args.batch
    options = TokenLoadOptions(**{name: value for name, value in given.items() if value is not None})
    model = named_model(args.model)
    if args.detach:
        return detach("language model", order_of_load(model, options, args.session.data), [model.name], args)
    failed = 0
    if args.predict:
        answer = token_load(model, options, args.session.data)
    else:
        narration = JobNarration(words_of("language model", None), quiet=args.quiet)
        with signals_interrupt():
            answer = measure_token_load(model, options, args.session.data, narration.take)
        failed = narration.failed
    if args.json:
        write_json(answer)
    else:
        show_parts(token_load_parts(answer), _WIDEST)
    return Status.of(failed or not answer.is_met(options.users))


def _measured(args: Arguments, answer: ScenarioAnswer) -> MeasuredTest | LoadProcessError:
    """Measure the scenario, and return its test, or the failure, which is narrated."""
    from dlbricks_tui.api.loads import LoadProcessError, order_of

    try:
        return measure_shown(order_of(answer, is_system_named=args.system is not None), args.session, quiet=args.quiet)
    except LoadProcessError as error:
        narrate(str(error))
        return error


def measure_shown(order: ScenarioOrder, session: Session, *, quiet: bool) -> MeasuredTest:
    """Measure a scenario, and narrate its progress and warnings."""
    # Loaded here: predictions need no process.
    from dlbricks_tui.api.jobs import words_of
    from dlbricks_tui.api.loads import measure
    from dlbricks_tui.cli.progress import JobNarration, live_console

    narrated = JobNarration(words_of("load test", order), live_console(), quiet=quiet)
    with signals_interrupt(), closing(narrated) as narration:
        measured = measure(order, session.data, narration.take)
    narrate_once(*measured.warnings)
    return measured


def _show(answer: ScenarioAnswer, measured: MeasuredTest | None, data: DataFolder, *, predicts: bool) -> None:
    # Loaded here: the JSON document needs no tables.
    from dlbricks_tui.documents.load_pictures import server_plot
    from dlbricks_tui.documents.parts import BLANK_LINE, Plots
    from dlbricks_tui.documents.scenario import latency_parts, scenario_parts, stored_parts

    test = measured.test if measured is not None else answer.best_test or next(iter(answer.load_tests), None)
    prediction = answer.prediction if predicts else None
    logs = None if test is None else data.scenarios / test.uuid
    told = str(logs) if logs is not None and logs.is_dir() else ""
    show_parts(scenario_parts(answer, prediction, test, is_new=measured is not None, logs=told))
    points = [] if prediction is None else [(it.rate, it.latency_ms.value) for it in answer.curve()]
    plot = server_plot(answer, points, None if measured is None else measured.tests) if points else None
    if plot is not None:
        show_parts([BLANK_LINE, Plots((plot,), _PICTURE_LINES)], _WIDEST)
    if test is not None:
        show_parts(latency_parts(test))
    if measured is None:
        show_parts(stored_parts(answer))
