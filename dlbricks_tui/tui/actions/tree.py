"""What can be done in the decomposition tree."""

from dlbricks_tui.tui.actions.action import Action

TREE = (
    Action("tree.expand", ("l", "right"), "open", "Open what the cursor is on, or go into it.", footer=True),
    Action("tree.collapse", ("h", "left"), "close", "Close what the cursor is on, or go to what it is part of."),
    Action("tree.open_or_close", ("enter", "space"), "open/close", "Open what the cursor is on, or close it."),
    Action("tree.expand_below", ("e",), "expand", "Open everything below the cursor, as far as is readable.", True),
    Action("tree.collapse_all", ("E",), "collapse", "Close everything but the model."),
    Action("tree.next_equal", ("n",), "same brick", "Go to the next place where the same brick occurs.", True),
    Action("tree.previous_equal", ("N",), "same before", "Go to the place before where the same brick occurs."),
    Action("tree.next_critical", ("p",), "critical", "Go to the next sequence on the critical path.", True),
)
