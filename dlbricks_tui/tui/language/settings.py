"""The settings of language models, as the rows of their panel."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace

from dlbricks_tui.answers.language.options import LanguageOptions
from dlbricks_tui.language.precision import WeightPrecision
from dlbricks_tui.settings.kinds import with_own
from dlbricks_tui.settings.language import GENERATE, PROMPT, WEIGHTS
from dlbricks_tui.settings.measuring import END_TO_END
from dlbricks_tui.settings.variant import RUNTIME, THREADS
from dlbricks_tui.tui.language import actions
from dlbricks_tui.tui.widgets.form import FormPanel, FormRow


@dataclass(frozen=True, slots=True, kw_only=True)
class LanguageSettings(LanguageOptions):
    """Options with one precision, and at most one number of threads and runtime."""

    # True: a measurement also times the whole model.
    end_to_end: bool = False
    # The names of the runtimes to choose from.
    registered: tuple[str, ...] = ()

    @property
    def alternatives(self) -> LanguageOptions:
        """The options that compare all precisions and runtimes, and one thread with all cores."""
        threads = with_own((1, os.cpu_count() or 1), next(iter(self.threads), None))
        return replace(self, precisions=tuple(WeightPrecision), threads=threads, runtimes=self.registered)


class LanguageSettingsPanel(FormPanel):
    """The length of the prompt, the number of generated tokens, and how models are executed."""

    scope = actions.SETTINGS
    TITLE = "Settings"
    REACHED_BY = "language.go_to_settings"
    ROWS = (
        FormRow(setting=PROMPT, words=lambda it: f"{it.prompt:,}"),
        FormRow(setting=GENERATE, words=lambda it: f"{it.generate:,}"),
        FormRow(setting=WEIGHTS, many=True),
        FormRow(setting=THREADS, many=True, usual="usual", offered=lambda _: [(it,) for it in THREADS.kind.offered]),
        FormRow(
            setting=RUNTIME,
            kept_in="runtimes",
            many=True,
            usual="usual",
            meaning="of this host",
            offered=lambda it: [(name,) for name in it.registered],
        ),
        FormRow(
            setting=END_TO_END,
            label="measure",
            meaning=" ",
            words=lambda it: "carriers and whole model" if it.end_to_end else "carriers",
        ),
    )
    ABOUT = (
        "What the models are asked to do, and how they are executed; the table follows each change. A carrier holds "
        "each different block of a model once. The whole model is built with random weights, and timed in an engine "
        "that people use. {language_settings.write} writes a number of your own."
    )
