"""The actions of the run screen and of the boxes about runs."""

from dlbricks_tui.tui.keys.actions import BOX, DIALOG, EVERYWHERE, IN_DIALOG, LIST, PANEL_STEPS, Action, Scope

RUN = Scope(
    "run",
    "On the run screen",
    Action("pause", "p", "pause/resume", "Pause the run so that others can measure, or resume it.", footer=True),
    Action("cancel", "x", "cancel", "Cancel the run; its measurements are kept.", footer=True),
    Action("stop_replay", "s", "stop", "Stop the replay of the run.", footer=True),
    Action("slower", "-", "slower", "Replay the run half as fast.", footer=True),
    Action("faster", "+", "faster", "Replay the run twice as fast.", footer=True),
    Action("resume", "r", "resume", "Resume a run that ended before it was complete.", footer=True),
    Action("show_runs", "R", "jobs", "Show all jobs, to watch another one.", footer=True),
    Action("go_to_bricks", "1", "bricks", "Go to the bricks."),
    Action("go_to_estimates", "2", "estimates", "Go to the estimates."),
    Action("go_to_notes", "3", "notes", "Go to the notes."),
    *PANEL_STEPS,
    Action("leave", "escape", "back", "Go back to the workbench; the run continues.", footer=True),
    outer=(LIST, EVERYWHERE),
)

RUNS = Scope(
    "runs",
    "In the list of jobs",
    Action("show", "enter l right", "watch", "Show the selected job.", footer=True),
    Action(
        "replay",
        "p",
        "replay",
        "Show an ended run again from its events; pause a run that measures, or resume it.",
        footer=True,
    ),
    Action("resume", "r", "resume", "Resume a job that ended before it was complete.", footer=True),
    Action("mark_row", "*", "mark A/B", "Mark a run to compare it with another one, or unmark it."),
    Action("compare_marked", "V", "compare", "Compare the two marked runs.", footer=True),
    Action("unmark_rows", "U", "unmark", "Remove the marks on rows to compare."),
    outer=(LIST, BOX, DIALOG),
)

JOB = Scope(
    "job",
    "In the box of a job",
    Action("cancel", "x", "cancel", "End the job; what it has stored is kept.", footer=True),
    outer=IN_DIALOG,
)

START_RUN = Scope(
    "start_run",
    "Before a run starts",
    Action("begin", "enter", "start", "Start the run; it continues even if you quit.", footer=True),
    Action("next", "l right space", "next", "Change to the next value.", footer=True),
    Action("previous", "h left", "previous", "Change to the previous value.", footer=True),
    Action("expert", ".", "expert", "Show the expert settings too, or hide them.", footer=True),
    Action("write", "e", "write", "Write threads or batch sizes, such as 1,2,4.", footer=True),
    outer=IN_DIALOG,
)

CANCEL_RUN = Scope(
    "cancel_run",
    "Before a run is cancelled",
    Action("confirm", "y enter", "cancel the run", "Cancel it; its measurements are kept.", footer=True),
    outer=IN_DIALOG,
)

QUEUE = Scope(
    "queue",
    "In the line of work on this host",
    Action("follow", "enter l right", "follow", "Show how far the selected work is.", footer=True),
    Action("cancel", "x", "cancel", "End the selected work, whoever has started it.", footer=True),
    outer=IN_DIALOG,
)

CANCEL_WORK = Scope(
    "cancel_work",
    "Before work is cancelled",
    Action("confirm", "y enter", "cancel it", "End it; stored results are kept.", footer=True),
    outer=IN_DIALOG,
)

SCOPES = (RUN, RUNS, JOB, START_RUN, CANCEL_RUN, QUEUE, CANCEL_WORK)
