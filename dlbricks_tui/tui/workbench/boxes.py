"""The boxes of the workbench: the shapes of a model's inputs, suites, and scores of predictions."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from textual.containers import VerticalScroll

from dlbricks_tui.api.open_models import GivenInputs, WrongInputError
from dlbricks_tui.documents.estimates import score_parts
from dlbricks_tui.documents.lines import Line, Span, line
from dlbricks_tui.documents.parts import BLANK_LINE, Fact, Part, Sentence
from dlbricks_tui.errors import UserError
from dlbricks_tui.printable import shell_words
from dlbricks_tui.tui.dialogs.dialog import AskingDialog, TextDialog
from dlbricks_tui.tui.dialogs.paths import ANY_FILE, PathScreen
from dlbricks_tui.tui.keys import scopes
from dlbricks_tui.tui.keys.keymap import Hint
from dlbricks_tui.tui.widgets.panel import Field
from dlbricks_tui.tui.widgets.text import TextLines
from dlbricks_tui.wording.jobs import suite_contents, untravelled
from dlbricks_tui.wording.numbers import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from dlbricks_tui.api.open_models import AskedShape
    from dlbricks_tui.estimate.score import Score
    from dlbricks_tui.models.graph import Numbers
    from dlbricks_tui.share.exporting import SuiteWritten

    Inputs = Mapping[str, AskedShape]

_IMAGE = (1, 3, 224, 224)


class InputShapesScreen(AskingDialog["GivenInputs"]):
    """One field per input: its shape, or the value of a single number. Returns both by name, or nothing to forget them.

    The box opens while the inputs are still being read from the model, so that it takes the keys.
    """

    scope = scopes.FORM
    ABOUT = (
        "A shape is written like 1,3,224,224: one image of three channels, 224 by 224 pixels. An input that is a "
        "single number has no shape: its field takes the value."
    )

    def __init__(self, model: str, inputs: Inputs | Callable[[], Inputs], reason: str = "") -> None:
        self._read = inputs if callable(inputs) else None
        self._inputs: Inputs = {} if callable(inputs) else inputs
        self._fields = _fields(self._inputs)
        self._form = VerticalScroll(*self._labelled_fields(), can_focus=False)
        note = "Reading the inputs of the model." if callable(inputs) else reason
        super().__init__(self._form, heading=f"Shapes of the inputs of {model}", note=note)

    def on_mount(self) -> None:
        if self._read is not None:
            self.run_in_thread(partial(_read, self._read), "inputs", self._show_inputs)

    async def _show_inputs(self, found: tuple[Inputs, str]) -> None:
        self._inputs, problem = found
        self._fields = _fields(self._inputs)
        self._note = ""
        self.say(problem)
        await self._form.mount_all(self._labelled_fields())
        if self._fields:
            self.set_focus(next(iter(self._fields.values())))

    def on_input_changed(self) -> None:
        self.say("")

    def action_next_field(self) -> None:
        self.focus_next(Field)

    def action_previous_field(self) -> None:
        self.focus_previous(Field)

    def action_submit(self) -> None:
        given = GivenInputs({}, {})
        for name, field in self._fields.items():
            asked = self._inputs[name]
            try:
                given = given.with_text(name, asked, field.value.strip())
            except WrongInputError:
                what = "its value, a number, or nothing" if asked.is_number else f"its shape like {_example(asked)}"
                self.say(f"{name}: write {what}")
                self.set_focus(field)
                return
        if given.shapes:
            self.dismiss(given)

    def action_reset(self) -> None:
        self.dismiss(GivenInputs({}, {}))

    def _labelled_fields(self) -> list[TextLines | Field]:
        labelled = (
            (TextLines(partial(_label, name, self._inputs[name]), classes="field-name"), field)
            for name, field in self._fields.items()
        )
        return [each for pair in labelled for each in pair]


def _read(read: Callable[[], Inputs]) -> tuple[Inputs, str]:
    """Return the inputs of the model, and the problem with them."""
    try:
        inputs = read()
    except UserError as error:
        return {}, str(error)
    return inputs, "" if inputs else "The model has no inputs."


def _label(name: str, asked: AskedShape, width: int) -> tuple[Line, ...]:
    return (line(Span(name, "strong"), Span("  the value of a single number" if asked.is_number else "", "muted")),)


def _fields(inputs: Inputs) -> dict[str, Field]:
    return {
        name: Field(_spelled(asked.value if asked.is_number else asked.known or ()), hint=_example(asked))
        for name, asked in inputs.items()
    }


def _example(asked: AskedShape) -> str:
    return "any value" if asked.is_number else _spelled(asked.example or asked.known or _IMAGE)


def _spelled(numbers: Numbers) -> str:
    return ",".join(map(str, numbers))


_MOST_NAMED = 4


class ExportSuiteScreen(PathScreen):
    """Asks for the new file of a suite."""

    HINT = "~/suite.dlbricks"
    ENDINGS = ANY_FILE
    ABOUT = (
        "A suite is for a machine that must not have your models. It has their bricks, each by itself without weights "
        "and names, among bricks of other networks, the decoys. The key says which bricks are yours. It stays in your "
        "data folder: without it nobody can use the results. A name that ends in .dlbricks makes one file, and any "
        "other name a folder."
    )

    def problem_with(self, path: Path) -> str:
        if not path.absolute().parent.is_dir():
            return f"No such folder: {path.absolute().parent}"
        return f"{path} exists already: name a new file" if path.exists() else ""


class SuiteWrittenScreen(TextDialog[None]):
    """States what a suite has, and the steps that follow."""

    HEADING = "The suite is written"
    ABOUT = "`dlbricks suite` does the same on the command line, with more options."

    def __init__(self, written: SuiteWritten) -> None:
        super().__init__()
        self._written = written

    def parts(self) -> Iterable[Part]:
        written = self._written
        yield Sentence(f"{suite_contents(written)}.", "strong")
        left_out = [f"left out: {reason}" for reason in written.left_out] + untravelled(written.untravelled)
        yield from (Sentence(text, "warn") for text in left_out[:_MOST_NAMED])
        if len(left_out) > _MOST_NAMED:
            yield Sentence(f"and {counted(len(left_out) - _MOST_NAMED, 'other')}", "warn")
        yield BLANK_LINE
        yield Fact("suite", written.path)
        yield Fact("key", written.key)
        yield Sentence("Keep the key: it says which bricks are yours. Nobody can use the results without it.", "muted")
        yield BLANK_LINE
        yield Sentence("Give the suite to the other side. It needs dlbricks in the same version, and types:")
        yield Fact("command", f"dlbricks suite run {shell_words([Path(written.path).name])} -o results.json")
        yield BLANK_LINE
        yield Hint("Then import results.json here: {workbench.show_results} {results.import_file}")


class ScoresScreen(TextDialog[None]):
    """Shows models as they would have been predicted, beside what was measured."""

    HEADING = "How good predictions have been"
    ABOUT = (
        "The models of the library whose bricks were all measured on the system and runtime of the estimate: the "
        "prediction before the run of each, and the sum of its measured bricks. Results of other systems do not count."
    )

    def __init__(self, read: Callable[[], Sequence[Score]]) -> None:
        super().__init__()
        self._read = read
        self._found: Sequence[Score] | None = None

    def on_mount(self) -> None:
        self.run_in_thread(self._read, "scores", self._show)

    def _show(self, found: Sequence[Score]) -> None:
        self._found = found
        self.parts_changed()

    def parts(self) -> Iterable[Part]:
        if self._found is None:
            return (Sentence("Predicting the models without their own results.", "muted"),)
        return score_parts(self._found)
