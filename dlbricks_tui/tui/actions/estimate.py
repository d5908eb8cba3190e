"""What can be done in the estimate panel."""

from dlbricks_tui.tui.actions.action import Action

ESTIMATE = (
    Action("estimate.next", ("l", "right", "enter"), "next value", "Give the setting its next value.", footer=True),
    Action("estimate.previous", ("h", "left"), "value before", "Give the setting the value before.", footer=True),
)
