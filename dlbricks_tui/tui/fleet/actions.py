"""The actions of the fleet screen, its panels and its boxes."""

from dlbricks_tui.tui.keys.actions import BOX, DIALOG, EVERYWHERE, IN_DIALOG, LIST, Action, Scope, panel_steps

FLEET = Scope(
    "fleet",
    "On the fleet screen",
    (
        Action("fleet.start", ("n",), "new", "Start a fleet run of the marked or open models.", footer=True),
        Action(
            "fleet.pause", ("p",), "pause/resume", "Pause all hosts so that others can measure, or resume.", footer=True
        ),
        Action("fleet.cancel", ("x",), "cancel", "Cancel the fleet run; what was measured is kept.", footer=True),
        Action("fleet.resume", ("r",), "resume", "Resume a fleet run that ended before it was complete."),
        Action("fleet.add", ("+",), "add hosts", "Add the hosts of another hosts file.", footer=True),
        Action("fleet.show_fleets", ("R",), "fleet runs", "Show all fleet runs, to watch another one.", footer=True),
        Action("fleet.go_to_hosts", ("1",), "hosts", "Go to the hosts."),
        Action("fleet.go_to_models", ("2",), "models", "Go to the models."),
        Action("fleet.go_to_ranking", ("3",), "ranking", "Go to the hosts of the selected model."),
        *panel_steps("fleet"),
        Action("fleet.leave", ("escape",), "back", "Go back to the workbench; the fleet run continues.", footer=True),
    ),
    (LIST, EVERYWHERE),
)
_IN_PANEL = (LIST, FLEET, EVERYWHERE)

HOSTS = Scope(
    "fleet_hosts",
    "In the hosts of a fleet",
    (
        Action("fleet_hosts.pause", ("P",), "pause host", "Pause the selected host, or resume it.", footer=True),
        Action("fleet_hosts.cancel", ("X",), "cancel host", "End the work of the selected host.", footer=True),
        Action("fleet_hosts.copy", ("y",), "copy message", "Copy what the selected host reports."),
    ),
    _IN_PANEL,
)

RANKING = Scope(
    "fleet_ranking",
    "In the hosts of a model",
    (Action("fleet_ranking.sort", ("s",), "by cost", "Sort by latency or by cost.", footer=True),),
    _IN_PANEL,
)

FLEETS = Scope(
    "fleets",
    "In the list of fleet runs",
    (
        Action("fleets.show", ("enter", "l", "right"), "watch", "Show the selected fleet run.", footer=True),
        Action("fleets.resume", ("r",), "resume", "Resume a fleet run that is not complete.", footer=True),
    ),
    (LIST, BOX, DIALOG),
)

START = Scope(
    "start_fleet",
    "Before a fleet run starts",
    (
        Action("start_fleet.begin", ("enter",), "start", "Start it; it continues even if you quit.", footer=True),
        Action("start_fleet.next", ("l", "right", "space"), "next", "Change to the next value.", footer=True),
        Action("start_fleet.previous", ("h", "left"), "previous", "Change to the previous value.", footer=True),
    ),
    IN_DIALOG,
)

CANCEL = Scope(
    "cancel_fleet",
    "Before a fleet run is cancelled",
    (
        Action(
            "cancel_fleet.confirm",
            ("y", "enter"),
            "cancel it",
            "Cancel the fleet run; what was measured is kept.",
            footer=True,
        ),
    ),
    IN_DIALOG,
)

SCOPES = (FLEET, HOSTS, RANKING, FLEETS, START, CANCEL)
