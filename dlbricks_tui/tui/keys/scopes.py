"""The actions of all screens, and of their panels and boxes: of each screen its own first."""

from dlbricks_tui.tui.keys.actions import BOX, DIALOG, EVERYWHERE, IN_DIALOG, LIST, PANEL_STEPS, Action, Scope

WORKBENCH = Scope(
    "workbench",
    "On the workbench",
    Action(
        "start_run", "m", "measure", "Measure the bricks of the marked or the open models.", footer=True, first=True
    ),
    Action(
        "show_analysis",
        "A",
        "analysis",
        "Show how fast the open model could be, and what is worth changing.",
        footer=True,
        first=True,
    ),
    Action("open_path", "o", "file", "Open a model file, or add a folder of models.", footer=True),
    Action("show_runs", "J", "jobs", "Show all runs and other jobs, to watch or resume one."),
    Action("show_queue", "Q", "queue", "Show what measures on this host, and what waits."),
    Action("finer", "-", "finer", "Cut into sequences of one layer less.", does="change('granularity', -1)"),
    Action("coarser", "+", "granularity", "Cut into sequences of one layer more.", does="change('granularity', 1)"),
    Action("other_level", "f", "fused/written", "Switch between fused and written layers.", does="change('level', 1)"),
    Action("show_scores", "P", "predictions", "Show how good predictions have been."),
    Action(
        "show_variants",
        "V",
        "variants",
        "Show which runtime, number of threads and batch size are best, and measure others.",
        footer=True,
    ),
    Action("show_scenario", "L", "load", "Show how much load the open model can serve.", footer=True),
    Action("show_trace", "T", "trace", "Show where the time of the open model goes, in a timeline.", footer=True),
    Action(
        "show_language",
        "M",
        "language models",
        "Show how many tokens per second language models make on this host, and whether they fit.",
        footer=True,
    ),
    Action("show_fleet", "F", "fleet", "Show many hosts that measure for you, and which is best."),
    Action(
        "export_suite",
        "e",
        "export",
        "Write the bricks of the marked or the open models into a suite, for a machine that must not have the models.",
    ),
    Action("show_settings", "=", "settings", "Go to the settings of the estimate."),
    Action("expert", ".", "more", "Show what the estimate rests on and its settings too, or only the answer."),
    Action("go_to_models", "1", "models", "Go to the models."),
    Action("go_to_tree", "2", "tree", "Go to the decomposition."),
    Action("go_to_details", "3", "details", "Go to the details."),
    Action("go_to_estimate", "4", "estimate", "Go to the estimate."),
    Action("show_run", "w", "run", "Watch the run."),
    Action("close_run_bar", "escape", "close", "Hide the bar of a run that has ended."),
    Action("show_results", "R", "results", "Show all measurements."),
    Action("show_corpus", "U", "corpus", "Show what repeats within and across models."),
    Action("show_systems", "S", "systems", "Show the systems and what disturbs this one."),
    Action("wider", ">", "wider", "Make the current panel wider, and remember it.", does="widen(1)"),
    Action("narrower", "<", "narrower", "Make the current panel narrower, and remember it.", does="widen(-1)"),
    Action("taller", "]", "taller", "Make the details or the estimate taller, and remember it.", does="heighten(1)"),
    Action(
        "shorter", "[", "shorter", "Make the details or the estimate shorter, and remember it.", does="heighten(-1)"
    ),
    *PANEL_STEPS,
    outer=(LIST, EVERYWHERE),
)

