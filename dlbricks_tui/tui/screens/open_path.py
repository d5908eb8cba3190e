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
from dlbricks_tui.tui.widgets.offered_paths import OfferedPaths
from dlbricks_tui.tui.widgets.said import Said


class PathScreen(Dialog[Path]):
    """Gives a path, typed or walked to; what there is on the disk, which may be slow, is looked up in a thread."""

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
        self._problem = ""
        # What the problem is with: it stays until something else is typed.
        self._refused = ""
        self._below = Said(self._below_lines)
        self._list = OfferedPaths()

    @property
    def question(self) -> str:
        """What the path is for."""
        raise NotImplementedError

    def compose(self) -> ComposeResult:
        with Box(self.question, [Scope.PATH, Scope.DIALOG], classes="-tall"):
            yield self._path
            yield self._below
            yield self._list

    def on_mount(self) -> None:
        self._below.display = False
        self._look()

    def on_input_changed(self) -> None:
        if self._path.value != self._refused:
            self._tell("")
        self._look()

    def on_path_screen_completed(self, event: Completed) -> None:
        if event.typed == self._path.value:
            self._list.show(event.found)

    def on_input_submitted(self) -> None:
        self.action_take()

    def action_complete(self) -> None:
        self._type(self._list.chosen or common_beginning(self._list.offered) or self._path.value)

    def action_next(self) -> None:
        self._list.walk(1)

    def action_previous(self) -> None:
        self._list.walk(-1)

    def action_take(self) -> None:
        chosen = self._list.chosen
        if chosen is not None:
            self._type(chosen)
        if chosen is None or not chosen.endswith("/"):
            self._take()

    def problem_with(self, path: Path) -> str:
        """Why this path will not do; nothing where it will."""
        return "" if path.exists() else f"There is no {path}"

    def _take(self) -> None:
        typed = self._path.value.strip()
        path = Path(typed).expanduser()
        self._tell(self.problem_with(path) if typed else "Type a path first.")
        if not self._problem:
            self.dismiss(path.absolute())

    def _type(self, path: str) -> None:
        """Puts the path into the field, as if the person had typed it."""
        self._list.leave()
        self._path.value = path
        self._path.cursor_position = len(path)

    def _tell(self, problem: str) -> None:
        self._problem, self._refused = problem, self._path.value
        self._below.display = bool(problem)
        self._below.refresh(layout=True)

    def _look(self) -> None:
        typed = self._path.value
        self.ask(partial(self._find, typed), "complete")

    def _find(self, typed: str) -> None:
        self.post_message(self.Completed(typed, completions(typed, self.ENDINGS)))

    def _below_lines(self, width: int) -> tuple[Line, ...]:
        return tuple(wrapped(line(Span(self._problem, "bad")), width))


class OpenPathScreen(PathScreen):
    """Gives the path of what there is."""

    HINT = "~/models/resnet50-symbol.json"
    ENDINGS = MODELS
    ABOUT = (
        "The path of a *-symbol.json or *.onnx file, which is opened, or of a folder with such files, which joins "
        "the library: {path.next} walks through what is there, {path.take} goes into a folder that the cursor is on, "
        "and in the field uses the path as it stands. A ~ stands for your home folder."
    )

    @property
    def question(self) -> str:
        return "Open a model file or a folder of models"
