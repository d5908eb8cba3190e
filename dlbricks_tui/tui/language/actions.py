"""The actions of the screen of language models and its panels."""

from dlbricks_tui.tui.keys.actions import EVERYWHERE, LIST, Action, Scope, panel_steps

LANGUAGE = Scope(
    "language",
    "On the screen of language models",
    (
        Action("language.measure", ("r",), "measure", "Measure the selected model on this host.", footer=True),
        Action("language.cancel", ("x",), "cancel", "Cancel the measurement; what it has stored is kept.", footer=True),
        Action(
            "language.open_path",
            ("o",),
            "open",
            "Add a model: its config.json, folder, GGUF file or name.",
            footer=True,
        ),
        Action("language.look_again", ("R",), "refresh", "Read the results stored by now."),
        Action("language.go_to_models", ("1",), "models", "Go to the language models."),
        Action("language.go_to_answer", ("2",), "answer", "Go to the answer of the selected model.", footer=True),
        Action("language.go_to_curves", ("3",), "curves", "Go to the speed by context and by prompt.", footer=True),
        Action("language.go_to_settings", ("4",), "settings", "Go to the prompt and the execution.", footer=True),
        *panel_steps("language"),
        Action("language.leave", ("escape",), "back", "Go back to the workbench; a measurement goes on.", footer=True),
    ),
    (LIST, EVERYWHERE),
)
_IN_PANEL = (LIST, LANGUAGE, EVERYWHERE)

MODELS = Scope(
    "language_models",
    "In the list of language models",
    (
        Action("language_models.open", ("enter", "l", "right"), "answer", "Go to the answer of the model."),
        Action("language_models.sort", ("s",), "sort", "Sort by speed, memory, size or name.", footer=True),
        Action("language_models.only_fitting", ("f",), "that fit", "Show only models that fit, or all.", footer=True),
        Action("language_models.at_least", ("a",), "at least", "Show only models of so many tokens/s.", footer=True),
        Action("language_models.copy", ("y",), "copy command", "Copy the command that measures the model."),
    ),
    _IN_PANEL,
)

SETTINGS = Scope(
    "language_settings",
    "In the settings of language models",
    (
        Action("language_settings.next", ("l", "right", "space"), "next value", "Change to the next one.", footer=True),
        Action("language_settings.previous", ("h", "left"), "previous value", "Change to the previous value."),
        Action("language_settings.write", ("e", "enter"), "write", "Write a number of your own.", footer=True),
    ),
    _IN_PANEL,
)

SCOPES = (LANGUAGE, MODELS, SETTINGS)
