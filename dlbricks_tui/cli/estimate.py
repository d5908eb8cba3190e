"""`dlbricks estimate`: a model's latency composed of its bricks, and how well such estimates agree with the truth."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, NamedTuple

from dlbricks_tui.cli.asking import Desk, Whose, add_composition_options, composition_options, open_desk
from dlbricks_tui.cli.choices import add_cutting_options, add_models_argument, library
from dlbricks_tui.cli.output import data_console, narrate, show, write_csv, write_json
from dlbricks_tui.cli.parser import Groups
from dlbricks_tui.cli.status import Status

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dlbricks_tui.bricks.decomposition import Decomposition
    from dlbricks_tui.config.config import Config
    from dlbricks_tui.estimate.system_estimate import SystemEstimate
    from dlbricks_tui.models.library import ModelSource
    from dlbricks_tui.runtime.traits import Format

# Gaps of more models than these are told together.
_MOST_TOLD = 5


class Answer(NamedTuple):
    """A model with what was found out about it."""

    source: ModelSource
    decomposition: Decomposition
    found: SystemEstimate


def register(groups: Groups) -> None:
    """Adds `estimate`."""
    parser = groups.add_parser("estimate", help="compose models' latencies from the results of their bricks")
    add_models_argument(parser, many=True)
    add_cutting_options(parser, level="fused")
    # None tells that nobody chose: then what the system has results of decides too.
    parser.set_defaults(level=None)
    parser.add_argument(
        "--system", metavar="S", help="a system of the store by its id, name or instance type (default: this host)"
    )
    parser.add_argument(
        "--runtime",
        metavar="R",
        help="a registered runtime, or one of the store (default: ours; of another system the one that covers most)",
    )
    add_composition_options(parser)
    parser.add_argument(
        "--accuracy",
        action="store_true",
        help="print how well estimates agree with end-to-end results, per system, runtime and level",
    )
    shape = parser.add_mutually_exclusive_group()
    shape.add_argument("--json", action="store_true", help="print one JSON document")
    shape.add_argument("--csv", action="store_true", help="print comma-separated values")
    parser.set_defaults(handler=estimate_models)


def estimate_models(args: argparse.Namespace) -> int:
    """Estimates each model, or judges the estimates of all of them."""
    sources = library(args).find_all(args.models)
    with open_desk(args, composition_options(args)) as desk:
        return _judge(desk, sources) if args.accuracy else _estimate(desk, sources)


def _estimate(desk: Desk, sources: Sequence[ModelSource]) -> int:
    whose = desk.whose(sources)
    _tell_choice(desk.args, whose)
    answers = [
        Answer(asked.source, asked.inquiry.decomposition, desk.estimate(asked, whose))
        for asked in desk.inquiries(sources, whose.level)
    ]
    _write_estimates(desk.args, answers)
    _tell_others(whose, answers)
    for answer in answers:
        _tell_unmeasurable(answer)
    impossible = [it for it in answers if it.found.estimate.obstacle]
    _tell_impossible(desk.args, whose, impossible)
    _tell_gaps(
        desk.args, whose, [it for it in answers if it.found.estimate.composed and it.found.estimate.remaining.pairs]
    )
    without = [it for it in answers if it.found.estimate.composed is None and it not in impossible]
    if without:
        _tell_what_is_there(desk, whose, without)
    return Status.DONE_WITH_FAILURES if without or impossible or len(answers) < len(sources) else Status.DONE


def _judge(desk: Desk, sources: Sequence[ModelSource]) -> int:
    from dlbricks_tui.cli import estimate_output as output
    from dlbricks_tui.estimate.accuracy import accuracy, by_group

    groups = by_group(_all_ways(desk, sources))
    judged = [(group, found) for group, held in groups.items() if (found := accuracy(held)) is not None]
    judged.sort(key=lambda pair: pair[0])
    if desk.args.json:
        write_json([output.accuracy_document(group, found) for group, found in judged])
    elif desk.args.csv:
        write_csv(output.csv_rows([output.accuracy_document(group, found) for group, found in judged]))
    elif judged:
        from dlbricks_tui.cli.estimate_view import accuracy_view

        show(accuracy_view(judged))
    if judged:
        return Status.DONE
    narrate(
        "no model was measured both end to end and in all of its bricks: `dlbricks run MODEL... --end-to-end` does both"
    )
    return Status.DONE_WITH_FAILURES


def _all_ways(desk: Desk, sources: Sequence[ModelSource]) -> Iterator[SystemEstimate]:
    """Each model by everything that was measured on the systems, runtimes and at the level of the command line."""
    from dlbricks_tui.estimate.lookup import levels_measured
    from dlbricks_tui.models.graph import Level

    whose = desk.whose(sources)
    system = None if desk.args.system is None else whose.system
    runtime = whose.named
    levels = levels_measured(desk.generation) if desk.args.level is None else (Level(desk.args.level),)
    for level in levels:
        for _, inquiry in desk.inquiries(sources, level):
            for offer in inquiry.offers:
                if system in (None, offer.way.system) and runtime in (None, offer.way.runtime):
                    yield inquiry.by(offer.way)


def _write_estimates(args: argparse.Namespace, answers: Sequence[Answer]) -> None:
    from dlbricks_tui.cli import estimate_output as output

    if args.json:
        write_json([output.estimate_document(it.decomposition, it.found) for it in answers])
    elif args.csv:
        write_csv(output.csv_rows([output.estimate_row(it.found) for it in answers]))
    elif len(answers) > 1:
        from dlbricks_tui.cli.estimate_view import estimates_view

        show(*estimates_view([it.found for it in answers], data_console()))
    elif answers[0].found.estimate.composed is not None or answers[0].found.estimate.obstacle:
        from dlbricks_tui.cli.estimate_view import estimate_view

        show(*estimate_view(answers[0].decomposition, answers[0].found, data_console()))


def _tell_choice(args: argparse.Namespace, whose: Whose) -> None:
    from dlbricks_tui.models.graph import Level

    if args.level is None and whose.level is Level.WRITTEN:
        narrate(f"{whose.system} has results at level written and none at fused: estimating at written")


def _tell_others(whose: Whose, answers: Sequence[Answer]) -> None:
    """Says which models another runtime was asked about than the one that would run them."""
    by_others: dict[tuple[str, str], list[Answer]] = {}
    for answer in answers:
        wanted, taken = whose.runtime_for(answer.source), answer.found.way.runtime
        if wanted is not None and taken != wanted:
            by_others.setdefault((wanted, taken), []).append(answer)
    for (wanted, taken), held in by_others.items():
        narrate(f"nothing of {_names(held)} was measured here by {wanted}: estimating by {taken}")


def _tell_unmeasurable(answer: Answer) -> None:
    layers = answer.decomposition.graph.layers
    for part in answer.found.estimate.parts:
        if part.reason:
            named = ", ".join(f"layer {index} {layers[index].name!r} ({layers[index].op})" for index in part.layers)
            narrate(f"unmeasurable: {answer.source.name}: {named}: {part.reason}")
    _tell_left_out(answer)


def _tell_left_out(answer: Answer) -> None:
    found = answer.found.estimate
    if found.composed is not None and found.is_partial and not found.remaining.pairs:
        narrate(
            f"{answer.source.name}: the sum leaves out layers that cannot be measured by themselves, so the model may "
            "take more or less; `dlbricks run` with --end-to-end times the whole model"
        )


def _tell_impossible(args: argparse.Namespace, whose: Whose, answers: Sequence[Answer]) -> None:
    for answer in answers:
        timed = answer.found.end_to_end is not None
        cures = "" if timed else f"; time the whole model: {_cures(args, whose, [answer], '--end-to-end')}"
        narrate(f"no estimate of {answer.source.name} is possible: {answer.found.estimate.obstacle}{cures}")


def _tell_gaps(args: argparse.Namespace, whose: Whose, incomplete: Sequence[Answer]) -> None:
    if len(incomplete) > _MOST_TOLD:
        pairs = {pair for it in incomplete for pair in it.found.estimate.remaining.pairs}
        narrate(
            f"{len(incomplete)} models are incomplete ({_bricks(len(pairs))} to run): {_cures(args, whose, incomplete)}"
        )
        return
    for answer in incomplete:
        coverage, remaining = answer.found.estimate.coverage, answer.found.estimate.remaining
        takes = "" if remaining.seconds is None else f", about {_duration(remaining.seconds)}"
        narrate(
            f"{answer.source.name} is incomplete: {coverage.missing} of {coverage.layers} layers are missing "
            f"({_bricks(len(remaining.pairs))} to run{takes}): {_cures(args, whose, [answer])}"
        )


def _tell_what_is_there(desk: Desk, whose: Whose, without: Sequence[Answer]) -> None:
    from dlbricks_tui.estimate.selection import what_is_there
    from dlbricks_tui.store.queries import combinations

    system = f"this host, {whose.system}," if whose.is_host else whose.system
    for held in _by_format(without):
        wanted = whose.runtime_for(held[0].source)
        runtime = f" by {wanted}" if wanted else ""
        there = what_is_there(combinations(desk.generation), whose.system, wanted)
        narrate(
            f"nothing fits {_names(held)}: none of its bricks was measured at level {whose.level.value} on "
            f"{system}{runtime}; {there}; {_cures(desk.args, whose, held)}"
        )


def _cures(args: argparse.Namespace, whose: Whose, lacking: Sequence[Answer], *options: str) -> str:
    """What to run: a run is about models of one format."""
    where = "" if whose.is_host else f" there, on {whose.system}"
    commands = [f"`{_cure(args, whose, held, *options)}`" for held in _by_format(lacking)]
    return f"run {' and '.join(commands)}{where}"


def _cure(args: argparse.Namespace, whose: Whose, lacking: Sequence[Answer], *options: str) -> str:
    import shlex

    models = [_reference(args, it.source) for it in lacking[:_MOST_TOLD]]
    models += ["..."] * (len(lacking) > _MOST_TOLD)
    return shlex.join(["dlbricks", "run", *models, *_measured_alike(args, whose, lacking), *options])


def _by_format(answers: Sequence[Answer]) -> list[list[Answer]]:
    found: dict[Format, list[Answer]] = {}
    for answer in answers:
        found.setdefault(answer.source.format, []).append(answer)
    return list(found.values())


def _names(answers: Sequence[Answer]) -> str:
    more = f" and {len(answers) - _MOST_TOLD} others" if len(answers) > _MOST_TOLD else ""
    return ", ".join(it.source.name for it in answers[:_MOST_TOLD]) + more


def _reference(args: argparse.Namespace, source: ModelSource) -> str:
    if source.table1_id:
        return f"table1:{source.table1_id}"
    # Whatever is not in the library was named by its path.
    return source.name if source.name in args.models else str(source.path)


def _measured_alike(args: argparse.Namespace, whose: Whose, lacking: Sequence[Answer]) -> Iterator[str]:
    """The options without which a run would measure other bricks, or by another runtime."""
    threads = {whose.threads_taken(it.source, it.found.way.runtime) for it in lacking}
    chosen = {
        "--granularity": str(args.granularity),
        "--level": whose.level.value,
        "--cut": args.cut,
        "--order": args.order,
        "--runtime": args.runtime if whose.is_host else None,
        "--threads": threads.pop() if len(threads) == 1 else None,
    }
    config: Config = args.config
    by_default = {
        "--granularity": str(config.granularity),
        "--level": "fused",
        "--cut": config.cut,
        "--order": config.order,
    }
    for option, value in chosen.items():
        if value not in (None, by_default.get(option)):
            yield from (option, value)
    for given in args.input:
        yield from ("--input", given)


def _bricks(count: int) -> str:
    return f"{count} brick{'' if count == 1 else 's'}"


def _duration(seconds: float) -> str:
    if seconds < 1:
        return "a second"
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"
