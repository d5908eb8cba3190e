"""The actions of the screens of results, and of their panels and boxes."""

from dlbricks_tui.tui.keys.actions import BOX, DIALOG, EVERYWHERE, IN_DIALOG, LIST, Action, Scope, panel_steps

RESULTS = Scope(
    "results",
    "On the screen of results",
    (
        Action(
            "results.keep",
            ("v",),
            "keep",
            "Remember the marked (else all found) results as one side of a comparison.",
            footer=True,
        ),
        Action(
            "results.compare",
            ("=",),
            "compare",
            "Compare the marked (else all found) results with the remembered ones.",
            footer=True,
        ),
        Action(
            "results.export", ("e",), "export", "Export the marked (else all found) results to a file.", footer=True
        ),
        Action("results.import_file", ("i",), "import", "Import results from a file.", footer=True),
        Action("results.delete", ("d",), "delete", "Delete the marked results, or the selected one.", footer=True),
        Action("results.undo_delete", ("u",), "undo", "Restore the results that were deleted last.", footer=True),
        Action("results.go_to_results", ("1",), "results", "Go to the results."),
        Action("results.go_to_result", ("2",), "result", "Go to the result."),
        Action("results.go_to_history", ("3",), "history", "Go to the history."),
        *panel_steps("results"),
        Action("results.leave", ("escape",), "back", "Go back to the workbench.", footer=True),
    ),
    (LIST, EVERYWHERE),
)
_IN_PANEL = (LIST, RESULTS, EVERYWHERE)

RESULT_TABLE = Scope(
    "result_table",
    "In the table of results",
    (
        Action("result_table.open", ("enter",), "read", "Read about the selected result.", footer=True),
        Action(
            "result_table.sort", ("s",), "sort", "Sort by the underlined column, or reverse the order.", footer=True
        ),
        Action("result_table.column_right", ("l", "right"), "next column", "Go to the next column.", footer=True),
        Action("result_table.column_left", ("h", "left"), "previous column", "Go to the previous column."),
        Action("result_table.choose_columns", ("c",), "columns", "Select the columns to show.", footer=True),
        Action("result_table.mark", ("space",), "mark", "Mark a result, to compare, export or delete it.", footer=True),
        Action("result_table.mark_all", ("a",), "mark all", "Mark all results that were found, or none of them."),
        Action("result_table.copy", ("y",), "copy key", "Copy the brick's key, for `dlbricks results show`."),
        Action("result_table.only_this", ("b",), "this brick", "Show only results of this brick, or of this model."),
    ),
    _IN_PANEL,
)

RESULT = Scope(
    "result",
    "In the panel of one result",
    (Action("result.copy", ("y",), "copy key", "Copy the brick's key, for `dlbricks results show`.", footer=True),),
    _IN_PANEL,
)

HISTORY = Scope(
    "history",
    "In the history",
    (
        Action("history.open", ("enter",), "read", "Read about the selected measurement.", footer=True),
        Action("history.copy", ("y",), "copy id", "Copy the id of the measurement, for `dlbricks results show`."),
    ),
    _IN_PANEL,
)

COLUMNS = Scope(
    "columns",
    "In the list of columns",
    (
        Action("columns.show_or_hide", ("space",), "show/hide", "Show the column, or hide it.", footer=True),
        Action("columns.move_right", ("J", "l", "right"), "move right", "Move the column to the right.", footer=True),
        Action("columns.move_left", ("K", "h", "left"), "move left", "Move the column to the left."),
        Action("columns.use", ("enter",), "use", "Show these columns.", footer=True),
    ),
    (LIST, BOX, DIALOG),
)

DELETE_RESULTS = Scope(
    "delete_results",
    "Before results are deleted",
    (Action("delete_results.confirm", ("y",), "delete", "Delete them.", footer=True),),
    IN_DIALOG,
)

SCOPES = (RESULTS, RESULT_TABLE, RESULT, HISTORY, COLUMNS, DELETE_RESULTS)
