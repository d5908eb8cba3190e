"""What can be done in the decomposition tree."""

from dlbricks_tui.tui.actions.action import Action

TREE = (
    Action("tree.expand", ("l", "right"), "open", "Open what the cursor is on, or go into it.", footer=True),
    Action("tree.collapse", ("h", "left"), "close", "Close what the cursor is on, or go to what it is part of."),
    Action("tree.open_or_close", ("enter", "space"), "open/close", "Open what the cursor is on, or close it."),
    Action("tree.expand_below", ("e",), "expand", "Open everything in what the cursor is on.", footer=True),
    Action("tree.collapse_all", ("E",), "collapse", "Close everything but the model."),
    Action("tree.next_equal", ("n",), "same", "Go to the next part that is the same: brick or module.", footer=True),
    Action("tree.previous_equal", ("N",), "same before", "Go to the part before that is the same."),
    Action("tree.next_critical", ("p",), "path", "Go to the next sequence on the critical path.", footer=True),
    Action("tree.previous_critical", ("P",), "path before", "Go to the sequence before on the critical path."),
    Action("tree.next_gap", ("m",), "missing", "Go to the next sequence that has no latency.", footer=True),
    Action("tree.previous_gap", ("M",), "missing before", "Go to the sequence before that has no latency."),
    Action("tree.copy", ("y",), "copy key", "Copy the brick's key, for `dlbricks results show`."),
)
