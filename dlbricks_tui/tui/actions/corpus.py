"""What can be done on the screen of the corpus."""

from dlbricks_tui.tui.actions.action import Action

UNIQUENESS = (
    Action("uniqueness.sort", ("s",), "sort", "Sort by name, by layers, or by the share of unique ones.", footer=True),
    Action("uniqueness.show_likeness", ("enter",), "likeness", "Go to the model in the grid of likeness.", footer=True),
)

LIKENESS = (
    Action("likeness.right", ("l", "right"), "next model", "Go one model to the right.", footer=True),
    Action("likeness.left", ("h", "left"), "model before", "Go one model to the left.", footer=True),
    Action("likeness.most_alike", ("n",), "most alike", "Go to the model that the row is most like.", footer=True),
    Action("likeness.exchange", ("x",), "exchange", "Go to the same two models with row and column exchanged."),
)

CORPUS = (
    Action("corpus.read_all", ("r",), "read all", "Read the models that were never read before.", footer=True),
    Action("corpus.other_level", ("f",), "fused/written", "Change between fused and written layers.", footer=True),
    Action("corpus.coarser", ("+", "="), "granularity", "Cut into sequences of one layer more.", footer=True),
    Action("corpus.finer", ("-",), "finer", "Cut into sequences of one layer less."),
    Action("corpus.go_to_uniqueness", ("1",), "uniqueness", "Go to the models."),
    Action("corpus.go_to_kinds", ("2",), "kinds", "Go to the kinds of layers that repeat."),
    Action("corpus.go_to_likeness", ("3",), "likeness", "Go to the grid of likeness."),
    Action("corpus.go_to_granularities", ("4",), "accuracy", "Go to speed-up and accuracy by granularity."),
    Action("corpus.next_panel", ("tab",), "next panel", "Go to the next panel."),
    Action("corpus.previous_panel", ("shift+tab",), "previous panel", "Go to the panel before."),
    Action("corpus.leave", ("escape",), "back", "Go back to the workbench.", footer=True),
)
