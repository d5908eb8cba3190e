"""The actions of the screens of results, and of their panels and boxes."""

from dlbricks_tui.tui.keys.actions import BOX, DIALOG, EVERYWHERE, IN_DIALOG, LIST, PANEL_STEPS, Action, Scope

RESULTS = Scope(
    "results",
    "On the screen of results",
    Action(
        "keep", "v", "keep", "Remember the marked (else all found) results as one side of a comparison.", footer=True
    ),
    Action(
        "compare", "=", "compare", "Compare the marked (else all found) results with the remembered ones.", footer=True
    ),
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
    Action("column_right", "l right", "next column", "Go to the next column.", footer=True),
    Action("column_left", "h left", "previous column", "Go to the previous column."),
    Action("choose_columns", "c", "columns", "Select the columns to show.", footer=True),
    Action("mark", "space", "mark", "Mark a result, to compare, export or delete it.", footer=True),
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
    Action("move_right", "J l right", "move right", "Move the column to the right.", footer=True),
    Action("move_left", "K h left", "move left", "Move the column to the left."),
    Action("use", "enter", "use", "Show these columns.", footer=True),
    outer=(LIST, BOX, DIALOG),
)

DELETE_RESULTS = Scope(
    "delete_results",
    "Before results are deleted",
    Action("confirm", "y", "delete", "Delete them.", footer=True),
    outer=IN_DIALOG,
)

SCOPES = (RESULTS, RESULT_TABLE, RESULT, HISTORY, COLUMNS, DELETE_RESULTS)
