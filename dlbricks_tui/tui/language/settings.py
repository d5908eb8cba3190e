"""The settings of language models, and their panel."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace

from dlbricks_tui.answers.language.options import LanguageOptions
from dlbricks_tui.language.precision import WeightPrecision
from dlbricks_tui.runtime.runtime import MOST_THREADS
from dlbricks_tui.tui.choices import with_own
from dlbricks_tui.tui.dialogs.writing import one_number
from dlbricks_tui.tui.language import actions
from dlbricks_tui.tui.widgets.form import FormPanel, FormSetting, Written

_USUAL = LanguageOptions()
MOST_TOKENS = 1 << 20
_PROMPTS, _GENERATED = (16, 128, 512, 1024, 4096, 16384), (32, 128, 512, 1024)
_CORES = os.cpu_count() or 1


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
        threads = with_own((1, _CORES), next(iter(self.threads), None))
        return replace(self, precisions=tuple(WeightPrecision), threads=threads, runtimes=self.registered)


def _threads(text: str) -> tuple[int, ...]:
    number = one_number(text, MOST_THREADS)
    return () if number is None else (number,)


class LanguageSetting(FormSetting):
    """The settings of language models."""

    PROMPT = (
        "prompt",
        "prompt",
        "tokens to read",
        lambda it: f"{it.prompt:,}",
        lambda it: with_own(_PROMPTS, it.prompt),
        Written("512", "Tokens of the prompt.", lambda text: one_number(text, MOST_TOKENS) or _USUAL.prompt),
    )
    GENERATE = (
        "generate",
        "generate",
        "tokens to make",
        lambda it: f"{it.generate:,}",
        lambda it: with_own(_GENERATED, it.generate),
        Written("128", "Generated tokens.", lambda text: one_number(text, MOST_TOKENS) or _USUAL.generate),
    )
    PRECISION = (
        "precision",
        "precisions",
        "of the weights",
        lambda it: it.precisions[0].value,
        lambda _: tuple((each,) for each in WeightPrecision),
    )
    THREADS = (
        "threads",
        "threads",
        "of the runtime",
        lambda it: ",".join(map(str, it.threads)) or "usual",
        lambda it: ((), *((each,) for each in with_own(range(1, _CORES + 1), next(iter(it.threads), None)))),
        Written("2", "Threads; an empty line is the usual number.", _threads),
    )
    RUNTIME = (
        "runtime",
        "runtimes",
        "of this host",
        lambda it: ",".join(it.runtimes) or "usual",
        lambda it: ((), *((each,) for each in it.registered)),
    )
    MEASURED = (
        "measure",
        "end_to_end",
        "",
        lambda it: "carriers and whole model" if it.end_to_end else "carriers",
        lambda _: (False, True),
    )


class LanguageSettingsPanel(FormPanel):
    """The length of the prompt, the number of generated tokens, and how models are executed."""

    scope = actions.SETTINGS
    TITLE = "Settings"
    REACHED_BY = "language.go_to_settings"
    SETTINGS = LanguageSetting
    ABOUT = (
        "What the models are asked to do, and how they are executed; the table follows each change. A carrier holds "
        "each different block of a model once. The whole model is built with random weights, and timed in an engine "
        "that people use. {language_settings.write} writes a number of your own."
    )
