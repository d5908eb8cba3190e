"""What can be done in the list of models."""

from dlbricks_tui.tui.actions.action import Action

MODELS = (
    Action("models.open", ("enter", "l", "right"), "open", "Show the model that the cursor is on.", footer=True),
    Action("models.mark", ("space",), "mark", "Mark the model for the next run, or unmark it.", footer=True),
    Action("models.mark_all", ("a",), "mark all", "Mark all models in view, or none of them."),
    Action("models.remove", ("d", "delete"), "remove", "Remove a model of yours from the list; its file stays."),
    Action("models.give_shapes", ("n",), "shapes", "Give the shapes of the model's inputs."),
)
