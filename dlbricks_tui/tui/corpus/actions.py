"""The actions of the corpus screen and its panels."""

from dlbricks_tui.tui.keys.actions import EVERYWHERE, LIST, PANEL_STEPS, Action, Scope

CORPUS = Scope(
    "corpus",
    "On the corpus screen",
    Action("read_all", "r", "read all", "Read the models that were never read before.", footer=True),
    Action("other_level", "f", "fused/written", "Switch between fused and written layers.", footer=True),
    Action("coarser", "+ =", "longer sequences", "Cut into sequences of one layer more.", footer=True),
    Action("finer", "-", "shorter sequences", "Cut into sequences of one layer less."),
    Action("go_to_uniqueness", "1", "uniqueness", "Go to the models."),
    Action("go_to_kinds", "2", "kinds", "Go to the kinds of layers that repeat."),
    Action("go_to_likeness", "3", "likeness", "Go to the grid of likeness."),
    Action("go_to_granularities", "4", "accuracy", "Go to speed-up and accuracy by granularity."),
    *PANEL_STEPS,
    Action("leave", "escape", "back", "Go back to the workbench.", footer=True),
    outer=(LIST, EVERYWHERE),
)

UNIQUENESS = CORPUS.panel(
    "uniqueness",
    "In the models of the corpus",
    Action("sort", "s", "sort", "Sort by name, by layers, or by the unique share.", footer=True),
    Action("show_likeness", "enter", "likeness", "Go to the model in the grid of likeness.", footer=True),
)

LIKENESS = CORPUS.panel(
    "likeness",
    "In the grid of likeness",
    Action("right", "l right", "next model", "Go one model to the right.", footer=True),
    Action("left", "h left", "previous model", "Go one model to the left.", footer=True),
    Action("most_alike", "n", "most alike", "Go to the model that is most like the row.", footer=True),
    Action("exchange", "x", "exchange", "Exchange row and column."),
)

SCOPES = (CORPUS, UNIQUENESS, LIKENESS)