MODELS = WORKBENCH.panel(
    "models",
    "In the list of models",
    Action("open", "enter", "open", "Open the selected model; fold or unfold the selected group.", footer=True),
    Action("unfold", "l right", "unfold", "Unfold the selected group; open the selected model."),
    Action("fold", "h left", "fold", "Fold the group around the selected row."),
    Action("sort", "s", "sort", "Sort by name, time, layers, age, or as in the library."),
    Action("choose_columns", "c", "columns", "Select the columns to show."),
    Action("mark_all", "a", "mark all", "Mark all models in view, or none of them."),
    Action("remove", "d delete", "delete", "Remove an added model from the list; its file stays."),
    Action("give_shapes", "i", "shapes", "Set the shapes of the model's inputs."),
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
    Action("open_or_close", "enter", "open/close", "Expand or collapse the selected part."),
    Action("expand_below", "*", "expand", "Expand everything below the selected part.", footer=True),
    Action("collapse_all", "z", "collapse", "Collapse everything but the model."),
    Action("next_equal", "n", "same", "Go to the next equal brick or block.", footer=True, does="step_to_equal(1)"),
    Action("previous_equal", "N", "same before", "Go to the previous equal brick or block.", does="step_to_equal(-1)"),
    Action(
        "next_critical",
        ")",
        "path",
        "Go to the next sequence on the critical path.",
        footer=True,
        does="step_to('critical', 1)",
    ),
    Action(
        "previous_critical",
        "(",
        "path before",
        "Go to the previous sequence on the critical path.",
        does="step_to('critical', -1)",
    ),
    Action(
        "next_missing",
        "}",
        "missing",
        "Go to the next sequence that was not measured.",
        footer=True,
        does="step_to('missing', 1)",
    ),
    Action(
        "previous_missing",
        "{",
        "missing before",
        "Go to the previous sequence that was not measured.",
        does="step_to('missing', -1)",
    ),
    Action("sort", "s", "sort", "Sort the sequences by time, or show the tree again."),
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
    Action("next", "l right enter", "next value", "Change to the next value, or go to the selected layer."),
    Action("previous", "h left", "previous value", "Change to the previous value.", does="step(-1)"),
)

RUN = Scope(
    "run",
    "On the run screen",
    Action(
        "pause",
        "p",
        "pause/resume",
        "Pause the run so that others can measure, or resume one that was paused or interrupted.",
        footer=True,
    ),
    Action("cancel", "x", "cancel", "Cancel the run, or stop its replay; measurements are kept.", footer=True),
    Action("slower", "-", "slower", "Replay the run half as fast.", footer=True, does="change_replay('slower')"),
    Action("faster", "+", "faster", "Replay the run twice as fast.", footer=True, does="change_replay('faster')"),
    Action("show_runs", "J", "jobs", "Show all jobs, to watch another one.", footer=True),
    Action("go_to_bricks", "1", "bricks", "Go to the bricks."),
    Action("go_to_estimates", "2", "estimates", "Go to the estimates."),
    Action("go_to_notes", "3", "notes", "Go to the notes."),
    *PANEL_STEPS,
    Action("leave", "escape", "back", "Go back to the workbench; the run continues.", footer=True),
    outer=(LIST, EVERYWHERE),
)

RUNS = Scope(
    "runs",
    "In the list of jobs",
    Action("show", "enter l right", "watch", "Show the selected job.", footer=True),
    Action("replay", "w", "replay", "Show an ended run again from its events.", footer=True),
    Action(
        "resume",
        "p",
        "pause/resume",
        "Pause a run that measures, or resume a job that has not ended whole.",
        footer=True,
    ),
    Action("mark", "space", "mark", "Mark a run, to compare it with another one.", does="app.mark"),
    Action("compare_marked", "C", "compare", "Compare the two marked runs.", footer=True, does="app.compare_marked"),
    outer=(LIST, BOX, DIALOG),
)

JOB = Scope(
    "job",
    "In the box of a job",
    Action("cancel", "x", "cancel", "End the job; what it has stored is kept.", footer=True),
    outer=IN_DIALOG,
)

START_RUN = Scope(
    "start_run",
    "Before a run starts",
    Action("begin", "enter", "start", "Start the run; it continues even if you quit.", footer=True),
    Action("next", "l right", "next", "Change to the next value.", footer=True, does="step(1)"),
    Action("previous", "h left", "previous", "Change to the previous value.", footer=True, does="step(-1)"),
    Action("expert", ".", "expert", "Show the expert settings too, or hide them.", footer=True),
    Action("write", "=", "write", "Write threads or batch sizes, such as 1,2,4.", footer=True),
    outer=IN_DIALOG,
)

CANCEL_RUN = Scope(
    "cancel_run",
    "Before a run is cancelled",
    Action("confirm", "y enter", "cancel the run", "Cancel it; its measurements are kept.", footer=True),
    outer=IN_DIALOG,
)

QUEUE = Scope(
    "queue",
    "In the line of work on this host",
    Action("follow", "enter l right", "follow", "Show how far the selected work is.", footer=True),
    Action("cancel", "x", "cancel", "End the selected work, whoever has started it.", footer=True),
    outer=IN_DIALOG,
)

