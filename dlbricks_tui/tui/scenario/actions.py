"""The actions of the scenario screen and its panels."""

from dlbricks_tui.tui.keys.actions import EVERYWHERE, IN_DIALOG, LIST, PANEL_STEPS, Action, Scope

SCENARIO = Scope(
    "scenario",
    "On the scenario screen",
    Action("measure", "m", "measure", "Measure the scenario with MLPerf LoadGen.", footer=True),
    Action(
        "pause",
        "p",
        "pause/resume",
        "Pause the measurement so that others can measure, or resume it with the test in progress.",
        footer=True,
    ),
    Action("cancel", "x", "cancel", "Cancel the measurement; its tests that have ended are stored.", footer=True),
    Action("look_again", "r", "refresh", "Predict again, from the results stored by now."),
    Action("go_to_load", "1", "load", "Go to the latency at each load."),
    Action("go_to_settings", "2", "settings", "Go to the settings of the scenario.", footer=True),
    Action("go_to_latencies", "3", "latencies", "Go to the latencies of a test.", footer=True),
    Action("go_to_tests", "4", "load tests", "Go to the stored load tests.", footer=True),
    *PANEL_STEPS,
    Action("leave", "escape", "back", "Go back to the workbench; a measurement goes on.", footer=True),
    outer=(LIST, EVERYWHERE),
)

SETTINGS = SCENARIO.panel(
    "load_settings",
    "In the settings of the scenario",
    Action("next", "l right space", "next value", "Change to the next value.", footer=True),
    Action("previous", "h left", "previous value", "Change to the previous value."),
    Action("write", "e enter", "write", "Write a value of your own.", footer=True),
)

LATENCIES = SCENARIO.panel(
    "latencies", "In the latencies", Action("copy", "y", "copy folder", "Copy the path of LoadGen's logs.", footer=True)
)

TESTS = SCENARIO.panel(
    "load_tests",
    "In the load tests",
    Action(
        "take",
        "enter l right",
        "predict it",
        "Take the settings of the selected load test, and predict its scenario.",
        footer=True,
    ),
)

CANCEL = Scope(
    "cancel_load",
    "Before a measurement is cancelled",
    Action(
        "confirm", "y enter", "cancel it", "Cancel the measurement; its tests that have ended are stored.", footer=True
    ),
    outer=IN_DIALOG,
)

SCOPES = (SCENARIO, SETTINGS, LATENCIES, TESTS, CANCEL)
