"""What can be done in the details."""

from dlbricks_tui.tui.actions.action import Action

DETAILS = (
    Action("details.copy", ("y",), "copy key", "Copy the brick's key, for `dlbricks results show`.", footer=True),
)
