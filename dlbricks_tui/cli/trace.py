"""`dlbricks trace`: run a model at rising levels of detail, and write what was seen for a program that shows it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dlbricks_tui.cli.jobs import detach, show_list
from dlbricks_tui.cli.options import (
    add_measuring_runtime_options,
    add_models_argument,
    inputs_of,
    is_usual_runtime,
    runtime_given,
    values_of,
)
from dlbricks_tui.cli.output import narrate, show_parts, write_json, write_lines
from dlbricks_tui.cli.parser import Arguments, Parser, Status, UsageError
from dlbricks_tui.printable import printable
from dlbricks_tui.settings.analysing import INFERENCES, LEVELS
from dlbricks_tui.settings.cutting import LEVEL
from dlbricks_tui.settings.variant import EXECUTION, RUNTIME, THREADS

if TYPE_CHECKING:
    from dlbricks_tui.traces.trace import Trace, TraceOrder

# The formats, and the programs that open them.
_PROGRAMS = {
    "perfetto": "https://ui.perfetto.dev, which keeps it in your browser",
    "chrome": "chrome://tracing or https://ui.perfetto.dev",
}


def register(parser: Parser) -> None:
    """Add the options of `trace`."""
    add_models_argument(parser, many=False, needed=False)
    parser.add_file("-o", "--output", about="the file for the trace")
    parser.add_argument(
        "--format",
        choices=list(_PROGRAMS),
        help="`perfetto` for https://ui.perfetto.dev, or `chrome` for chrome://tracing, which Perfetto reads too "
        "(default: chrome for a FILE that ends in .json, else perfetto)",
    )
    parser.add_flag("--force", about="replace FILE if it is there")
    parser.add_setting(LEVELS, many=True)
    parser.add_settings(INFERENCES, LEVEL)
    add_measuring_runtime_options(parser, many=False)
    parser.add_settings(*EXECUTION)
    stored = parser.add_mutually_exclusive_group()
    about = "write a stored trace to FILE: its id, the beginning of its id, or `last`"
    stored.add_argument("--from", dest="stored", metavar="ID", help=about)
    parser.add_flag("--list", about="list the stored traces, which are files you may delete", to=stored)
    parser.add_detach("trace in a separate process; afterwards `dlbricks trace --from last -o FILE` writes the file")
    own = (*(it.option for it in (INFERENCES, LEVEL, RUNTIME, THREADS, *EXECUTION)), "--input", "--value")
    parser.only(*own, where=lambda it: it.model, why="is for tracing a MODEL: leave it out")
    listed = "is not for --list, which traces and writes nothing: leave it out"
    parser.only("--output", "--format", "--force", "--detach", LEVELS.option, where=lambda it: not it.list, why=listed)
    apart = "is for the file, and --detach writes none: leave it out"
    parser.only("--format", "--force", where=lambda it: not it.detach, why=apart)
    parser.end(trace, "traces.TraceResult", quiet=True)


def trace(args: Arguments) -> int:
    """Trace a model, or list the stored traces, or write one of them again."""
    # Loaded here, as all that follows: the help needs none of it.
    from dlbricks_tui.api.traces import (
        TraceFormat,
        TraceProcessError,
        format_of,
        require_place,
        stored_trace,
        write_in,
    )

    given = [word for word, it in (("MODEL", args.model), ("--from", args.stored), ("--list", args.list)) if it]
    if len(given) != 1:
        what = "nothing to trace" if not given else f"{' and '.join(given)} do not go together"
        raise UsageError(f"{what}: give a MODEL, or --from ID, or --list (see `dlbricks trace --help`)")
    if args.list:
        return _list(args)
    if args.detach and (args.stored or args.output):
        raise UsageError(
            "--detach traces a MODEL, and writes no file: leave -o and --from out; afterwards `dlbricks trace --from "
            "last -o FILE` writes it"
        )
    if args.detach:
        order = _order(args)
        return detach("trace", order, [order.source.name], args)
    if args.output is None:
        raise UsageError("trace needs -o FILE, the file for the trace")
    form = format_of(args.output, None if args.format is None else TraceFormat(args.format))
    require_place(args.output, is_replaced=args.force)
    if args.stored is not None:
        found = stored_trace(args.stored, args.session.data)
    else:
        try:
            found = _traced(args)
        except TraceProcessError as error:
            narrate(str(error))
            return Status.DONE_WITH_FAILURES
    write_in(args.output, found, form)
    if args.json:
        from dlbricks_tui.api.traces import trace_result

        write_json(trace_result(found, args.output, form))
    else:
        from dlbricks_tui.documents.trace import trace_parts

        named = "" if is_usual_runtime(args) else args.runtime or ""
        show_parts(trace_parts(found, args.model or "", named))
        write_lines(["", printable(f"{args.output} opens in {_PROGRAMS[form.value]}")])
    return Status.of({it.level for it in found.missing} & set(args.levels or ()))


def _order(args: Arguments) -> TraceOrder:
    from dlbricks_tui.api.measuring import variant_remarks
    from dlbricks_tui.api.traces import TraceOptions

    levels = args.levels or LEVELS.kind.offered
    given = values_of(args, (*EXECUTION, LEVEL, INFERENCES))
    options = TraceOptions(**runtime_given(args), **given, **inputs_of(args), levels=levels)
    order = args.session.trace_order(args.model, options)
    settings = order.execution.runtime.settings
    narrate(*variant_remarks([settings.threads], [settings.precision]))
    return order


def _traced(args: Arguments) -> Trace:
    from dlbricks_tui.api.jobs import words_of
    from dlbricks_tui.api.traces import trace_model
    from dlbricks_tui.cli.progress import JobNarration, signals_interrupt
    from dlbricks_tui.wording.answers import runtime_words

    order = _order(args)
    if not args.quiet:
        named = ", ".join(it.value for it in order.levels)
        narrate(f"tracing {order.source.name} by {runtime_words(order.execution.runtime.identity)}: {named}")
    with signals_interrupt():
        return trace_model(order, args.session.data, JobNarration(words_of("trace", order), quiet=args.quiet).take)


def _list(args: Arguments) -> int:
    from dlbricks_tui.api.traces import trace_summary, traces_of
    from dlbricks_tui.documents.trace import stored_columns

    found = traces_of(args.session.data)
    rows = [trace_summary(it) for it in found.traces] if args.json else found.traces
    none = "no trace yet: `dlbricks trace MODEL -o FILE` makes the first"
    return show_list(rows, stored_columns(), found.unreadable, none, as_json=args.json)
