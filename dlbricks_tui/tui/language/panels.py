"""The panels of the language models, of the answer of one, of its curves, and of the settings."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from operator import attrgetter
from typing import ClassVar

from textual.app import ComposeResult
from textual.containers import Horizontal

from dlbricks_tui.answers.language import LanguageAnswer, LanguageOptions
from dlbricks_tui.documents.language import (
    curve_parts,
    executions_parts,
    language_command,
    language_parts,
    language_plots,
    library_columns,
)
from dlbricks_tui.documents.lines import Span, line
from dlbricks_tui.documents.parts import BLANK_LINE, Column, Heading
from dlbricks_tui.language.architecture import WeightPrecision
from dlbricks_tui.settings.language import AT_LEAST, GENERATE, PROMPT, WEIGHTS
from dlbricks_tui.settings.measuring import END_TO_END
from dlbricks_tui.settings.setting import with_own
from dlbricks_tui.settings.variant import RUNTIME, THREADS
from dlbricks_tui.tui.dialogs.notices import WritingScreen
from dlbricks_tui.tui.keys import scopes
from dlbricks_tui.tui.keys.keymap import Hint
from dlbricks_tui.tui.widgets.form import FormPanel, FormRow
from dlbricks_tui.tui.widgets.panel import DocumentPanel, Orders, TablePanel, counts_text
from dlbricks_tui.tui.widgets.text import PictureView

_FILTERS = "{language_models.only_fitting} and {language_models.at_least}"


class LanguageModelsPanel(TablePanel[LanguageAnswer]):
    scope = scopes.LANGUAGE_MODELS
    ID = "language-models"
    TITLE = "Language models"
    REACHED_BY = "language.go_to_models"
    SEARCH_HINT = "name"
    PLACEHOLDER = (Hint("Predicting the models of the library.", "muted"),)
    NOUN = "model"
    IDENTITY = attrgetter("model")
    NOTHING_TO_COPY = "Select a model first."
    ABOUT = (
        "Each model with its speed, the time until its first token, and its memory; ~ is predicted from what was "
        f"measured on this host. {{language_models.sort}} sorts; {_FILTERS} show only models that fit, or fast ones."
    )
    ORDERS: ClassVar[Orders] = {
        # Models that do not fit come last.
        "speed": lambda it: (not it.fits, -it.decode_tokens_per_second),
        "first token": lambda it: (not it.fits, it.first_token_ms),
        "memory": lambda it: it.memory_bytes,
        "parameters": lambda it: it.parameters,
        "name": lambda it: it.title.casefold(),
    }

    def __init__(self) -> None:
        super().__init__()
        self.answers: Sequence[LanguageAnswer] = ()
        self._only_fitting = False
        self._at_least = 0.0

    def columns(self) -> tuple[Column[LanguageAnswer], ...]:
        return library_columns(self.items)

    def show(self, answers: Sequence[LanguageAnswer], refusal: str = "") -> None:
        """Show these models, as far as they are wanted; or why there are none."""
        self.answers = answers
        none = Hint(f"No model is as asked for: {_FILTERS} change that, {{find.clear}} ends a search.", "muted")
        self.show_placeholder(line(Span(refusal, "warn")) if refusal else none)
        self.show_items([it for it in answers if self._is_wanted(it)])

    def searched(self, item: LanguageAnswer) -> str:
        return f"{item.model} {item.title}"

    def show_counts(self) -> None:
        fit = ", that fit" * self._only_fitting
        fast = f", at least {self._at_least:g} tokens/s" * (self._at_least > 0)
        counts = counts_text(len(self.found), len(self.answers))
        self.show_title(f" {counts}{fit}{fast}, by {self.order}" if self.answers else "")

    def action_only_fitting(self) -> None:
        self._only_fitting = not self._only_fitting
        self.show(self.answers)

    def action_at_least(self) -> None:
        box: WritingScreen[float] = WritingScreen(
            "At least so fast",
            f"{self._at_least:g}" if self._at_least else "",
            "Tokens per second; an empty line shows all models.",
            lambda text: AT_LEAST.kind.read(text) if text else 0.0,
        )
        self.app.push_screen(box, self._show_at_least)

    def copied(self) -> str | None:
        return language_command(self.selected) if self.selected else None

    def _show_at_least(self, rate: float | None) -> None:
        # The box that is closed returns nothing.
        if rate is not None:
            self._at_least = rate
            self.show(self.answers)

    def _is_wanted(self, it: LanguageAnswer) -> bool:
        return it.decode_tokens_per_second >= self._at_least and (it.fits or not (self._only_fitting or self._at_least))


class LanguageAnswerPanel(DocumentPanel):
    ID = "language-answer"
    TITLE = "Answer"
    REACHED_BY = "language.go_to_answer"
    ABOUT = "All figures of the model, where its time goes, its memory, and other ways to execute it."

    def show(self, *answers: LanguageAnswer) -> None:
        """Show an answer, and the executions after it."""
        parts = [part for it in answers[:1] for part in language_parts(it, on_screen=True)]
        if len(answers) > 1:
            parts += [BLANK_LINE, Heading("Other executions"), *executions_parts(answers[1:])]
        self.show_parts(parts, answers[0].model if answers else None)


class LanguageCurvesPanel(DocumentPanel):
    ID = "language-curves"
    TITLE = "Speed by length"
    REACHED_BY = "language.go_to_curves"
    ABOUT = (
        "Left: tokens per second after so many tokens, and what the bandwidth of the memory allows. Right: the time "
        "until the first token after a prompt of so many tokens. o is measured, ~ is predicted."
    )

    def __init__(self) -> None:
        super().__init__()
        self._second = PictureView()

    def compose(self) -> ComposeResult:
        with Horizontal(classes="pictures"):
            yield self.picture
            yield self._second
        yield self.rows

    def show(self, answer: LanguageAnswer) -> None:
        self.show_title(f" of {answer.title}")
        for view, picture in zip_longest((self.picture, self._second), language_plots(answer)):
            view.show(picture)
        self.show_parts(curve_parts(answer))


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
    scope = scopes.LANGUAGE_SETTINGS
    ID = "language-settings"
    TITLE = "Settings"
    REACHED_BY = "language.go_to_settings"
    ROWS = (
        FormRow(setting=PROMPT, words=lambda it: f"{it.prompt:,}"),
        FormRow(setting=GENERATE, words=lambda it: f"{it.generate:,}"),
        FormRow(setting=WEIGHTS, many=True),
        FormRow(setting=THREADS, many=True, usual="default", offered=lambda _: [(it,) for it in THREADS.kind.offered]),
        FormRow(
            setting=RUNTIME,
            kept_in="runtimes",
            many=True,
            usual="default",
            meaning="of this host",
            offered=lambda it: [(name,) for name in it.registered],
        ),
        FormRow(
            setting=END_TO_END,
            label="measure",
            meaning="a block stands for its equals",
            words=lambda it: "blocks and whole" if it.end_to_end else "blocks",
        ),
    )
    ABOUT = (
        "What the models are asked to do, and how they are executed; the table follows each change. A carrier holds "
        "each different block of a model once. The whole model is built with random weights, and timed in an engine "
        "that people use. {language_settings.write} writes a number of your own."
    )
