"""The actions of the systems screen and its panels."""

from dlbricks_tui.tui.keys.actions import EVERYWHERE, LIST, Action, Scope, panel_steps

SYSTEMS = Scope(
    "systems",
    "On the systems screen",
    (
        Action("systems.look_again", ("r",), "refresh", "Examine this host and read the store again.", footer=True),
        Action("systems.go_to_systems", ("1",), "systems", "Go to the systems."),
        Action("systems.go_to_system", ("2",), "system", "Go to the facts about the system."),
        Action("systems.go_to_machines", ("3",), "machines", "Go to the machines for the model.", footer=True),
        Action("systems.go_to_doctor", ("4",), "doctor", "Go to what disturbs measurements on this host."),
        *panel_steps("systems"),
        Action("systems.leave", ("escape",), "back", "Go back to the workbench.", footer=True),
    ),
    (LIST, EVERYWHERE),
)
_IN_PANEL = (LIST, SYSTEMS, EVERYWHERE)

SYSTEM_LIST = Scope(
    "system_list",
    "In the list of systems",
    (Action("system_list.take", ("enter",), "use", "Estimate from the results of this system.", footer=True),),
    _IN_PANEL,
)

MACHINES = Scope(
    "machines",
    "In the machines for the model",
    (
        Action("machines.take", ("enter",), "use", "Estimate from the results of this system.", footer=True),
        Action(
            "machines.sort", ("s",), "by cost", "Sort by latency, or by the cost of a million inferences.", footer=True
        ),
    ),
    _IN_PANEL,
)

DOCTOR = Scope(
    "doctor",
    "In the findings of the doctor",
    (Action("doctor.copy", ("y",), "copy cure", "Copy the selected cure.", footer=True),),
    _IN_PANEL,
)

SCOPES = (SYSTEMS, SYSTEM_LIST, MACHINES, DOCTOR)
