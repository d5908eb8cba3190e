"""Actions, each declared once: bindings, key bar, palette, help and docs/reference/keys.md derive from the declaration.

Every screen declares its own in its folder; those that belong to no single screen are here.
"""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Action:
    """A command of a scope with its keys, by Textual's names; the first key is the one that is shown."""

    method: str
    # With blanks between them.
    key_names: str
    label: str
    help: str
    # Shown in the key bar if there is room.
    footer: bool = False
    # Shown there before those of the panel with the focus, so that a narrow terminal shows it too.
    first: bool = False
    # True if it also works in front of boxes and while the user types; only for the scope `app`.
    always: bool = False
    # What Textual runs, if it is not the method of this name: `step(1)`.
    does: str = ""
    # The name of the scope.
    scope: str = ""

    @property
    def id(self) -> str:
        """The names of the scope and of the method, such as `models.mark`, as in the keymap of the config file."""
        return f"{self.scope}.{self.method}"

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys without those of the config file."""
        return tuple(self.key_names.split())

    @property
    def call(self) -> str:
        """The call that Textual runs; all actions that go to a panel share a method."""
        return self.does or (f"go_to('{self.id}')" if self.method.startswith("go_to_") else self.method)


class Scope:
    """A place where actions apply: the program, a screen, a panel, a list or a box."""

    def __init__(
        self, name: str, title: str, *actions: Action, outer: tuple[Scope, ...] = (), typing: bool = False
    ) -> None:
        """`title` is the heading in the help, `typing` is True if the user types text here.

        The keys of the scopes in `outer` also work here, from the inside out.
        """
        self.name = name
        self.title = title
        self.actions = tuple(replace(it, scope=name) for it in actions)
        self.outer = outer
        self.typing = typing

    def panel(self, name: str, title: str, *actions: Action) -> Scope:
        """Return the scope of a panel on this screen."""
        return Scope(name, title, *actions, outer=(LIST, self, EVERYWHERE))


# Every screen with panels has these.
PANEL_STEPS = (
    Action("next_panel", "tab", "next panel", "Go to the next panel.", does="step_panel(1)"),
    Action("previous_panel", "shift+tab", "previous panel", "Go to the previous panel.", does="step_panel(-1)"),
)

EVERYWHERE = Scope(
    "app",
    "Everywhere",
    Action("show_help", "? f1", "help", "List the keys that work here.", footer=True, first=True),
    Action("search", "/", "search", "Search in the current panel, or among the models.", footer=True),
    Action("find_command", ": ctrl+p", "palette", "Find a command by its name.", footer=True),
    Action(
        "mark", "space", "mark", "Mark the row, or unmark it: what you do next, you do to the marked rows.", footer=True
    ),
    Action(
        "compare_marked",
        "C",
        "compare",
        "Compare two marked rows, or the marked one with the selected one; on the "
        "screen of results keep the marked (else all found) ones, then compare others with them.",
    ),
    Action("zoom", "Z", "zoom", "Show the current panel on the whole screen, or all panels again."),
    Action("next_theme", "t", "theme", "Switch to the next theme."),
    Action("show_config", ",", "config", "Change the settings in the config file."),
    Action("copy_shown", "Y", "copy", "Copy the current panel as Markdown, CSV, JSON or SVG."),
    Action("save_picture", "ctrl+g", "picture", "Save a picture of the screen as SVG.", always=True),
    Action("redraw", "ctrl+l", "redraw", "Redraw a screen that other output has overwritten.", always=True),
    Action("suspend_process", "ctrl+z", "suspend", "Suspend dlbricks; `fg` resumes it.", always=True),
    Action("quit", "q ctrl+c", "quit", "Quit; a run in progress continues.", footer=True, first=True),
)

LIST = Scope(
    "list",
    "In every list",
    Action("down", "j down", "down", "Go one line down."),
    Action("up", "k up", "up", "Go one line up."),
    Action("page_down", "ctrl+d pagedown", "page down", "Go one page down."),
    Action("page_up", "ctrl+u pageup", "page up", "Go one page up."),
    Action("first", "g home", "first", "Go to the first line."),
    Action("last", "G end", "last", "Go to the last line."),
)

# The user types into the search line: only keys that are no text reach any other scope.
SEARCH = Scope(
    "find",
    "While you search",
    Action("keep", "enter down", "keep", "Keep the search and go to its results.", footer=True),
    Action("clear", "escape", "end search", "End the search and show all rows again.", footer=True, first=True),
    typing=True,
)

DIALOG = Scope(
    "dialog",
    "In this box",
    Action("close", "escape q", "close", "Close the box without doing anything.", footer=True),
    Action("show_help", "f1 ?", "help", "List the keys that work here.", does="app.show_help"),
    Action("leave", "ctrl+c", "quit", "Quit dlbricks."),
)

IN_DIALOG = (LIST, DIALOG)

BOX = Scope(
    "box", "In a box with a list", Action("search", "/", "search", "Search in this list.", footer=True), outer=IN_DIALOG
)

FORM = Scope(
    "form",
    "In this form",
    Action("submit", "enter", "use", "Use these shapes and values.", footer=True),
    Action("next_field", "tab down", "next", "Go to the next field.", footer=True),
    Action("reset", "ctrl+r", "reset", "Forget the shapes and values given for this model.", footer=True),
    Action("previous_field", "shift+tab up", "previous", "Go to the previous field."),
    outer=(DIALOG,),
    typing=True,
)

PATH = Scope(
    "path",
    "While you type a path",
    Action("take", "enter", "use", "Use the path or the selected file; open a selected folder.", footer=True),
    Action("complete", "tab", "complete", "Complete the path as far as it is unique.", footer=True),
    Action("next", "down ctrl+n", "next", "Select the next of the names below.", footer=True, does="walk(1)"),
    Action(
        "previous", "up ctrl+p", "previous", "Select the previous name; before the first, the path.", does="walk(-1)"
    ),
    outer=(DIALOG,),
    typing=True,
)

NUMBERS = Scope(
    "numbers",
    "While you write a value",
    Action("submit", "enter", "use", "Use what is written.", footer=True),
    outer=(DIALOG,),
    typing=True,
)

ERROR = Scope(
    "error",
    "With this error",
    Action("copy", "y", "copy", "Copy the text to the clipboard of your terminal.", footer=True),
    outer=IN_DIALOG,
)

HIDDEN_MARKS = Scope(
    "hidden_marks",
    "When marked rows are hidden",
    Action("in_view", "enter", "those in view", "Use only the marked rows in view.", footer=True),
    Action("everything", "a", "all marked", "Use the hidden marked rows too.", footer=True),
    outer=IN_DIALOG,
)

DEMONSTRATION = Scope(
    "demonstration",
    "At the start of a demonstration",
    Action("begin", "enter", "begin", "Open a model, and look around.", footer=True),
    Action("search", "/", "search", "Close the box, and search for a model."),
    outer=IN_DIALOG,
)

WELCOME = Scope(
    "welcome",
    "At the first start",
    Action("begin", "enter", "begin", "Open the sample and measure it.", footer=True),
    Action("search", "/", "search", "Close the box, and search for a model."),
    outer=IN_DIALOG,
)

PALETTE = Scope(
    "palette",
    "In the command palette",
    Action("take", "enter", "do it", "Run the selected command.", footer=True),
    Action("next", "down ctrl+n", "next", "Select the next command.", footer=True, does="step(1)"),
    Action("previous", "up ctrl+p", "previous", "Select the previous command.", does="step(-1)"),
    outer=(DIALOG,),
    typing=True,
)

COPYING = Scope(
    "copying",
    "Before a panel is copied",
    Action("copy", "enter Y", "copy", "Copy the panel in the selected form.", footer=True),
    outer=IN_DIALOG,
)

CONFIG = Scope(
    "config",
    "In the settings of the config file",
    Action("next", "l right enter", "next value", "Change to the next value.", footer=True, does="step(1)"),
    Action("previous", "h left", "previous value", "Change to the previous value.", footer=True, does="step(-1)"),
    Action("reset", "d", "delete", "Remove the setting from the file: its default applies.", footer=True),
    outer=IN_DIALOG,
)

# The outermost first.
SCOPES = (
    EVERYWHERE,
    LIST,
    DIALOG,
    SEARCH,
    BOX,
    FORM,
    PATH,
    NUMBERS,
    ERROR,
    WELCOME,
    DEMONSTRATION,
    PALETTE,
    HIDDEN_MARKS,
    CONFIG,
    COPYING,
)
