"""The actions of the trace screen, its panels and boxes."""

from dlbricks_tui.tui.keys.actions import EVERYWHERE, IN_DIALOG, LIST, Action, Scope, panel_steps

TRACE = Scope(
    "trace",
    "On the trace screen",
    (
        Action("trace.measure", ("m",), "trace it", "Trace the open model at rising levels of detail.", footer=True),
        Action("trace.cancel", ("x",), "cancel", "Cancel the trace in progress; stored traces are kept.", footer=True),
        Action(
            "trace.write",
            ("o",),
            "write file",
            "Write the trace to a file for Perfetto or chrome://tracing.",
            footer=True,
        ),
        Action("trace.look_again", ("r",), "refresh", "List the stored traces of the model again."),
        Action("trace.go_to_timeline", ("1",), "timeline", "Go to the timeline."),
        Action("trace.go_to_span", ("2",), "span", "Go to the details of the selected span.", footer=True),
        Action("trace.go_to_traces", ("3",), "traces", "Go to the stored traces of the model.", footer=True),
        *panel_steps("trace"),
        Action(
            "trace.leave", ("escape",), "back", "Go back to the workbench; a trace in progress goes on.", footer=True
        ),
    ),
    (LIST, EVERYWHERE),
)
_IN_PANEL = (LIST, TRACE, EVERYWHERE)

TIMELINE = Scope(
    "timeline",
    "In the timeline",
    (
        Action(
            "timeline.next", ("l", "right"), "next", "Select the next span of a track, or open a level.", footer=True
        ),
        Action(
            "timeline.previous", ("h", "left"), "previous", "Select the previous span of a track, or close a level."
        ),
        Action(
            "timeline.open_or_close",
            ("enter", "space"),
            "open/close",
            "Open or close the level of the row.",
            footer=True,
        ),
        Action("timeline.zoom_in", ("+", "="), "zoom in", "Show half of the times, around the selection.", footer=True),
        Action("timeline.zoom_out", ("-",), "zoom out", "Show twice as many times.", footer=True),
        Action("timeline.pan_right", (">",), "later", "Show later times."),
        Action("timeline.pan_left", ("<",), "earlier", "Show earlier times."),
        Action("timeline.next_inference", ("n",), "next inference", "Go to the next inference.", footer=True),
        Action("timeline.previous_inference", ("N",), "inference before", "Go to the previous inference."),
        Action(
            "timeline.slowest",
            ("s",),
            "slowest",
            "Select the longest span of the track in this inference.",
            footer=True,
        ),
        Action("timeline.fit", ("f",), "fit", "Show one inference from its start to its end.", footer=True),
        Action("timeline.fit_everything", ("F",), "fit all", "Show all inferences."),
        Action("timeline.fit_span", ("z",), "fit span", "Show the selected span as wide as the row."),
        Action(
            "timeline.show_in_tree",
            ("d",),
            "decomposition",
            "Go back to the workbench, with the layer of the span selected in the decomposition.",
            footer=True,
        ),
        Action("timeline.copy", ("y",), "copy key", "Copy the key of the layer's brick, for `dlbricks results show`."),
    ),
    _IN_PANEL,
)

SPAN = Scope(
    "span",
    "In the details of a span",
    (Action("span.copy", ("y",), "copy key", "Copy the key of the layer's brick, for `dlbricks results show`."),),
    _IN_PANEL,
)

TRACES = Scope(
    "traces",
    "In the stored traces",
    (
        Action("traces.open", ("enter", "l", "right"), "open", "Show the selected trace.", footer=True),
        Action("traces.copy", ("y",), "copy id", "Copy the id of the selected trace."),
    ),
    _IN_PANEL,
)

START = Scope(
    "start_trace",
    "Before a model is traced",
    (
        Action("start_trace.begin", ("enter",), "trace", "Trace the model with these settings.", footer=True),
        Action("start_trace.next", ("l", "right", "space"), "next value", "Change to the next value.", footer=True),
        Action("start_trace.previous", ("h", "left"), "previous value", "Change to the previous value.", footer=True),
        Action("start_trace.write", ("e",), "write", "Write a number of your own.", footer=True),
    ),
    IN_DIALOG,
)

CANCEL = Scope(
    "cancel_trace",
    "Before a trace is cancelled",
    (
        Action(
            "cancel_trace.confirm",
            ("y", "enter"),
            "cancel it",
            "Cancel the trace; stored traces are kept.",
            footer=True,
        ),
    ),
    IN_DIALOG,
)

SCOPES = (TRACE, TIMELINE, SPAN, TRACES, START, CANCEL)
