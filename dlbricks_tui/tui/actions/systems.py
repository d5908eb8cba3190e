"""What can be done on the screen of systems."""

from dlbricks_tui.tui.actions.action import Action

SYSTEM_LIST = (
    Action("system_list.take", ("enter",), "use", "Estimate by the results of this system from now on.", footer=True),
)

MACHINES = (
    Action("machines.take", ("enter",), "use", "Estimate by the results of this system from now on.", footer=True),
    Action("machines.sort", ("s",), "by cost", "Sort by latency, or by what a million inferences cost.", footer=True),
)

DOCTOR = (Action("doctor.copy", ("y",), "copy cure", "Copy the cure that the cursor is on.", footer=True),)

SYSTEMS = (
    Action("systems.look_again", ("r",), "look again", "Look at this host, and into the store, again.", footer=True),
    Action("systems.go_to_systems", ("1",), "systems", "Go to the systems."),
    Action("systems.go_to_system", ("2",), "system", "Go to what is known of the system."),
    Action("systems.go_to_machines", ("3",), "machines", "Go to the machines for the model."),
    Action("systems.go_to_doctor", ("4",), "doctor", "Go to what disturbs measurements on this host."),
    Action("systems.next_panel", ("tab",), "next panel", "Go to the next panel."),
    Action("systems.previous_panel", ("shift+tab",), "previous panel", "Go to the panel before."),
    Action("systems.leave", ("escape",), "back", "Go back to the workbench.", footer=True),
)
