"""The actions of the analysis screen and its panels."""

from dlbricks_tui.tui.keys.actions import EVERYWHERE, IN_DIALOG, LIST, PANEL_STEPS, Action, Scope

ANALYSIS = Scope(
    "analysis",
    "On the analysis screen",
    Action("prove", "p", "prove", "Carry out the selected what-if, and measure its gain.", footer=True),
    Action("cancel", "c", "cancel", "Cancel the proof in progress; those before it are kept."),
    Action("prove_all", "P", "prove all", "Carry out all what-ifs that have no proof yet."),
    Action("measure", "m", "measure", "Measure what the what-ifs and the roofline lack.", footer=True),
    Action("show_roofline", "x", "roofline", "Draw the layers under the peaks of their system.", footer=True),
    Action(
        "show_kernels",
        "K",
        "kernels",
        "Show which kernels compute the layers, and why others were refused; the runtime loads the model for it.",
        footer=True,
    ),
    Action("look_again", "r", "refresh", "Analyse the model again, from the results stored by now."),
    Action("go_to_bounds", "1", "bounds", "Go to the bounds and the gap."),
    Action("go_to_what_ifs", "2", "what-ifs", "Go to the what-ifs.", footer=True),
    Action("go_to_change", "3", "change", "Go to the change that the selected what-if makes."),
    Action("go_to_layers", "4", "layers", "Go to the layers and where they are fastest.", footer=True),
    *PANEL_STEPS,
    Action("leave", "escape", "back", "Go back to the workbench; a proof in progress goes on.", footer=True),
    outer=(LIST, EVERYWHERE),
)

BOUNDS = ANALYSIS.panel(
    "bounds",
    "In the bounds",
    Action("copy", "y", "copy command", "Copy the selected command, which measures what is missing."),
)

WHAT_IFS = ANALYSIS.panel(
    "what_ifs",
    "In the what-ifs",
    Action("show", "enter l right", "the change", "Go to the selected change.", footer=True),
    Action("copy", "y", "copy", "Copy the command or setting of the selected what-if.", footer=True),
    Action("sort", "s", "sort", "Sort by kind, or by gain.", footer=True),
)

CHANGE = ANALYSIS.panel(
    "change", "In the change", Action("copy", "y", "copy", "Copy the command or setting of the change.", footer=True)
)

LAYERS = ANALYSIS.panel(
    "layers",
    "In the layers and where they are fastest",
    Action("sort", "s", "sort", "Sort by time, or by the time that the best saves.", footer=True),
)

MEASURE = Scope(
    "measure",
    "Before what-ifs are measured",
    Action("confirm", "enter", "measure", "Measure the executions, in runs of their own.", footer=True),
    outer=IN_DIALOG,
)

SCOPES = (ANALYSIS, BOUNDS, WHAT_IFS, CHANGE, LAYERS, MEASURE)