CANCEL_WORK = Scope(
    "cancel_work",
    "Before work is cancelled",
    Action("confirm", "y enter", "cancel it", "End it; stored results are kept.", footer=True),
    outer=IN_DIALOG,
)

RESULTS = Scope(
    "results",
    "On the screen of results",
    Action("export", "e", "export", "Export the marked (else all found) results to a file.", footer=True),
    Action("import_file", "i", "import", "Import results from a file.", footer=True),
    Action("delete", "d", "delete", "Delete the marked results, or the selected one.", footer=True),
    Action("undo_delete", "u", "undo", "Restore the results that were deleted last.", footer=True),
    Action("go_to_results", "1", "results", "Go to the results."),
    Action("go_to_result", "2", "result", "Go to the result."),
    Action("go_to_history", "3", "history", "Go to the history."),
    *PANEL_STEPS,
    Action("leave", "escape", "back", "Go back to the workbench.", footer=True),
    outer=(LIST, EVERYWHERE),
)

RESULT_TABLE = RESULTS.panel(
    "result_table",
    "In the table of results",
    Action("open", "enter", "read", "Read about the selected result.", footer=True),
    Action("sort", "s", "sort", "Sort by the underlined column, or reverse the order.", footer=True),
    Action("column_right", "l right", "next column", "Go to the next column.", footer=True, does="move_column(1)"),
    Action("column_left", "h left", "previous column", "Go to the previous column.", does="move_column(-1)"),
    Action("choose_columns", "c", "columns", "Select the columns to show.", footer=True),
    Action("mark_all", "a", "mark all", "Mark all results that were found, or none of them."),
    Action("copy", "y", "copy key", "Copy the brick's key, for `dlbricks results show`."),
    Action("only_this", "b", "this brick", "Show only results of this brick, or of this model."),
)

RESULT = RESULTS.panel(
    "result",
    "In the panel of one result",
    Action("copy", "y", "copy key", "Copy the brick's key, for `dlbricks results show`.", footer=True),
)

HISTORY = RESULTS.panel(
    "history",
    "In the history",
    Action("open", "enter", "read", "Read about the selected measurement.", footer=True),
    Action("copy", "y", "copy id", "Copy the id of the measurement, for `dlbricks results show`."),
)

COLUMNS = Scope(
    "columns",
    "In the list of columns",
    Action("show_or_hide", "space", "show/hide", "Show the column, or hide it.", footer=True),
    Action("move_right", "J l right", "move right", "Move the column to the right.", footer=True, does="shift(1)"),
    Action("move_left", "K h left", "move left", "Move the column to the left.", does="shift(-1)"),
    Action("use", "enter", "use", "Show these columns.", footer=True),
    outer=(LIST, BOX, DIALOG),
)

DELETE_RESULTS = Scope(
    "delete_results",
    "Before results are deleted",
    Action("confirm", "y", "delete", "Delete them.", footer=True),
    outer=IN_DIALOG,
)

CORPUS = Scope(
    "corpus",
    "On the corpus screen",
    Action("read_all", "r", "read all", "Read the models that were never read before.", footer=True),
    Action(
        "other_level",
        "f",
        "fused/written",
        "Switch between fused and written layers.",
        footer=True,
        does="change('level', 1)",
    ),
    Action(
        "coarser",
        "+ =",
        "longer sequences",
        "Cut into sequences of one layer more.",
        footer=True,
        does="change('granularity', 1)",
    ),
    Action(
        "finer", "-", "shorter sequences", "Cut into sequences of one layer less.", does="change('granularity', -1)"
    ),
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
    Action("right", "l right", "next model", "Go one model to the right.", footer=True, does="step(1)"),
    Action("left", "h left", "previous model", "Go one model to the left.", footer=True, does="step(-1)"),
    Action("most_alike", "n", "most alike", "Go to the model that is most like the row.", footer=True),
    Action("exchange", "i", "exchange", "Exchange row and column."),
)

