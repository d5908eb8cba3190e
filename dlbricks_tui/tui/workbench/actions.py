"""The actions of the workbench and its panels."""

from dlbricks_tui.tui.keys.actions import EVERYWHERE, IN_DIALOG, LIST, PANEL_STEPS, Action, Scope

WORKBENCH = Scope(
    "workbench",
    "On the workbench",
    Action("start_run", "r", "run", "Run the bricks of the marked or the open models.", footer=True, first=True),
    Action(
        "show_analysis",
        "0",
        "analysis",
        "Show how fast the open model could be, and what is worth changing.",
        footer=True,
        first=True,
    ),
    Action("open_path", "o", "file", "Open a model file, or add a folder of models.", footer=True),
    Action("show_runs", "R", "jobs", "Show all runs and other jobs, to watch or resume one."),
    Action("show_queue", "Q", "queue", "Show what measures on this host, and what waits."),
    Action("finer", "-", "finer", "Cut into sequences of one layer less."),
    Action("coarser", "+ =", "granularity", "Cut into sequences of one layer more."),
    Action("other_level", "f", "fused/written", "Switch between fused and written layers."),
    Action("other_cut", "c", "cut", "Select which windows of layers are sequences."),
    Action("more_workers", "w", "workers", "Compose for one worker more."),
    Action("fewer_workers", "W", "fewer workers", "Compose for one worker less."),
    Action("show_scores", "9", "predictions", "Show how good predictions have been."),
    Action("show_curve", "b", "batch curve", "Show latency and throughput by batch size or threads."),
    Action("show_comparison", "v", "variants", "Compare runtimes, threads and batch sizes.", footer=True),
    Action("show_scenario", "L", "load", "Show how much load the open model can serve.", footer=True),
    Action("show_trace", "i", "trace", "Show where the time of the open model goes, in a timeline."),
    Action(
        "show_language",
        "T",
        "language models",
        "Show how many tokens per second language models make on this host, and whether they fit.",
    ),
    Action("show_fleet", "F", "fleet", "Show many hosts that measure for you, and which is best."),
    Action(
        "export_suite",
        "X",
        "suite",
        "Write the bricks of the marked or the open models into a suite, for a machine that must not have the models.",
    ),
    Action("show_settings", "s", "settings", "Go to the settings of the estimate."),
    Action("expert", ".", "expert", "Show the expert settings too, or hide them."),
    Action("hide_steps", "x", "next steps", "Hide the suggested next steps, or show them again."),
    Action("go_to_models", "1", "models", "Go to the models."),
    Action("go_to_tree", "2", "tree", "Go to the decomposition."),
    Action("go_to_details", "3", "details", "Go to the details."),
    Action("go_to_estimate", "4", "estimate", "Go to the estimate."),
    Action("show_run", "5", "run", "Show the run."),
    Action("close_run_bar", "escape", "close", "Hide the bar of a run that has ended."),
    Action("show_results", "6", "results", "Show all measurements."),
    Action("show_corpus", "7", "corpus", "Show what repeats within and across models."),
    Action("show_systems", "8", "systems", "Show the systems and what disturbs this one."),
    Action("wider", ">", "wider", "Make the current panel wider, and remember it."),
    Action("narrower", "<", "narrower", "Make the current panel narrower, and remember it."),
    Action("taller", "]", "taller", "Make the details or the estimate taller, and remember it."),
    Action("shorter", "[", "shorter", "Make the details or the estimate shorter, and remember it."),
    *PANEL_STEPS,
    outer=(LIST, EVERYWHERE),
)

MODELS = WORKBENCH.panel(
    "models",
    "In the list of models",
    Action("open", "enter l right", "open", "Open the selected model.", footer=True),
    Action("mark", "space", "mark", "Mark the model for the next run, or unmark it.", footer=True),
    Action("sort", "S", "sort", "Sort by name, time, layers, age, or as in the library."),
    Action("choose_columns", "C", "columns", "Select the columns to show."),
    Action("mark_all", "a", "mark all", "Mark all models in view, or none of them."),
    Action("remove", "d delete", "remove", "Remove an added model from the list; its file stays."),
    Action("give_shapes", "n", "shapes", "Set the shapes of the model's inputs."),
)

MODEL_COLUMNS = Scope(
    "model_columns",
    "In the columns of the list of models",
    Action("show_or_hide", "space", "show/hide", "Show the column, or hide it.", footer=True),
    Action("use", "enter", "use", "Show these columns, and remember them.", footer=True),
    outer=IN_DIALOG,
)

TREE = WORKBENCH.panel(
    "tree",
    "In the decomposition",
    Action("expand", "l right", "open", "Expand the selected part, or go into it.", footer=True),
    Action("collapse", "h left", "close", "Collapse the selected part, or go to its parent."),
    Action("open_or_close", "enter space", "open/close", "Expand or collapse the selected part."),
    Action("expand_below", "e", "expand", "Expand everything below the selected part.", footer=True),
    Action("collapse_all", "E", "collapse", "Collapse everything but the model."),
    Action("next_equal", "n", "same", "Go to the next equal brick or module.", footer=True),
    Action("previous_equal", "N", "same before", "Go to the previous equal brick or module."),
    Action("next_critical", "p", "path", "Go to the next sequence on the critical path.", footer=True),
    Action("previous_critical", "P", "path before", "Go to the previous sequence on the critical path."),
    Action("next_missing", "m", "missing", "Go to the next sequence that was not measured.", footer=True),
    Action("previous_missing", "M", "missing before", "Go to the previous sequence that was not measured."),
    Action("sort", "S", "sort", "Sort the sequences by time, or show the tree again."),
    Action("copy", "y", "copy key", "Copy the brick's key, for `dlbricks results show`."),
)

DETAILS = WORKBENCH.panel(
    "details",
    "In the details",
    Action("copy", "y", "copy key", "Copy the brick's key, for `dlbricks results show`.", footer=True),
)

ESTIMATE = WORKBENCH.panel(
    "estimate",
    "In the estimate",
    Action(
        "next", "l right enter", "next value", "Change to the next value, or go to the selected layer.", footer=True
    ),
    Action("previous", "h left", "previous value", "Change to the previous value.", footer=True),
)

SCOPES = (WORKBENCH, MODELS, MODEL_COLUMNS, TREE, DETAILS, ESTIMATE)
