"""Opens a model file, or adds a folder of models, by its path."""

from functools import partial
from pathlib import Path

from textual.app import ComposeResult
from textual.message import Message

from dlbricks_tui.tui.actions.action import Scope
from dlbricks_tui.tui.actions.registry import bindings
from dlbricks_tui.tui.lines import Line, Span, line
from dlbricks_tui.tui.paths import common_beginning, completions
from dlbricks_tui.tui.screens.dialog import Dialog
from dlbricks_tui.tui.widgets.box import Box
from dlbricks_tui.tui.widgets.field import Field
from dlbricks_tui.tui.widgets.said import Said


class OpenPathScreen(Dialog[Path]):
    """Gives the path of what there is; completion looks at the disk from a thread, which may be a slow one."""

    BINDINGS = bindings(Scope.PATH)
    ABOUT = (
        "The path of a *-symbol.json file, which is opened, or of a folder with such files, which joins the library. "
        "A ~ stands for your home folder."
    )

    class Completed(Message):
        """What the typed beginning may become."""

        def __init__(self, typed: str, found: tuple[str, ...]) -> None:
            super().__init__()
            self.typed = typed
            self.found = found

    def __init__(self) -> None:
        super().__init__()
        self._path = Field(hint="~/models/resnet50-symbol.json")
        self._offered: tuple[str, ...] = ()
        self._problem = ""
        self._below = Said(self._below_lines)

    def compose(self) -> ComposeResult:
        with Box("Open a model file or a folder of models", [Scope.PATH, Scope.DIALOG]):
            yield self._path
            yield self._below

    def on_mount(self) -> None:
        self._look()

    def on_input_changed(self) -> None:
        self._problem = ""
        self._look()

    def on_open_path_screen_completed(self, event: Completed) -> None:
        if event.typed == self._path.value:
            self._offered = event.found
            self._below.refresh(layout=True)

    def on_input_submitted(self) -> None:
        self.action_take()

    def action_complete(self) -> None:
        self._path.value = common_beginning(self._offered) or self._path.value
        self._path.cursor_position = len(self._path.value)

    def action_take(self) -> None:
        path = Path(self._path.value.strip()).expanduser()
        if self._path.value.strip() and path.exists():
            self.dismiss(path.absolute())
        else:
            self._problem = f"There is no {path}" if self._path.value.strip() else "Type a path first."
            self._below.refresh(layout=True)

    def _look(self) -> None:
        typed = self._path.value
        self.ask(partial(self._find, typed), "complete")

    def _find(self, typed: str) -> None:
        self.post_message(self.Completed(typed, completions(typed)))

    def _below_lines(self, width: int) -> tuple[Line, ...]:
        if self._problem:
            return (line(Span(self._problem, "bad")),)
        return tuple(line(Span(each, "muted")) for each in self._offered)