SYSTEMS = Scope(
    "systems",
    "On the systems screen",
    Action("look_again", "r", "refresh", "Examine this host and read the store again.", footer=True),
    Action("go_to_systems", "1", "systems", "Go to the systems."),
    Action("go_to_system", "2", "system", "Go to the facts about the system."),
    Action("go_to_machines", "3", "machines", "Go to the machines for the model.", footer=True),
    Action("go_to_doctor", "4", "doctor", "Go to what disturbs measurements on this host."),
    *PANEL_STEPS,
    Action("leave", "escape", "back", "Go back to the workbench.", footer=True),
    outer=(LIST, EVERYWHERE),
)

SYSTEM_LIST = SYSTEMS.panel(
    "system_list",
    "In the list of systems",
    Action("take", "enter", "use", "Estimate from the results of this system.", footer=True),
)

MACHINES = SYSTEMS.panel(
    "machines",
    "In the machines for the model",
    Action("take", "enter", "use", "Estimate from the results of this system.", footer=True),
    Action("sort", "s", "sort", "Sort by latency, or by the cost of a million inferences.", footer=True),
)

DOCTOR = SYSTEMS.panel(
    "doctor", "In the findings of the doctor", Action("copy", "y", "copy cure", "Copy the selected cure.", footer=True)
)

