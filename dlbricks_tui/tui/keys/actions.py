"""Actions, each declared once: bindings, key bar, palette, help and docs/reference/keys.md derive from the declaration.

Every screen declares its own in its folder; those that belong to no single screen are here.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Action:
    """A command with its keys, by Textual's names; the first key is the one that is shown.

    `id` is the name of the scope and of the method, such as `models.mark`. The keymap of the config file uses it.
    """

    id: str
    keys: tuple[str, ...]
    label: str
    help: str
    # Shown in the key bar if there is room.
    footer: bool = False
    # Shown there before those of the panel with the focus, so that a narrow terminal shows it too.
    first: bool = False
    # True if it also works in front of boxes and while the user types; only for the scope `app`.
    always: bool = False

    @property
    def method(self) -> str:
        """The part of the id after the scope."""
        return self.id.partition(".")[2]

    @property
    def call(self) -> str:
        """The method that Textual calls; all actions that go to a panel share one."""
        return f"go_to('{self.id}')" if self.method.startswith("go_to_") else self.method


@dataclass(frozen=True, slots=True, eq=False)
class Scope:
    """A place where actions apply: the program, a screen, a panel, a list or a box."""

    name: str
    # The heading in the help.
    title: str
    actions: tuple[Action, ...] = ()
    # The scopes whose keys also work here, from the inside out.
    outer: tuple[Scope, ...] = ()
    # True if the user types text here.
    typing: bool = False


def panel_steps(screen: str) -> tuple[Action, Action]:
    """Return the two actions that every screen with panels has."""
    return (
        Action(f"{screen}.next_panel", ("tab",), "next panel", "Go to the next panel."),
        Action(f"{screen}.previous_panel", ("shift+tab",), "previous panel", "Go to the previous panel."),
    )


EVERYWHERE = Scope(
    "app",
    "Everywhere",
    (
        Action("app.show_help", ("?", "f1"), "help", "List the keys that work here.", footer=True, first=True),
        Action("app.search", ("/",), "search", "Search in the current panel, or among the models.", footer=True),
        Action("app.find_command", (":", "ctrl+p"), "palette", "Find a command by its name.", footer=True),
        Action("app.mark_row", ("*",), "mark A/B", "Mark a row to compare it with another one, or unmark it."),
        Action("app.compare_marked", ("V",), "compare A and B", "Compare the two marked rows."),
        Action("app.unmark_rows", ("U",), "unmark", "Remove the marks on rows to compare."),
        Action("app.zoom", ("Z",), "zoom", "Show the current panel on the whole screen, or all panels again."),
        Action("app.next_theme", ("t",), "theme", "Switch to the next theme."),
        Action("app.show_config", (",",), "config", "Change the settings in the config file."),
        Action("app.copy_shown", ("Y",), "copy", "Copy the current panel as Markdown, CSV, JSON or SVG."),
        Action("app.save_picture", ("ctrl+g",), "picture", "Save a picture of the screen as SVG.", always=True),
        Action("app.redraw", ("ctrl+l",), "redraw", "Redraw a screen that other output has overwritten.", always=True),
        Action("app.suspend_process", ("ctrl+z",), "suspend", "Suspend dlbricks; `fg` resumes it.", always=True),
        Action("app.quit", ("q", "ctrl+c"), "quit", "Quit; a run in progress continues.", footer=True, first=True),
    ),
)

LIST = Scope(
    "list",
    "In every list",
    (
        Action("list.down", ("j", "down"), "down", "Go one line down."),
        Action("list.up", ("k", "up"), "up", "Go one line up."),
        Action("list.page_down", ("ctrl+d", "pagedown"), "page down", "Go one page down."),
        Action("list.page_up", ("ctrl+u", "pageup"), "page up", "Go one page up."),
        Action("list.first", ("g", "home"), "first", "Go to the first line."),
        Action("list.last", ("G", "end"), "last", "Go to the last line."),
    ),
)

# The user types into the search line: only keys that are no text reach any other scope.
SEARCH = Scope(
    "find",
    "While you search",
    (
        Action("find.keep", ("enter", "down"), "keep", "Keep the search and go to its results.", footer=True),
        Action("find.clear", ("escape",), "end search", "End the search and show all rows again.", footer=True),
    ),
    typing=True,
)

DIALOG = Scope(
    "dialog",
    "In this box",
    (
        Action("dialog.close", ("escape", "q"), "close", "Close the box without doing anything.", footer=True),
        Action("dialog.show_help", ("f1", "?"), "help", "List the keys that work here."),
        Action("dialog.leave", ("ctrl+c",), "quit", "Quit dlbricks."),
    ),
)

IN_DIALOG = (LIST, DIALOG)

BOX = Scope(
    "box",
    "In a box with a list",
    (Action("box.search", ("/",), "search", "Search in this list.", footer=True),),
    IN_DIALOG,
)

FORM = Scope(
    "form",
    "In this form",
    (
        Action("form.submit", ("enter",), "use", "Use these shapes and values.", footer=True),
        Action("form.next_field", ("tab", "down"), "next", "Go to the next field.", footer=True),
        Action("form.reset", ("ctrl+r",), "reset", "Forget the shapes and values given for this model.", footer=True),
        Action("form.previous_field", ("shift+tab", "up"), "previous", "Go to the previous field."),
    ),
    (DIALOG,),
    typing=True,
)

PATH = Scope(
    "path",
    "While you type a path",
    (
        Action(
            "path.take", ("enter",), "use", "Use the path or the selected file; open a selected folder.", footer=True
        ),
        Action("path.complete", ("tab",), "complete", "Complete the path as far as it is unique.", footer=True),
        Action("path.next", ("down", "ctrl+n"), "next", "Select the next of the names below.", footer=True),
        Action("path.previous", ("up", "ctrl+p"), "previous", "Select the previous name; before the first, the path."),
    ),
    (DIALOG,),
    typing=True,
)

NUMBERS = Scope(
    "numbers",
    "While you write a value",
    (Action("numbers.submit", ("enter",), "use", "Use what is written.", footer=True),),
    (DIALOG,),
    typing=True,
)

ERROR = Scope(
    "error",
    "With this error",
    (Action("error.copy", ("y",), "copy", "Copy the text to the clipboard of your terminal.", footer=True),),
    IN_DIALOG,
)

HIDDEN_MARKS = Scope(
    "hidden_marks",
    "When marked rows are hidden",
    (
        Action("hidden_marks.in_view", ("enter",), "those in view", "Use only the marked rows in view.", footer=True),
        Action("hidden_marks.everything", ("a",), "all marked", "Use the hidden marked rows too.", footer=True),
    ),
    IN_DIALOG,
)

DEMONSTRATION = Scope(
    "demonstration",
    "At the start of a demonstration",
    (Action("demonstration.begin", ("enter",), "begin", "Open a model, and look around.", footer=True),),
    IN_DIALOG,
)

WELCOME = Scope(
    "welcome",
    "At the first start",
    (Action("welcome.begin", ("enter",), "begin", "Open the sample and measure it.", footer=True),),
    IN_DIALOG,
)

PALETTE = Scope(
    "palette",
    "In the command palette",
    (
        Action("palette.take", ("enter",), "do it", "Run the selected command.", footer=True),
        Action("palette.next", ("down", "ctrl+n"), "next", "Select the next command.", footer=True),
        Action("palette.previous", ("up", "ctrl+p"), "previous", "Select the previous command."),
    ),
    (DIALOG,),
    typing=True,
)

COPYING = Scope(
    "copying",
    "Before a panel is copied",
    (Action("copying.copy", ("enter", "Y"), "copy", "Copy the panel in the selected form.", footer=True),),
    IN_DIALOG,
)

CONFIG = Scope(
    "config",
    "In the settings of the config file",
    (
        Action("config.next", ("l", "right", "space", "enter"), "next value", "Change to the next value.", footer=True),
        Action("config.previous", ("h", "left"), "previous value", "Change to the previous value.", footer=True),
        Action("config.reset", ("x",), "reset", "Remove the setting from the file: its default applies.", footer=True),
    ),
    IN_DIALOG,
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
