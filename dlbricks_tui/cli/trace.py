"""`dlbricks trace`: run a model at rising levels of detail, and write what was seen for a program that shows it."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from dlbricks_tui.answers.opening import library
from dlbricks_tui.answers.traces import (
    TraceFormat,
    TraceOptions,
    TraceProcessError,
    format_of,
    require_place,
    require_room,
    trace_model,
    trace_order,
    write_in,
)
from dlbricks_tui.cli.job_progress import JobNarration
from dlbricks_tui.cli.options import (
    add_input_options,
    add_measuring_runtime_options,
    add_variant_options,
    inputs_of,
    runtime_given,
    values_of,
)
from dlbricks_tui.cli.output import narrate, write_json, write_lines
from dlbricks_tui.cli.parser import (
    Parser,
    Status,
    UsageError,
    add_json_option,
    add_quiet_option,
    add_schema_option,
    add_setting,
    add_settings,
)
from dlbricks_tui.cli.signals import signals_interrupt
from dlbricks_tui.host.fingerprint import fingerprint
from dlbricks_tui.printable import printable
from dlbricks_tui.runtime.variant import remarks_on
from dlbricks_tui.settings.cutting import LEVEL
from dlbricks_tui.settings.tracing import INFERENCES, LEVELS
from dlbricks_tui.settings.variant import EXECUTION
from dlbricks_tui.traces.file import find_trace, read_trace, stored_traces
from dlbricks_tui.traces.trace import Trace, TraceLevel
from dlbricks_tui.wording.answers import runtime_words
from dlbricks_tui.wording.numbers import too_many_threads
from dlbricks_tui.wording.scenarios import trace_line

if TYPE_CHECKING:
    from dlbricks_tui.folders import DataFolder
    from dlbricks_tui.traces.trace import TraceOrder

# The usual endings of the files.
_PROGRAMS = {
    TraceFormat.PERFETTO: "https://ui.perfetto.dev, which keeps it in your browser",
    TraceFormat.CHROME: "chrome://tracing or https://ui.perfetto.dev",
}


def register(parser: Parser) -> None:
    """Add the options of `trace`."""
    parser.add_argument(
        "model",
        metavar="MODEL",
        nargs="?",
        help="a *-symbol.json or *.onnx file, a name that `dlbricks models` lists, or table1:ID",
    )
    add_input_options(parser)
    parser.add_argument("-o", "--output", metavar="FILE", type=Path, help="the file for the trace")
    parser.add_argument(
        "--format",
        choices=[it.value for it in TraceFormat],
        help="`perfetto` for https://ui.perfetto.dev, or `chrome` for chrome://tracing, which Perfetto reads too "
        "(default: chrome for a FILE that ends in .json, else perfetto)",
    )
    parser.add_argument("--force", action="store_true", help="replace FILE if it is there")
    add_setting(parser, LEVELS, many=True)
    add_settings(parser, INFERENCES, LEVEL)
    add_measuring_runtime_options(parser, many=False)
    add_variant_options(parser, many=False)
    stored = parser.add_mutually_exclusive_group()
    stored.add_argument(
        "--from",
        dest="stored",
        metavar="ID",
        help="write a stored trace to FILE: its id, the beginning of its id, or `last`",
    )
    stored.add_argument("--list", action="store_true", help="list the stored traces, which are files you may delete")
    add_quiet_option(parser)
    add_json_option(parser)
    add_schema_option(parser, "TraceResult", module="traces")
    parser.set_defaults(handler=trace)


def trace(args: argparse.Namespace) -> int:
    """Trace a model, or list the stored traces, or write one of them again."""
    given = [word for word, it in (("MODEL", args.model), ("--from", args.stored), ("--list", args.list)) if it]
    if len(given) != 1:
        what = "nothing to trace" if not given else f"{' and '.join(given)} do not go together"
        raise UsageError(f"{what}: give a MODEL, or --from ID, or --list (see `dlbricks trace --help`)")
    if args.list:
        return _list(args.data, as_json=args.json)
    if args.output is None:
        raise UsageError("trace needs -o FILE, the file for the trace")
    form = format_of(args.output, None if args.format is None else TraceFormat(args.format))
    require_place(args.output, replace=args.force)
    if args.stored is not None:
        found = read_trace(find_trace(args.data.traces, args.stored))
    else:
        try:
            found = _traced(args)
        except TraceProcessError as error:
            narrate(str(error))
            return Status.DONE_WITH_FAILURES
    write_in(form, found, args.output)
    if args.json:
        # Loaded here: only documents need it.
        from dlbricks_tui.answers.traces import trace_result

        write_json(trace_result(found, args.output, form))
    else:
        _show(found)
        write_lines(["", printable(f"{args.output} opens in {_PROGRAMS[form]}")])
    lacking = {it.level for it in found.missing} & set(args.levels or ())
    return Status.DONE_WITH_FAILURES if lacking else Status.DONE


def _traced(args: argparse.Namespace) -> Trace:
    order = _order(args)
    require_room(args.data)
    settings = order.execution.runtime.settings
    if warning := too_many_threads([settings.threads], fingerprint().cores):
        narrate(warning)
    for remark in remarks_on([settings.precision]):
        narrate(remark)

    if not args.quiet:
        levels = ", ".join(it.value for it in order.levels)
        narrate(f"tracing {order.source.name} by {runtime_words(order.execution.runtime.identity)}: {levels}")
    with signals_interrupt():
        return trace_model(order, args.data, JobNarration(trace_line, quiet=args.quiet).take)


def _order(args: argparse.Namespace) -> TraceOrder:
    options = TraceOptions(
        **runtime_given(args),
        **values_of(args, (*EXECUTION, LEVEL, INFERENCES)),
        **inputs_of(args),
        levels=args.levels or tuple(TraceLevel),
    )
    sources = library(args.data).find(args.model)
    if len(sources) != 1:
        raise UsageError(f"{args.model} stands for {len(sources)} models; name one, such as table1:14")
    return trace_order(options, sources[0], args.data)


def _show(found: Trace) -> None:
    # Loaded here: documents need no tables.
    from dlbricks_tui.cli.rendering import show_parts
    from dlbricks_tui.documents.trace import trace_parts

    show_parts(trace_parts(found))


def _list(data: DataFolder, *, as_json: bool) -> int:
    found = stored_traces(data.traces)
    for line in found.unreadable:
        narrate(line)
    if as_json:
        from dlbricks_tui.answers.traces import trace_summary

        write_json([trace_summary(it) for it in found.traces])
    elif found.traces:
        from dlbricks_tui.cli.rendering import show_parts
        from dlbricks_tui.documents.parts import Table
        from dlbricks_tui.documents.trace import stored_columns

        show_parts([Table(stored_columns(), found.traces)])
    else:
        narrate("no trace yet: `dlbricks trace MODEL -o FILE` makes the first")
    return Status.DONE_WITH_FAILURES if found.unreadable else Status.DONE
