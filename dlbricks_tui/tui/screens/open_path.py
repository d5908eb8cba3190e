"""Asks for a path: of a model file or a folder of models to open, and, by subclasses elsewhere, of other files."""

from functools import partial
from pathlib import Path
from typing import ClassVar

from textual.app import ComposeResult
from textual.message import Message

from dlbricks_tui.tui.actions.action import Scope
from dlbricks_tui.tui.actions.registry import bindings
from dlbricks_tui.tui.lines import Line, Span, line, wrapped
from dlbricks_tui.tui.paths import MODELS, common_beginning, completions
from dlbricks_tui.tui.screens.dialog import Dialog
from dlbricks_tui.tui.widgets.box import Box
from dlbricks_tui.tui.widgets.field import Field
from dlbricks_tui.tui.widgets.said import Said


class PathScreen(Dialog[Path]):
    """Gives a path; completion looks at the disk from a thread, which may be a slow one."""

    BINDINGS = bindings(Scope.PATH)
    HINT: ClassVar[str]
    # How the names of the files end that are offered.
    ENDINGS: ClassVar[tuple[str, ...]]

    class Completed(Message):
        """What the typed beginning may become."""

        def __init__(self, typed: str, found: tuple[str, ...]) -> None:
            super().__init__()
            self.typed = typed
            self.found = found

    def __init__(self) -> None:
        super().__init__()
        self._path = Field(hint=self.HINT)
        self._offered: tuple[str, ...] = ()
        self._problem = ""
        self._below = Said(self._below_lines)

    @property
    def question(self) -> str:
        """What the path is for."""
        raise NotImplementedError

    def compose(self) -> ComposeResult:
        with Box(self.question, [Scope.PATH, Scope.DIALOG]):
            yield self._path
            yield self._below

    def on_mount(self) -> None:
        self._look()

    def on_input_changed(self) -> None:
        self._problem = ""
        self._look()

    def on_path_screen_completed(self, event: Completed) -> None:
        if event.typed == self._path.value:
            self._offered = event.found
            self._below.refresh(layout=True)

    def on_input_submitted(self) -> None:
        self.action_take()

    def action_complete(self) -> None:
        self._path.value = common_beginning(self._offered) or self._path.value
        self._path.cursor_position = len(self._path.value)

    def action_take(self) -> None:
        typed = self._path.value.strip()
        path = Path(typed).expanduser()
        self._problem = self.problem_with(path) if typed else "Type a path first."
        if self._problem:
            self._below.refresh(layout=True)
        else:
            self.dismiss(path.absolute())

    def problem_with(self, path: Path) -> str:
        """Why this path will not do; nothing where it will."""
        return "" if path.exists() else f"There is no {path}"

    def _look(self) -> None:
        typed = self._path.value
        self.ask(partial(self._find, typed), "complete")

    def _find(self, typed: str) -> None:
        self.post_message(self.Completed(typed, completions(typed, self.ENDINGS)))

    def _below_lines(self, width: int) -> tuple[Line, ...]:
        if self._problem:
            return tuple(wrapped(line(Span(self._problem, "bad")), width))
        return tuple(line(Span(each, "muted")) for each in self._offered)


class OpenPathScreen(PathScreen):
    """Gives the path of what there is."""

    HINT = "~/models/resnet50-symbol.json"
    ENDINGS = MODELS
    ABOUT = (
        "The path of a *-symbol.json or *.onnx file, which is opened, or of a folder with such files, which joins "
        "the library. A ~ stands for your home folder."
    )

    @property
    def question(self) -> str:
        return "Open a model file or a folder of models"
