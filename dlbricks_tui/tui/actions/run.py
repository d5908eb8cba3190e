"""What can be done with runs: on the screen of one, among all of them, and before one is started or cancelled."""

from dlbricks_tui.tui.actions.action import Action

RUN = (
    Action("run.pause", ("p",), "pause/go on", "Let the run stand still and others measure, or go on.", footer=True),
    Action("run.cancel", ("x",), "cancel", "End the run; what it has measured is kept.", footer=True),
    Action("run.take_up", ("r",), "take up", "Go on with a run that ended before all was done.", footer=True),
    Action("run.show_runs", ("R",), "runs", "Show all runs, to watch another one.", footer=True),
    Action("run.go_to_bricks", ("1",), "bricks", "Go to the bricks."),
    Action("run.go_to_estimates", ("2",), "estimates", "Go to the estimates."),
    Action("run.go_to_notes", ("3",), "notes", "Go to the notes."),
    Action("run.next_panel", ("tab",), "next panel", "Go to the next panel."),
    Action("run.previous_panel", ("shift+tab",), "previous panel", "Go to the panel before."),
    Action("run.leave", ("escape",), "back", "Go back to the workbench; the run goes on.", footer=True),
)

RUNS = (
    Action("runs.show", ("enter", "l", "right"), "watch", "Show the run that the cursor is on.", footer=True),
    Action("runs.take_up", ("r",), "take up", "Go on with a run that ended before all was done.", footer=True),
)

START_RUN = (
    Action("start_run.begin", ("enter",), "start", "Start the run; it goes on even if you leave.", footer=True),
    Action("start_run.next", ("l", "right", "space"), "next value", "Give the setting its next value.", footer=True),
    Action("start_run.previous", ("h", "left"), "value before", "Give the setting the value before.", footer=True),
)

CANCEL_RUN = (
    Action(
        "cancel_run.confirm", ("y", "enter"), "cancel the run", "End it; what it has measured is kept.", footer=True
    ),
)
