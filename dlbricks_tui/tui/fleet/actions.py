"""The actions of the fleet screen, its panels and its boxes."""

from dlbricks_tui.tui.keys.actions import BOX, DIALOG, EVERYWHERE, IN_DIALOG, LIST, PANEL_STEPS, Action, Scope

FLEET = Scope(
    "fleet",
    "On the fleet screen",
    Action("start", "n", "new", "Start a fleet run of the marked or open models.", footer=True),
    Action("pause", "p", "pause/resume", "Pause all hosts so that others can measure, or resume.", footer=True),
    Action("cancel", "x", "cancel", "Cancel the fleet run; what was measured is kept.", footer=True),
    Action("resume", "r", "resume", "Resume a fleet run that ended before it was complete."),
    Action("add", "+", "add hosts", "Add the hosts of another hosts file.", footer=True),
    Action("show_fleets", "R", "fleet runs", "Show all fleet runs, to watch another one.", footer=True),
    Action("go_to_hosts", "1", "hosts", "Go to the hosts."),
    Action("go_to_models", "2", "models", "Go to the models."),
    Action("go_to_ranking", "3", "ranking", "Go to the hosts of the selected model."),
    *PANEL_STEPS,
    Action("leave", "escape", "back", "Go back to the workbench; the fleet run continues.", footer=True),
    outer=(LIST, EVERYWHERE),
)

HOSTS = FLEET.panel(
    "fleet_hosts",
    "In the hosts of a fleet",
    Action("pause", "P", "pause host", "Pause the selected host, or resume it.", footer=True),
    Action("cancel", "X", "cancel host", "End the work of the selected host.", footer=True),
    Action("copy", "y", "copy message", "Copy what the selected host reports."),
)

RANKING = FLEET.panel(
    "fleet_ranking",
    "In the hosts of a model",
    Action("sort", "s", "by cost", "Sort by latency or by cost.", footer=True),
)

FLEETS = Scope(
    "fleets",
    "In the list of fleet runs",
    Action("show", "enter l right", "watch", "Show the selected fleet run.", footer=True),
    Action("resume", "r", "resume", "Resume a fleet run that is not complete.", footer=True),
    outer=(LIST, BOX, DIALOG),
)

START = Scope(
    "start_fleet",
    "Before a fleet run starts",
    Action("begin", "enter", "start", "Start it; it continues even if you quit.", footer=True),
    Action("next", "l right space", "next", "Change to the next value.", footer=True),
    Action("previous", "h left", "previous", "Change to the previous value.", footer=True),
    outer=IN_DIALOG,
)

CANCEL = Scope(
    "cancel_fleet",
    "Before a fleet run is cancelled",
    Action("confirm", "y enter", "cancel it", "Cancel the fleet run; what was measured is kept.", footer=True),
    outer=IN_DIALOG,
)

SCOPES = (FLEET, HOSTS, RANKING, FLEETS, START, CANCEL)
