"""The actions of the scenario screen and its panels."""

from dlbricks_tui.tui.keys.actions import EVERYWHERE, IN_DIALOG, LIST, Action, Scope, panel_steps

SCENARIO = Scope(
    "scenario",
    "On the scenario screen",
    (
        Action("scenario.measure", ("m",), "measure", "Measure the scenario with MLPerf LoadGen.", footer=True),
        Action(
            "scenario.pause",
            ("p",),
            "pause/resume",
            "Pause the measurement so that others can measure, or resume it with the test in progress.",
            footer=True,
        ),
        Action(
            "scenario.cancel",
            ("x",),
            "cancel",
            "Cancel the measurement; its tests that have ended are stored.",
            footer=True,
        ),
        Action("scenario.look_again", ("r",), "refresh", "Predict again, from the results stored by now."),
        Action("scenario.go_to_load", ("1",), "load", "Go to the latency at each load."),
        Action("scenario.go_to_settings", ("2",), "settings", "Go to the settings of the scenario.", footer=True),
        Action("scenario.go_to_latencies", ("3",), "latencies", "Go to the latencies of a test.", footer=True),
        Action("scenario.go_to_tests", ("4",), "load tests", "Go to the stored load tests.", footer=True),
        *panel_steps("scenario"),
        Action("scenario.leave", ("escape",), "back", "Go back to the workbench; a measurement goes on.", footer=True),
    ),
    (LIST, EVERYWHERE),
)
_IN_PANEL = (LIST, SCENARIO, EVERYWHERE)

SETTINGS = Scope(
    "load_settings",
    "In the settings of the scenario",
    (
        Action("load_settings.next", ("l", "right", "space"), "next value", "Change to the next value.", footer=True),
        Action("load_settings.previous", ("h", "left"), "previous value", "Change to the previous value."),
        Action("load_settings.write", ("e", "enter"), "write", "Write a value of your own.", footer=True),
    ),
    _IN_PANEL,
)

LATENCIES = Scope(
    "latencies",
    "In the latencies",
    (Action("latencies.copy", ("y",), "copy folder", "Copy the path of LoadGen's logs.", footer=True),),
    _IN_PANEL,
)

TESTS = Scope(
    "load_tests",
    "In the load tests",
    (
        Action(
            "load_tests.take",
            ("enter", "l", "right"),
            "predict it",
            "Take the settings of the selected load test, and predict its scenario.",
            footer=True,
        ),
    ),
    _IN_PANEL,
)

CANCEL = Scope(
    "cancel_load",
    "Before a measurement is cancelled",
    (
        Action(
            "cancel_load.confirm",
            ("y", "enter"),
            "cancel it",
            "Cancel the measurement; its tests that have ended are stored.",
            footer=True,
        ),
    ),
    IN_DIALOG,
)

SCOPES = (SCENARIO, SETTINGS, LATENCIES, TESTS, CANCEL)
