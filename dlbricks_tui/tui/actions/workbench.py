"""What can be done on the workbench, from whichever panel."""

from dlbricks_tui.tui.actions.action import Action

WORKBENCH = (
    Action(
        "workbench.open_path", ("o",), "open", "Add a model file and open it, or add a folder of models.", footer=True
    ),
    Action(
        "workbench.start_run", ("r",), "run", "Run the bricks of the marked models, or of the one shown.", footer=True
    ),
    Action("workbench.show_runs", ("R",), "runs", "Show all runs, to watch one or take it up again."),
    Action("workbench.finer", ("-",), "finer", "Cut into sequences of one layer less."),
    Action("workbench.coarser", ("+", "="), "granularity", "Cut into sequences of one layer more.", footer=True),
    Action("workbench.other_level", ("f",), "fused/written", "Change between fused and written layers.", footer=True),
    Action("workbench.other_cut", ("c",), "cut", "Change which windows of layers are sequences."),
    Action("workbench.more_workers", ("w",), "workers", "Compose for one worker more."),
    Action("workbench.fewer_workers", ("W",), "fewer workers", "Compose for one worker less."),
    Action("workbench.show_settings", ("s",), "settings", "Go to the settings of the estimate."),
    Action("workbench.go_to_models", ("1",), "models", "Go to the models."),
    Action("workbench.go_to_tree", ("2",), "tree", "Go to the decomposition."),
    Action("workbench.go_to_details", ("3",), "details", "Go to the details."),
    Action("workbench.go_to_estimate", ("4",), "estimate", "Go to the estimate."),
    Action("workbench.go_to_run", ("5",), "run", "Go to the run."),
    Action("workbench.close_run_bar", ("escape",), "close", "Hide the bar of a run that has ended."),
    Action("workbench.show_results", ("6",), "results", "Show everything that was measured."),
    Action("workbench.show_corpus", ("7",), "corpus", "Show what repeats within and across models."),
    Action("workbench.show_systems", ("8",), "systems", "Show the systems, and what disturbs this one."),
    Action("workbench.next_panel", ("tab",), "next panel", "Go to the next panel."),
    Action("workbench.previous_panel", ("shift+tab",), "previous panel", "Go to the panel before."),
)
