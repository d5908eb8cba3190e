"""Language models: how fast they are on this host, measured by a few of their blocks or predicted."""

import os
from collections.abc import Callable, Sequence

from dlbricks_tui.answers.language.asking import measure as measure_models
from dlbricks_tui.answers.language.asking import stored_answers
from dlbricks_tui.answers.language.results import LanguageAnswer, LanguageOptions
from dlbricks_tui.api.opening import Model, folder_at, names_of
from dlbricks_tui.language.opening import open_language_model
from dlbricks_tui.wording.language import message_line


def language(
    models: Model | Sequence[Model],
    options: LanguageOptions | None = None,
    *,
    measure: bool = True,
    end_to_end: bool = False,
    progress: Callable[[str], None] | None = None,
    data: os.PathLike[str] | str | None = None,
) -> tuple[LanguageAnswer, ...]:
    """Return how fast language models are on this host, and whether they fit: an answer for each in each variant.

    A model is a name that `dlbricks llm --list` shows, or the path of a config.json, a GGUF file, or a folder with
    either. What the store lacks is measured in a process of its own, or predicted if `measure` is false. `end_to_end`
    times the whole model as well, where it fits. `progress` is called with a line when something begins, ends or fails.
    An exception, such as KeyboardInterrupt, ends the measurement and its processes.
    """
    folder, options = folder_at(data), options or LanguageOptions()
    named = [open_language_model(it) for it in names_of(models)]
    for it in named:
        options.require_context(it.name, it.architecture.positions)
    if not measure:
        return stored_answers(named, options, folder)

    tell = progress or (lambda _: None)
    return measure_models(named, options, folder, lambda it: tell(message_line(it)), end_to_end=end_to_end)
