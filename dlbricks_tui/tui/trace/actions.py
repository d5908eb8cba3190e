"""The actions of the trace screen, its panels and boxes."""

from dlbricks_tui.tui.keys.actions import EVERYWHERE, IN_DIALOG, LIST, PANEL_STEPS, Action, Scope

TRACE = Scope(
    "trace",
    "On the trace screen",
    Action("measure", "m", "trace it", "Trace the open model at rising levels of detail.", footer=True),
    Action("cancel", "x", "cancel", "Cancel the trace in progress; stored traces are kept.", footer=True),
    Action("write", "o", "write file", "Write the trace to a file for Perfetto or chrome://tracing.", footer=True),
    Action("look_again", "r", "refresh", "List the stored traces of the model again."),
    Action("go_to_timeline", "1", "timeline", "Go to the timeline."),
    Action("go_to_span", "2", "span", "Go to the details of the selected span.", footer=True),
    Action("go_to_traces", "3", "traces", "Go to the stored traces of the model.", footer=True),
    *PANEL_STEPS,
    Action("leave", "escape", "back", "Go back to the workbench; a trace in progress goes on.", footer=True),
    outer=(LIST, EVERYWHERE),
)

TIMELINE = TRACE.panel(
    "timeline",
    "In the timeline",
    Action("next", "l right", "next", "Select the next span of a track, or open a level.", footer=True),
    Action("previous", "h left", "previous", "Select the previous span of a track, or close a level."),
    Action("open_or_close", "enter space", "open/close", "Open or close the level of the row.", footer=True),
    Action("zoom_in", "+ =", "zoom in", "Show half of the times, around the selection.", footer=True),
    Action("zoom_out", "-", "zoom out", "Show twice as many times.", footer=True),
    Action("pan_right", ">", "later", "Show later times."),
    Action("pan_left", "<", "earlier", "Show earlier times."),
    Action("next_inference", "n", "next inference", "Go to the next inference.", footer=True),
    Action("previous_inference", "N", "inference before", "Go to the previous inference."),
    Action("slowest", "s", "slowest", "Select the longest span of the track in this inference.", footer=True),
    Action("fit", "f", "fit", "Show one inference from its start to its end.", footer=True),
    Action("fit_everything", "F", "fit all", "Show all inferences."),
    Action("fit_span", "z", "fit span", "Show the selected span as wide as the row."),
    Action(
        "show_in_tree",
        "d",
        "decomposition",
        "Go back to the workbench, with the layer of the span selected in the decomposition.",
        footer=True,
    ),
    Action("copy", "y", "copy key", "Copy the key of the layer's brick, for `dlbricks results show`."),
)

SPAN = TRACE.panel(
    "span",
    "In the details of a span",
    Action("copy", "y", "copy key", "Copy the key of the layer's brick, for `dlbricks results show`."),
)

TRACES = TRACE.panel(
    "traces",
    "In the stored traces",
    Action("open", "enter l right", "open", "Show the selected trace.", footer=True),
    Action("copy", "y", "copy id", "Copy the id of the selected trace."),
)

START = Scope(
    "start_trace",
    "Before a model is traced",
    Action("begin", "enter", "trace", "Trace the model with these settings.", footer=True),
    Action("next", "l right space", "next value", "Change to the next value.", footer=True),
    Action("previous", "h left", "previous value", "Change to the previous value.", footer=True),
    Action("write", "e", "write", "Write a number of your own.", footer=True),
    outer=IN_DIALOG,
)

CANCEL = Scope(
    "cancel_trace",
    "Before a trace is cancelled",
    Action("confirm", "y enter", "cancel it", "Cancel the trace; stored traces are kept.", footer=True),
    outer=IN_DIALOG,
)

SCOPES = (TRACE, TIMELINE, SPAN, TRACES, START, CANCEL)
