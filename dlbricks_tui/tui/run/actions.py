"""The actions of the run screen and of the boxes about runs."""

from dlbricks_tui.tui.keys.actions import BOX, DIALOG, EVERYWHERE, IN_DIALOG, LIST, Action, Scope, panel_steps

RUN = Scope(
    "run",
    "On the run screen",
    (
        Action(
            "run.pause", ("p",), "pause/resume", "Pause the run so that others can measure, or resume it.", footer=True
        ),
        Action("run.cancel", ("x",), "cancel", "Cancel the run; its measurements are kept.", footer=True),
        Action("run.stop_replay", ("s",), "stop", "Stop the replay of the run.", footer=True),
        Action("run.slower", ("-",), "slower", "Replay the run half as fast.", footer=True),
        Action("run.faster", ("+",), "faster", "Replay the run twice as fast.", footer=True),
        Action("run.resume", ("r",), "resume", "Resume a run that ended before it was complete.", footer=True),
        Action("run.show_runs", ("R",), "jobs", "Show all jobs, to watch another one.", footer=True),
        Action("run.go_to_bricks", ("1",), "bricks", "Go to the bricks."),
        Action("run.go_to_estimates", ("2",), "estimates", "Go to the estimates."),
        Action("run.go_to_notes", ("3",), "notes", "Go to the notes."),
        *panel_steps("run"),
        Action("run.leave", ("escape",), "back", "Go back to the workbench; the run continues.", footer=True),
    ),
    (LIST, EVERYWHERE),
)

RUNS = Scope(
    "runs",
    "In the list of jobs",
    (
        Action("runs.show", ("enter", "l", "right"), "watch", "Show the selected job.", footer=True),
        Action(
            "runs.replay",
            ("p",),
            "replay",
            "Show an ended run again from its events; pause a run that measures, or resume it.",
            footer=True,
        ),
        Action("runs.resume", ("r",), "resume", "Resume a job that ended before it was complete.", footer=True),
        Action("runs.mark_row", ("*",), "mark A/B", "Mark a run to compare it with another one, or unmark it."),
        Action("runs.compare_marked", ("V",), "compare", "Compare the two marked runs.", footer=True),
        Action("runs.unmark_rows", ("U",), "unmark", "Remove the marks on rows to compare."),
    ),
    (LIST, BOX, DIALOG),
)

JOB = Scope(
    "job",
    "In the box of a job",
    (Action("job.cancel", ("x",), "cancel", "End the job; what it has stored is kept.", footer=True),),
    IN_DIALOG,
)

START_RUN = Scope(
    "start_run",
    "Before a run starts",
    (
        Action("start_run.begin", ("enter",), "start", "Start the run; it continues even if you quit.", footer=True),
        Action("start_run.next", ("l", "right", "space"), "next", "Change to the next value.", footer=True),
        Action("start_run.previous", ("h", "left"), "previous", "Change to the previous value.", footer=True),
        Action("start_run.expert", (".",), "expert", "Show the expert settings too, or hide them.", footer=True),
        Action("start_run.write", ("e",), "write", "Write threads or batch sizes, such as 1,2,4.", footer=True),
    ),
    IN_DIALOG,
)

CANCEL_RUN = Scope(
    "cancel_run",
    "Before a run is cancelled",
    (
        Action(
            "cancel_run.confirm", ("y", "enter"), "cancel the run", "Cancel it; its measurements are kept.", footer=True
        ),
    ),
    IN_DIALOG,
)

QUEUE = Scope(
    "queue",
    "In the line of work on this host",
    (
        Action("queue.follow", ("enter", "l", "right"), "follow", "Show how far the selected work is.", footer=True),
        Action("queue.cancel", ("x",), "cancel", "End the selected work, whoever has started it.", footer=True),
    ),
    IN_DIALOG,
)

CANCEL_WORK = Scope(
    "cancel_work",
    "Before work is cancelled",
    (Action("cancel_work.confirm", ("y", "enter"), "cancel it", "End it; stored results are kept.", footer=True),),
    IN_DIALOG,
)

SCOPES = (RUN, RUNS, JOB, START_RUN, CANCEL_RUN, QUEUE, CANCEL_WORK)
