"""The actions of the screen of language models and its panels."""

from dlbricks_tui.tui.keys.actions import EVERYWHERE, LIST, PANEL_STEPS, Action, Scope

LANGUAGE = Scope(
    "language",
    "On the screen of language models",
    Action("measure", "r", "measure", "Measure the selected model on this host.", footer=True),
    Action("cancel", "x", "cancel", "Cancel the measurement; what it has stored is kept.", footer=True),
    Action("open_path", "o", "open", "Add a model: its config.json, folder, GGUF file or name.", footer=True),
    Action("look_again", "R", "refresh", "Read the results stored by now."),
    Action("go_to_models", "1", "models", "Go to the language models."),
    Action("go_to_answer", "2", "answer", "Go to the answer of the selected model.", footer=True),
    Action("go_to_curves", "3", "curves", "Go to the speed by context and by prompt.", footer=True),
    Action("go_to_settings", "4", "settings", "Go to the prompt and the execution.", footer=True),
    *PANEL_STEPS,
    Action("leave", "escape", "back", "Go back to the workbench; a measurement goes on.", footer=True),
    outer=(LIST, EVERYWHERE),
)

MODELS = LANGUAGE.panel(
    "language_models",
    "In the list of language models",
    Action("open", "enter l right", "answer", "Go to the answer of the model."),
    Action("sort", "s", "sort", "Sort by speed, memory, size or name.", footer=True),
    Action("only_fitting", "f", "that fit", "Show only models that fit, or all.", footer=True),
    Action("at_least", "a", "at least", "Show only models of so many tokens/s.", footer=True),
    Action("copy", "y", "copy command", "Copy the command that measures the model."),
)

SETTINGS = LANGUAGE.panel(
    "language_settings",
    "In the settings of language models",
    Action("next", "l right space", "next value", "Change to the next one.", footer=True),
    Action("previous", "h left", "previous value", "Change to the previous value."),
    Action("write", "e enter", "write", "Write a number of your own.", footer=True),
)

SCOPES = (LANGUAGE, MODELS, SETTINGS)
