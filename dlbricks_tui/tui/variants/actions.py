"""The actions of the screen of variants."""

from dlbricks_tui.tui.keys.actions import EVERYWHERE, LIST, Action, Scope

VARIANTS = Scope(
    "variants",
    "On the screen of variants",
    Action(
        "other_axis",
        "x",
        "batch/threads/all",
        "Show batch sizes, numbers of threads, or all combinations side by side.",
        footer=True,
    ),
    Action("measure", "m", "measure", "Measure the model by other runtimes and batch sizes.", footer=True),
    Action("raise_bound", "+ =", "higher bound", "Raise the bound of the latency.", footer=True),
    Action("lower_bound", "-", "lower bound", "Lower the bound of the latency.", footer=True),
    Action("drop_bound", "n", "no bound", "Show the curves without a bound."),
    Action("look_again", "r", "refresh", "Read the results stored by now."),
    Action("leave", "escape", "back", "Go back to the workbench.", footer=True),
    outer=(LIST, EVERYWHERE),
)

SCOPES = (VARIANTS,)
