"""What can be done with results: among all of them, with one, and with two selections."""

from dlbricks_tui.tui.actions.action import Action

RESULT_TABLE = (
    Action("result_table.open", ("enter",), "read", "Read about the result that the cursor is on.", footer=True),
    Action("result_table.sort", ("s",), "sort", "Sort by the underlined column; again: the other way.", footer=True),
    Action("result_table.column_right", ("l", "right"), "next column", "Go to the next column.", footer=True),
    Action("result_table.column_left", ("h", "left"), "column before", "Go to the column before."),
    Action("result_table.choose_columns", ("c",), "columns", "Choose which columns there are.", footer=True),
    Action("result_table.mark", ("space",), "mark", "Mark a result, to compare, export or delete it.", footer=True),
    Action("result_table.mark_all", ("a",), "mark all", "Mark all results that were found, or none of them."),
    Action("result_table.copy", ("y",), "copy key", "Copy the brick's key, for `dlbricks results show`."),
    Action("result_table.only_this", ("b",), "this brick", "Show only results of this brick, or of this model."),
)

RESULT = (Action("result.copy", ("y",), "copy key", "Copy the brick's key, for `dlbricks results show`.", footer=True),)

HISTORY = (
    Action("history.open", ("enter",), "read", "Read about the measurement that the cursor is on.", footer=True),
    Action("history.copy", ("y",), "copy id", "Copy the id of the measurement, for `dlbricks results show`."),
)

RESULTS = (
    Action("results.keep", ("v",), "keep", "Keep the marked results, or those found, to compare with.", footer=True),
    Action("results.compare", ("=",), "compare", "Compare the marked results, or those found.", footer=True),
    Action("results.export", ("e",), "export", "Write the marked results, or those found, to a file.", footer=True),
    Action("results.import_file", ("i",), "import", "Take up results from a file.", footer=True),
    Action("results.delete", ("d",), "delete", "Delete the marked results, or the one under the cursor.", footer=True),
    Action("results.undo_delete", ("u",), "undo", "Bring back what was deleted last.", footer=True),
    Action("results.go_to_results", ("1",), "results", "Go to the results."),
    Action("results.go_to_result", ("2",), "result", "Go to the result."),
    Action("results.go_to_history", ("3",), "history", "Go to the history."),
    Action("results.next_panel", ("tab",), "next panel", "Go to the next panel."),
    Action("results.previous_panel", ("shift+tab",), "previous panel", "Go to the panel before."),
    Action("results.leave", ("escape",), "back", "Go back to the workbench.", footer=True),
)

COLUMNS = (
    Action("columns.show_or_hide", ("space",), "show/hide", "Show the column, or hide it.", footer=True),
    Action("columns.later", ("J", "l", "right"), "further right", "Move the column one to the right.", footer=True),
    Action("columns.sooner", ("K", "h", "left"), "further left", "Move the column one to the left."),
    Action("columns.use", ("enter",), "use", "Show these columns.", footer=True),
)

DELETE_RESULTS = (Action("delete_results.confirm", ("y",), "delete", "Delete them.", footer=True),)

PAIRS = (Action("pairs.sort", ("s",), "sort", "Sort by difference, by change, or by name.", footer=True),)

CONTRAST = (
    Action("contrast.exchange", ("x",), "exchange", "Exchange the two selections.", footer=True),
    Action("contrast.leave", ("escape",), "back", "Go back to the results.", footer=True),
)
