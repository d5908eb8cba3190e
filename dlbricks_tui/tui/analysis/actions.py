"""The actions of the analysis screen and its panels."""

from dlbricks_tui.tui.keys.actions import EVERYWHERE, IN_DIALOG, LIST, Action, Scope, panel_steps

ANALYSIS = Scope(
    "analysis",
    "On the analysis screen",
    (
        Action("analysis.prove", ("p",), "prove", "Carry out the selected what-if, and measure its gain.", footer=True),
        Action("analysis.cancel", ("c",), "cancel", "Cancel the proof in progress; those before it are kept."),
        Action("analysis.prove_all", ("P",), "prove all", "Carry out all what-ifs that have no proof yet."),
        Action("analysis.measure", ("m",), "measure", "Measure what the what-ifs and the roofline lack.", footer=True),
        Action(
            "analysis.show_roofline",
            ("x",),
            "roofline",
            "Draw the layers under the peaks of their system.",
            footer=True,
        ),
        Action(
            "analysis.show_kernels",
            ("K",),
            "kernels",
            "Show which kernels compute the layers, and why others were refused; the runtime loads the model for it.",
            footer=True,
        ),
        Action("analysis.look_again", ("r",), "refresh", "Analyse the model again, from the results stored by now."),
        Action("analysis.go_to_bounds", ("1",), "bounds", "Go to the bounds and the gap."),
        Action("analysis.go_to_what_ifs", ("2",), "what-ifs", "Go to the what-ifs.", footer=True),
        Action("analysis.go_to_change", ("3",), "change", "Go to the change that the selected what-if makes."),
        Action("analysis.go_to_layers", ("4",), "layers", "Go to the layers and where they are fastest.", footer=True),
        *panel_steps("analysis"),
        Action(
            "analysis.leave",
            ("escape",),
            "back",
            "Go back to the workbench; a proof in progress goes on.",
            footer=True,
        ),
    ),
    (LIST, EVERYWHERE),
)
_IN_PANEL = (LIST, ANALYSIS, EVERYWHERE)

BOUNDS = Scope(
    "bounds",
    "In the bounds",
    (Action("bounds.copy", ("y",), "copy command", "Copy the selected command, which measures what is missing."),),
    _IN_PANEL,
)

WHAT_IFS = Scope(
    "what_ifs",
    "In the what-ifs",
    (
        Action("what_ifs.show", ("enter", "l", "right"), "the change", "Go to the selected change.", footer=True),
        Action("what_ifs.copy", ("y",), "copy", "Copy the command or setting of the selected what-if.", footer=True),
        Action("what_ifs.sort", ("s",), "sort", "Sort by kind, or by gain.", footer=True),
    ),
    _IN_PANEL,
)

CHANGE = Scope(
    "change",
    "In the change",
    (Action("change.copy", ("y",), "copy", "Copy the command or setting of the change.", footer=True),),
    _IN_PANEL,
)

LAYERS = Scope(
    "layers",
    "In the layers and where they are fastest",
    (Action("layers.sort", ("s",), "sort", "Sort by time, or by the time that the best saves.", footer=True),),
    _IN_PANEL,
)

MEASURE = Scope(
    "measure",
    "Before what-ifs are measured",
    (Action("measure.confirm", ("enter",), "measure", "Measure the executions, in runs of their own.", footer=True),),
    IN_DIALOG,
)

SCOPES = (ANALYSIS, BOUNDS, WHAT_IFS, CHANGE, LAYERS, MEASURE)
