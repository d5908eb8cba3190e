"""The actions of the systems screen and its panels."""

from dlbricks_tui.tui.keys.actions import EVERYWHERE, LIST, PANEL_STEPS, Action, Scope

SYSTEMS = Scope(
    "systems",
    "On the systems screen",
    Action("look_again", "r", "refresh", "Examine this host and read the store again.", footer=True),
    Action("go_to_systems", "1", "systems", "Go to the systems."),
    Action("go_to_system", "2", "system", "Go to the facts about the system."),
    Action("go_to_machines", "3", "machines", "Go to the machines for the model.", footer=True),
    Action("go_to_doctor", "4", "doctor", "Go to what disturbs measurements on this host."),
    *PANEL_STEPS,
    Action("leave", "escape", "back", "Go back to the workbench.", footer=True),
    outer=(LIST, EVERYWHERE),
)

SYSTEM_LIST = SYSTEMS.panel(
    "system_list",
    "In the list of systems",
    Action("take", "enter", "use", "Estimate from the results of this system.", footer=True),
)

MACHINES = SYSTEMS.panel(
    "machines",
    "In the machines for the model",
    Action("take", "enter", "use", "Estimate from the results of this system.", footer=True),
    Action("sort", "s", "by cost", "Sort by latency, or by the cost of a million inferences.", footer=True),
)

DOCTOR = SYSTEMS.panel(
    "doctor", "In the findings of the doctor", Action("copy", "y", "copy cure", "Copy the selected cure.", footer=True)
)

SCOPES = (SYSTEMS, SYSTEM_LIST, MACHINES, DOCTOR)
