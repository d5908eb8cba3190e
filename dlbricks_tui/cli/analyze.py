"""`dlbricks analyze`: how fast models could be, where their time goes, and what changes would gain."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from dlbricks_tui.cli.jobs import detached
from dlbricks_tui.cli.models import add_graph_files
from dlbricks_tui.cli.options import (
    USUAL_RUNTIME,
    add_cutting_options,
    add_models_argument,
    cutting_of,
    estimate_options_of,
    inputs_of,
)
from dlbricks_tui.cli.output import (
    data_console,
    narrate,
    narrate_some,
    narrate_waiting,
    show_parts,
    write_csv,
    write_json,
    write_lines,
)
from dlbricks_tui.cli.parser import Arguments, Parser, Status, Typed, UsageError
from dlbricks_tui.errors import UserError
from dlbricks_tui.settings.analysing import KINDS
from dlbricks_tui.settings.cutting import CUTTING, LEVEL
from dlbricks_tui.settings.setting import name, several
from dlbricks_tui.settings.variant import EXECUTION, RUNTIME, SYSTEM, THREADS
from dlbricks_tui.wording.numbers import counted, duration, in_ms, names_of

if TYPE_CHECKING:
    from dlbricks_tui.api.analyses import Analysis, MissingPart, ModelKernel
    from dlbricks_tui.jobs.folder import JobFolder

_WIDEST = 120
# The picture, its legend and its sentence fit on one screen of 24 lines.
_PICTURE_LINES = 21


def register(parser: Parser) -> None:
    """Add the options of `analyze`."""
    add_models_argument(parser, many=True)
    parser.add_setting(RUNTIME, many=True, default=(), usual=USUAL_RUNTIME)
    parser.add_setting(THREADS, default=None)
    parser.add_settings(*EXECUTION)
    add_cutting_options(parser)
    parser.add_setting(SYSTEM)
    parser.add_flag("--layers", about="show for each group of layers the execution in which it was fastest")
    parser.add_flag(
        "--measure",
        about="first measure what is missing: other threads, kernels, runtimes, levels, precisions and batch sizes for "
        "the what-ifs, and the peaks of this host for the roofline",
    )
    parser.add_argument(
        "--prove",
        metavar="ID",
        type=Typed(several(name("an id"))),
        default=(),
        help="carry out the what-if with this id, or several with commas, or `all`: time the whole model before and "
        "after the change, in alternating rounds",
    )
    parser.add_detach("with --prove: carry it out in a separate process; `dlbricks jobs watch` shows it")
    about = f"{KINDS.about}, with commas (default: all)"
    parser.add_argument("--kinds", metavar="K", type=Typed(KINDS.many), default=KINDS.kind.offered, help=about)
    about = "show which kernels compute the layers, and why others were refused; the runtime loads the model for it"
    parser.add_flag("--kernels", about=about)
    about = "draw the layers under the peaks of the system, on logarithmic axes"
    parser.add_flag("--roofline", about=about)
    about = "show the layers of the file as a tree, with the time that each part takes"
    parser.add_flag("--tree", about=about)
    graphs = add_graph_files(parser, "the layers of the file as a graph file, with the time of each in ms")
    parser.add_file("--onnx", about="write a copy of an ONNX file with times in its metadata", to=graphs)
    parser.add_formats()
    parser.only("--detach", where=lambda it: it.prove, why="is for --prove: name what to prove, such as --prove all")
    wanted = "is for --measure and --prove: add one of them, or leave it out"
    parser.only("--kinds", where=lambda it: it.measure or it.prove, why=wanted)
    apart = "shows what is known here, and --detach starts proofs elsewhere: leave one of them out"
    shown = ("--layers", "--kernels", "--roofline", "--tree", "--graphml", "--dot", "--onnx", "--csv")
    parser.only(*shown, where=lambda it: not it.detach, why=apart)
    whole = "adds nothing to --csv, a row for each model: leave one of them out"
    parser.only("--kernels", "--layers", where=lambda it: not it.csv, why=whole)
    drawn = "is for people, and adds nothing to --json and --csv: leave it out"
    parser.only("--roofline", "--tree", where=lambda it: not (it.json or it.csv), why=drawn)
    parser.add_schema("analyses.ModelAnalysis", many=True)
    parser.set_defaults(handler=analyze_models)


def analyze_models(args: Arguments) -> int:
    """Analyse each model on each runtime, from stored results and what is to be measured before."""
    # Loaded here: the help needs no store.
    from dlbricks_tui.api.analyses import csv_rows
    from dlbricks_tui.api.analysing import kernels_or_none

    found = list(_analyses(args))
    measured = Status.DONE
    for wanted, measure in ((args.measure, _measure_lacking), (args.prove, _prove)):
        if wanted:
            measured = max(measured, measure(args, found))
            if measured is Status.INTERRUPTED or (args.detach and measure is _prove):
                return measured
            found = list(_analyses(args))
    kernels = [kernels_or_none(it, args.session.data, narrate_waiting, narrate) if args.kernels else () for it in found]
    if args.graphml or args.dot or args.onnx:
        _write_graph_files(args, found)
    if args.json:
        write_json([replace(it.answer, kernels=its) for it, its in zip(found, kernels, strict=True)])
    elif args.csv:
        write_csv(csv_rows(found))
    else:
        _show(args, found, kernels)
    _narrate_missing(found)
    complete = all(it.best is not None for it in found) and (not args.kernels or all(kernels))
    return measured if complete and found else Status.DONE_WITH_FAILURES


def _analyses(args: Arguments) -> Iterator[Analysis]:
    from dlbricks_tui.api.analysing import Analyser

    sources = args.session.sources(args.models)
    options = estimate_options_of(args, *CUTTING, LEVEL, SYSTEM, THREADS, *EXECUTION)
    for runtime in args.runtime or (None,):
        with args.session.open_estimator(replace(options, runtime=runtime)) as estimator:
            yield from Analyser(estimator, args.models).analyses(sources)


def _show(args: Arguments, found: Sequence[Analysis], kernels: Sequence[Sequence[ModelKernel]]) -> None:
    # Loaded here: the other formats need no tables.
    from dlbricks_tui.documents.analysis import AnalysisDocument, analyses_parts, kernels_table
    from dlbricks_tui.documents.parts import BLANK_LINE, Plots, Sentence

    if len({it.source.name for it in found}) > 1 and not (args.layers or args.kernels or args.roofline or args.tree):
        show_parts(analyses_parts(found), _WIDEST)
        return
    for place, each in enumerate(found):
        one = AnalysisDocument(each)
        show_parts([BLANK_LINE] if place else [])
        show_parts(one.whole(with_layers=args.layers), _WIDEST)
        if kernels[place]:
            show_parts([BLANK_LINE, kernels_table(kernels[place])], _WIDEST)
        if args.roofline:
            none = "no roofline: the peaks of the system are not known for this number of threads and precision"
            plot = one.roofline
            drawn = () if plot is None else (Plots((plot,), _PICTURE_LINES),)
            show_parts([BLANK_LINE, *drawn, Sentence(none if plot is None else plot.says)], _WIDEST)
        if args.tree:
            _show_written_tree(args, each)


def _narrate_missing(found: Sequence[Analysis]) -> None:
    """Name what the analyses lack: once for all models that lack the same, such as the peaks."""
    lacking: dict[MissingPart, list[str]] = {}
    for each in found:
        for it in each.missing:
            lacking.setdefault(it, []).append(each.source.name)
    together: dict[tuple[str, ...], list[MissingPart]] = {}
    for it, models in lacking.items():
        together.setdefault(tuple(dict.fromkeys(models)), []).append(it)
    lines = []
    for named, held in together.items():
        told = "; ".join(f"{it.what}: `{it.command}`" for it in held)
        lines.append(f"{names_of(named)} {'lacks' if len(named) == 1 else 'lack'} {told}")
    narrate_some(lines, "models that lack something")


def _show_written_tree(args: Arguments, found: Analysis) -> None:
    """Show the layers of the file as a tree, with times."""
    if found.times is None:
        narrate(_untimed(found))
        return
    from dlbricks_tui.documents.tree import written_tree

    write_lines([""])
    show_parts(written_tree(found, cutting_of(args), data_console().width))
    if found.times.inserted_ps:
        narrate(f"{in_ms(found.times.inserted_ms)} more in layers that the runtime inserts")


def _write_graph_files(args: Arguments, analyses: Sequence[Analysis]) -> None:
    if len(analyses) != 1:
        raise UsageError("--graphml, --dot and --onnx write one model: name one, and one --runtime")
    (found,) = analyses
    if found.times is None or found.written is None:
        raise UsageError(_untimed(found))
    if args.graphml or args.dot:
        from dlbricks_tui.report.graph_files import write_digraph, written_digraph

        write_digraph(written_digraph(found.written, found.times, cutting_of(args)), args.graphml, args.dot)
    if args.onnx:
        from dlbricks_tui.report.graph_files import write_annotated_copy

        facts = {"system": found.system, "runtime": found.baseline.found.way.runtime}
        if left := write_annotated_copy(args.onnx, found.written, found.times, facts):
            narrate(f"{args.onnx}: {counted(left, 'node')} without a time, as no layer stands for them")


def _untimed(found: Analysis) -> str:
    how = f": `{found.missing[0].command}` measures them" if found.baseline.estimate.coverage.missing else ""
    return f"{found.source.name}: the times of its layers are not known{how}"


def _measure_lacking(args: Arguments, found: Sequence[Analysis]) -> Status:
    """Measure what the analyses of these models lack, and narrate it before it starts."""
    # Loaded here, as below: stored results need no runs.
    from dlbricks_tui.api.analysing import lacks_in_words, measure_peaks, plan_of, refuse_other_system
    from dlbricks_tui.api.measuring import measured_by_settings
    from dlbricks_tui.cli.run import execute_shown, tell_end

    refuse_other_system(found)
    options = measured_by_settings(args.config, **inputs_of(args))
    plans = [plan_of(each, args.kinds, args.session.data, options) for each in found]
    plans = [plan for plan in plans if not plan.is_empty]
    if not plans:
        narrate("the what-ifs lack nothing that this host can measure")
        return Status.DONE
    for plan in plans:
        lacking = counted(len(plan.lacks), "execution") if plan.lacks else "peaks"
        narrate(f"{plan.model} lacks {lacking}, about {duration(plan.seconds)}:")
        for kind, words in lacks_in_words(plan):
            narrate(f"  {kind}: {words}")
    if len(plans) > 1:
        narrate(f"all of them take about {duration(sum(plan.seconds for plan in plans))}")
    refusals = measure_peaks(plans, args.session.data, narrate_waiting)
    narrate(*refusals)
    status = Status.of(refusals)
    for request in (request for plan in plans for request in plan.requests):
        run = args.session.new_run(request)
        ended: int = Status.DONE_WITH_FAILURES
        # The run itself tells why it fails.
        with suppress(UserError):
            ended = tell_end(*execute_shown(run, quiet=False))
        if ended == Status.INTERRUPTED:
            return Status.INTERRUPTED
        # What one execution lacks does not keep the others from an answer.
        status = Status.DONE_WITH_FAILURES if ended else status
    return status


def _prove(args: Arguments, found: Sequence[Analysis]) -> Status:
    """Prove the what-ifs that are asked for, and narrate each gain; what is finished is kept if it is interrupted."""
    from dlbricks_tui.api.analysing import ProofOrder, asked_what_ifs, prove_here, refuse_other_system
    from dlbricks_tui.api.jobs import job_summaries, words_of
    from dlbricks_tui.cli.progress import JobNarration, live_console
    from dlbricks_tui.wording.answers import what_if_words

    refuse_other_system(found)
    failed = proved = 0
    started: list[JobFolder] = []
    for asked in asked_what_ifs(found, args.prove, args.kinds):
        model = asked.found.source.name
        for what_if in asked.unknown:
            narrate(f"{model} has no what-if {what_if}")
        words = ", ".join(what_if_words(it.id) for it in asked.what_ifs) or "no what-if"
        narrate(f"proving for {model}: {words}; each takes a minute of rounds at most")
        order = ProofOrder(asked.found.source, asked.what_ifs, **inputs_of(args))
        if args.detach:
            started.append(detached("proof", order, [model], args))
            continue
        with closing(JobNarration(words_of("proof", order), live_console())) as narration:
            ended = prove_here(order, args.session.data, narration.take)
        proved += ended.proved
        failed += len(asked.unknown) + ended.failed
        if ended.state.was_stopped:
            kept = f"{counted(proved, 'proof')} before it {'is' if proved == 1 else 'are'} kept"
            narrate(f"{ended.state.message}; {kept}")
            return Status.INTERRUPTED
        if not ended.state.is_finished:
            narrate(ended.state.message)
            failed += 1
    if started and args.json:
        write_json(job_summaries([it.state() for it in started]))
    return Status.of(failed)