ANALYSIS = Scope(
    "analysis",
    "On the analysis screen",
    Action(
        "prove",
        "v",
        "prove",
        "Carry out the marked what-ifs, or the selected one, and measure their gain.",
        footer=True,
    ),
    Action("cancel", "x", "cancel", "Cancel the proof in progress; those before it are kept."),
    Action("measure", "m", "measure", "Measure what the what-ifs and the roofline lack.", footer=True),
    Action("show_roofline", "b", "roofline", "Draw the layers under the peaks of their system.", footer=True),
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
    Action("mark_all", "a", "mark all", "Mark all what-ifs that the search finds, or none of them."),
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

VARIANTS = Scope(
    "variants",
    "On the screen of variants",
    Action("measure", "m enter", "measure", "Measure the marked cells, or else the selected one.", footer=True),
    Action("measure_row", "w", "row", "Measure the row: all batch sizes.", footer=True),
    Action("measure_column", "c", "column", "Measure the column: all runtimes and threads.", footer=True),
    Action("mark_all", "a", "mark all", "Mark all cells, or none of them."),
    Action("other_unit", "u", "ms/per second", "Switch between ms and per second.", footer=True),
    Action("left", "h left", "left", "Go to the next smaller batch size.", does="step_batch(-1)"),
    Action("right", "l right", "right", "Go to the next larger batch size.", does="step_batch(1)"),
    Action("raise_bound", "+ =", "higher bound", "Raise the bound of the latency.", footer=True, does="step_bound(1)"),
    Action("lower_bound", "-", "lower bound", "Lower the bound of the latency.", footer=True, does="step_bound(-1)"),
    Action("drop_bound", "n", "no bound", "Compare without a bound."),
    Action("look_again", "r", "refresh", "Read the results stored by now."),
    Action("leave", "escape", "back", "Go back to the workbench.", footer=True),
    outer=(LIST, EVERYWHERE),
)

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

LOAD_SETTINGS = SCENARIO.panel(
    "load_settings",
    "In the settings of the scenario",
    Action("next", "l right", "next value", "Change to the next value.", footer=True, does="step(1)"),
    Action("previous", "h left", "previous value", "Change to the previous value.", does="step(-1)"),
    Action("write", "= enter", "write", "Write a value of your own.", footer=True),
)

LATENCIES = SCENARIO.panel(
    "latencies", "In the latencies", Action("copy", "y", "copy folder", "Copy the path of LoadGen's logs.", footer=True)
)

LOAD_TESTS = SCENARIO.panel(
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

CANCEL_LOAD = Scope(
    "cancel_load",
    "Before a measurement is cancelled",
    Action(
        "confirm", "y enter", "cancel it", "Cancel the measurement; its tests that have ended are stored.", footer=True
    ),
    outer=IN_DIALOG,
)

TRACE = Scope(
    "trace",
    "On the trace screen",
    Action("measure", "m", "measure", "Trace the open model at rising levels of detail.", footer=True),
    Action("cancel", "x", "cancel", "Cancel the trace in progress; stored traces are kept.", footer=True),
    Action("write", "e", "export", "Write the trace to a file for Perfetto or chrome://tracing.", footer=True),
    Action("look_again", "r", "refresh", "List the stored traces of the model again."),
    Action("go_to_timeline", "1", "timeline", "Go to the timeline."),
    Action("go_to_span", "2", "span", "Go to the details of the selected span.", footer=True),
    Action("go_to_traces", "3", "traces", "Go to the stored traces of the model.", footer=True),
    *PANEL_STEPS,
    Action("leave", "escape", "back", "Go back to the workbench; a trace in progress goes on.", footer=True),
    outer=(LIST, EVERYWHERE),
)

TIMELINE = TRACE.panel(
    "timeline",
    "In the timeline",
    Action("next", "l right", "next", "Select the next span of a track, or open a level.", footer=True, does="step(1)"),
    Action("previous", "h left", "previous", "Select the previous span of a track, or close a level.", does="step(-1)"),
    Action("open_or_close", "enter", "open/close", "Open or close the level of the row.", footer=True),
    Action("zoom_in", "+ =", "zoom in", "Show half of the times, around the selection.", footer=True, does="zoom(1)"),
    Action("zoom_out", "-", "zoom out", "Show twice as many times.", footer=True, does="zoom(-1)"),
    Action("pan_right", ">", "later", "Show later times.", does="pan(1)"),
    Action("pan_left", "<", "earlier", "Show earlier times.", does="pan(-1)"),
    Action("next_inference", "n", "next inference", "Go to the next inference.", footer=True, does="move_inference(1)"),
    Action("previous_inference", "N", "inference before", "Go to the previous inference.", does="move_inference(-1)"),
    Action("slowest", "w", "slowest", "Select the longest span of the track in this inference.", footer=True),
    Action("fit", "f", "fit", "Show one inference from its start to its end.", footer=True),
    Action("fit_everything", "F", "fit all", "Show all inferences."),
    Action("fit_span", "z", "fit span", "Show the selected span as wide as the row."),
    Action(
        "show_in_tree",
        "b",
        "decomposition",
        "Go back to the workbench, with the layer of the span selected in the decomposition.",
        footer=True,
    ),
    Action("copy", "y", "copy key", "Copy the key of the layer's brick, for `dlbricks results show`."),
)

SPAN = TRACE.panel(
    "span",
    "In the details of a span",
    Action("copy", "y", "copy key", "Copy the key of the layer's brick, for `dlbricks results show`."),
)

TRACES = TRACE.panel(
    "traces",
    "In the stored traces",
    Action("open", "enter l right", "open", "Show the selected trace.", footer=True),
    Action("copy", "y", "copy id", "Copy the id of the selected trace."),
)

START_TRACE = Scope(
    "start_trace",
    "Before a model is traced",
    Action("begin", "enter", "trace", "Trace the model with these settings.", footer=True),
    Action("next", "l right", "next value", "Change to the next value.", footer=True, does="step(1)"),
    Action("previous", "h left", "previous value", "Change to the previous value.", footer=True, does="step(-1)"),
    Action("write", "=", "write", "Write a number of your own.", footer=True),
    outer=IN_DIALOG,
)

CANCEL_TRACE = Scope(
    "cancel_trace",
    "Before a trace is cancelled",
    Action("confirm", "y enter", "cancel it", "Cancel the trace; stored traces are kept.", footer=True),
    outer=IN_DIALOG,
)

LANGUAGE = Scope(
    "language",
    "On the screen of language models",
    Action("measure", "m", "measure", "Measure the selected model on this host.", footer=True),
    Action("cancel", "x", "cancel", "Cancel the measurement; what it has stored is kept.", footer=True),
    Action("open_path", "o", "open", "Add a model: its config.json, folder, GGUF file or name.", footer=True),
    Action("look_again", "r", "refresh", "Read the results stored by now."),
    Action("go_to_models", "1", "models", "Go to the language models."),
    Action("go_to_answer", "2", "answer", "Go to the answer of the selected model.", footer=True),
    Action("go_to_curves", "3", "curves", "Go to the speed by context and by prompt.", footer=True),
    Action("go_to_settings", "4", "settings", "Go to the prompt and the execution.", footer=True),
    *PANEL_STEPS,
    Action("leave", "escape", "back", "Go back to the workbench; a measurement goes on.", footer=True),
    outer=(LIST, EVERYWHERE),
)

LANGUAGE_MODELS = LANGUAGE.panel(
    "language_models",
    "In the list of language models",
    Action("open", "enter l right", "answer", "Go to the answer of the model."),
    Action("sort", "s", "sort", "Sort by speed, memory, size or name.", footer=True),
    Action("only_fitting", "f", "that fit", "Show only models that fit, or all.", footer=True),
    Action("at_least", "=", "at least", "Show only models of so many tokens/s.", footer=True),
    Action("copy", "y", "copy command", "Copy the command that measures the model."),
)

LANGUAGE_SETTINGS = LANGUAGE.panel(
    "language_settings",
    "In the settings of language models",
    Action("next", "l right", "next value", "Change to the next one.", footer=True, does="step(1)"),
    Action("previous", "h left", "previous value", "Change to the previous value.", does="step(-1)"),
    Action("write", "= enter", "write", "Write a number of your own.", footer=True),
)

FLEET = Scope(
    "fleet",
    "On the fleet screen",
    Action("start", "m", "measure", "Measure the marked or open models on the hosts, in a new fleet run.", footer=True),
    Action(
        "pause", "p", "pause/resume", "Pause all hosts so that others can measure, or resume a fleet run.", footer=True
    ),
    Action("cancel", "x", "cancel", "Cancel the fleet run; what was measured is kept.", footer=True),
    Action("add", "o", "add hosts", "Add the hosts of another hosts file.", footer=True),
    Action("show_fleets", "J", "fleet runs", "Show all fleet runs, to watch another one.", footer=True),
    Action("go_to_hosts", "1", "hosts", "Go to the hosts."),
    Action("go_to_models", "2", "models", "Go to the models."),
    Action("go_to_ranking", "3", "ranking", "Go to the hosts of the selected model."),
    *PANEL_STEPS,
    Action("leave", "escape", "back", "Go back to the workbench; the fleet run continues.", footer=True),
    outer=(LIST, EVERYWHERE),
)

FLEET_HOSTS = FLEET.panel(
    "fleet_hosts",
    "In the hosts of a fleet",
    Action("pause", "P", "pause host", "Pause the selected host, or resume it.", footer=True, does="tell('pause')"),
    Action("cancel", "X", "cancel host", "End the work of the selected host.", footer=True, does="tell('cancel')"),
    Action("copy", "y", "copy message", "Copy what the selected host reports."),
)

FLEET_RANKING = FLEET.panel(
    "fleet_ranking",
    "In the hosts of a model",
    Action("sort", "s", "sort", "Sort by latency or by cost.", footer=True),
)

FLEETS = Scope(
    "fleets",
    "In the list of fleet runs",
    Action("show", "enter l right", "watch", "Show the selected fleet run.", footer=True),
    Action("resume", "p", "pause/resume", "Resume a fleet run that is not complete.", footer=True),
    outer=(LIST, BOX, DIALOG),
)

START_FLEET = Scope(
    "start_fleet",
    "Before a fleet run starts",
    Action("begin", "enter", "start", "Start it; it continues even if you quit.", footer=True),
    Action("next", "l right", "next", "Change to the next value.", footer=True, does="step(1)"),
    Action("previous", "h left", "previous", "Change to the previous value.", footer=True, does="step(-1)"),
    outer=IN_DIALOG,
)

CANCEL_FLEET = Scope(
    "cancel_fleet",
    "Before a fleet run is cancelled",
    Action("confirm", "y enter", "cancel it", "Cancel the fleet run; what was measured is kept.", footer=True),
    outer=IN_DIALOG,
)

MARKED = Scope(
    "marked",
    "On the screen of a comparison",
    Action("exchange", "i", "exchange", "Exchange A and B.", footer=True),
    Action("look_again", "r", "refresh", "Read the results stored by now.", footer=True),
    Action("go_to_parts", "1", "differences", "Go to the bricks or layers that differ most."),
    Action("go_to_circumstances", "2", "what else", "Go to what else differs."),
    *PANEL_STEPS,
    Action("leave", "escape", "back", "Go back; marks stay.", footer=True),
    outer=(LIST, EVERYWHERE),
)

PAIRS = MARKED.panel(
    "pairs",
    "In the list of differences",
    Action("sort", "s", "sort", "Sort by difference, by change, or by name.", footer=True),
)
