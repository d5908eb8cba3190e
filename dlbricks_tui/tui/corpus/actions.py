"""The actions of the corpus screen and its panels."""

from dlbricks_tui.tui.keys.actions import EVERYWHERE, LIST, Action, Scope, panel_steps

CORPUS = Scope(
    "corpus",
    "On the corpus screen",
    (
        Action("corpus.read_all", ("r",), "read all", "Read the models that were never read before.", footer=True),
        Action("corpus.other_level", ("f",), "fused/written", "Switch between fused and written layers.", footer=True),
        Action("corpus.coarser", ("+", "="), "longer sequences", "Cut into sequences of one layer more.", footer=True),
        Action("corpus.finer", ("-",), "shorter sequences", "Cut into sequences of one layer less."),
        Action("corpus.go_to_uniqueness", ("1",), "uniqueness", "Go to the models."),
        Action("corpus.go_to_kinds", ("2",), "kinds", "Go to the kinds of layers that repeat."),
        Action("corpus.go_to_likeness", ("3",), "likeness", "Go to the grid of likeness."),
        Action("corpus.go_to_granularities", ("4",), "accuracy", "Go to speed-up and accuracy by granularity."),
        *panel_steps("corpus"),
        Action("corpus.leave", ("escape",), "back", "Go back to the workbench.", footer=True),
    ),
    (LIST, EVERYWHERE),
)
_IN_PANEL = (LIST, CORPUS, EVERYWHERE)

UNIQUENESS = Scope(
    "uniqueness",
    "In the models of the corpus",
    (
        Action("uniqueness.sort", ("s",), "sort", "Sort by name, by layers, or by the unique share.", footer=True),
        Action(
            "uniqueness.show_likeness", ("enter",), "likeness", "Go to the model in the grid of likeness.", footer=True
        ),
    ),
    _IN_PANEL,
)

LIKENESS = Scope(
    "likeness",
    "In the grid of likeness",
    (
        Action("likeness.right", ("l", "right"), "next model", "Go one model to the right.", footer=True),
        Action("likeness.left", ("h", "left"), "previous model", "Go one model to the left.", footer=True),
        Action("likeness.most_alike", ("n",), "most alike", "Go to the model that is most like the row.", footer=True),
        Action("likeness.exchange", ("x",), "exchange", "Exchange row and column."),
    ),
    _IN_PANEL,
)

SCOPES = (CORPUS, UNIQUENESS, LIKENESS)
