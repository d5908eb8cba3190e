"""The boxes that ask for a path, with completion as in a shell."""

import os
from collections.abc import Sequence
from functools import partial
from glob import escape, iglob
from os.path import commonprefix
from pathlib import Path
from typing import ClassVar

from textual import events

from dlbricks_tui.api.opening import FILE_ENDINGS
from dlbricks_tui.documents.lines import Line, Span, cut_start, line
from dlbricks_tui.printable import printable
from dlbricks_tui.tui.dialogs.dialog import AskingDialog
from dlbricks_tui.tui.keys import scopes
from dlbricks_tui.tui.keys.keymap import key
from dlbricks_tui.tui.widgets.panel import Field
from dlbricks_tui.tui.widgets.rows import ItemRows

_LATELY = "  opened lately"
# Every name ends with the empty string.
ANY_FILE = ("",)
# No text may end the program: it may be too long for a name, have a null character, or name nobody's home folder.
UNUSABLE = (OSError, ValueError, RuntimeError)


def completions(typed: str, endings: tuple[str, ...] = FILE_ENDINGS) -> tuple[str, ...]:
    """Return the folders, ending in a slash, and then the files that the typed text may become."""
    head, slash, beginning = typed.rpartition("/")
    try:
        folder = Path(f"{head}{slash}").expanduser()
        # It leaves hidden names out, which that of a path does not.
        found = sorted(iglob(f"{escape(beginning)}*", root_dir=folder))  # noqa: PTH207 - as above
        # Unlike this function, that of a path fails where links lead in a circle.
        is_folder = {name: os.path.isdir(folder / name) for name in found}  # noqa: PTH112 - as above
    except UNUSABLE:
        return ()
    folders = (f"{head}{slash}{name}/" for name in found if is_folder[name])
    files = (f"{head}{slash}{name}" for name in found if not is_folder[name] and name.endswith(endings))
    return (*folders, *files)


class OfferedPaths(ItemRows[str], can_focus=False):
    """The paths to choose from; without a cursor the typed text counts."""

    def __init__(self) -> None:
        super().__init__()
        self._walked = False
        self._recent: tuple[str, ...] = ()

    @property
    def has_cursor(self) -> bool:
        return self._walked

    @property
    def chosen(self) -> str | None:
        """The selected path; a folder ends in a slash."""
        return self.items[self.cursor] if self._walked and self.items else None

    def row(self, index: int, width: int) -> Line:
        path = self.items[index]
        if path in self._recent:
            return line(Span(cut_start(path, width - len(_LATELY))), Span(_LATELY, "muted"))
        is_folder = path.endswith("/")
        name = path.removesuffix("/").rpartition("/")[2]
        return line(Span(f"{name}/", "strong") if is_folder else Span(name))

    def show(self, offered: tuple[str, ...], recent: tuple[str, ...] = ()) -> None:
        """Show what the typed text may become, after files that were opened lately."""
        self._recent = recent
        self.items = (*recent, *offered)
        self.show_placeholder(line(Span("No file or folder here begins like this.", "muted")))
        self.leave()
        self.rows_changed()

    def walk(self, step: int) -> None:
        """Move the cursor; before the first path it returns to the typed text."""
        if self._walked and step < 0 and self.cursor == 0:
            self.leave()
        elif self._walked:
            self.move_to(self.cursor + step)
        elif step > 0:
            self._walked = bool(self.items)
            self.refresh()

    def leave(self) -> None:
        """Remove the cursor."""
        self._walked = False
        self.cursor = 0
        self.refresh()

    def on_click(self, event: events.Click) -> None:
        self._walked = event.y + self.scroll_offset.y < self.row_count
        self.refresh()


class PathScreen(AskingDialog[Path]):
    """Returns a typed or selected path; a thread looks up the names on the disk."""

    scope = scopes.PATH
    HINT: ClassVar[str]
    # The endings of the files to offer.
    ENDINGS: ClassVar[tuple[str, ...]]

    BOX_CLASSES = "-tall"

    def __init__(self, heading: str = "") -> None:
        self._path = Field(hint=self.HINT)
        # The problem stays in view until the text changes.
        self._refused = ""
        self._list = OfferedPaths()
        super().__init__(self._path, self._list, heading=heading)

    def on_mount(self) -> None:
        self.below.display = False
        self._look()

    def on_input_changed(self) -> None:
        if self._path.value != self._refused:
            self.say("")
        self._look()

    def action_complete(self) -> None:
        # What they have in common may end within a name.
        common = commonprefix(self._list.items)  # noqa: RUF071 - as above
        self._type(self._list.chosen or common or self._path.value)

    def action_walk(self, step: int) -> None:
        self._list.walk(step)

    def action_take(self) -> None:
        chosen = self._list.chosen
        if chosen is not None:
            self._type(chosen)
        if chosen is None or not chosen.endswith("/"):
            self._take()

    def problem_with(self, path: Path) -> str:
        """Return why the path cannot be used; empty if it can."""
        return "" if path.exists() else f"There is no {path}"

    def _take(self) -> None:
        typed = self._path.value.strip()
        path, problem = Path(typed), "" if typed else "Type a path first."
        try:
            path = path.expanduser()
            problem = problem or self.problem_with(path)
        except UNUSABLE as error:
            reason = error.strerror if isinstance(error, OSError) else str(error)
            problem = f"{typed} cannot be used: {reason}"
        self.say(printable(problem))
        if not problem:
            self.dismiss(path.absolute())

    def _type(self, path: str) -> None:
        self._list.leave()
        self._path.value = path
        self._path.cursor_position = len(path)

    def say(self, problem: str) -> None:
        self._refused = self._path.value
        self.below.display = bool(problem)
        super().say(problem)

    def _look(self) -> None:
        self.run_in_thread(partial(completions, self._path.value, self.ENDINGS), "complete", self.show_offered)

    def show_offered(self, offered: tuple[str, ...]) -> None:
        self._list.show(offered)


class NewFileScreen(PathScreen):
    """Asks for a file to write; an existing one has to be confirmed."""

    ENDINGS = ANY_FILE

    def __init__(self, heading: str) -> None:
        super().__init__(heading)
        self._warned_of: Path | None = None

    def problem_with(self, path: Path) -> str:
        if path.is_dir():
            return f"{path} is a folder: name a file in it"
        if not path.absolute().parent.is_dir():
            return f"No such folder: {path.absolute().parent}"
        if problem := self.format_problem(path):
            return problem
        if path.exists() and path != self._warned_of:
            self._warned_of = path
            return f"{path} already exists: press {key('path.take')} again to replace it"
        return ""

    def format_problem(self, path: Path) -> str:
        """Return why no file of this ending can be written; empty if it can."""
        return ""


class OpenPathScreen(PathScreen):
    """Asks for a model file or a folder of models that exists."""

    HEADING = "Open a model file or a folder of models"
    HINT = "~/models/resnet50-symbol.json"
    ENDINGS = FILE_ENDINGS
    ABOUT = (
        "The path of a *-symbol.json or *.onnx file to open, or of a folder of such files to add to the library. "
        "{path.next} selects one of the names below. {path.take} opens a selected folder, and otherwise uses the path "
        "as it stands. Files that were opened lately come first. A ~ stands for your home folder."
    )

    def __init__(self, recent: Sequence[Path] = ()) -> None:
        super().__init__()
        self._recent = recent

    def show_offered(self, offered: tuple[str, ...]) -> None:
        recent = () if self._path.value else tuple(filter(os.path.exists, map(str, self._recent)))
        self._list.show(offered, recent)
