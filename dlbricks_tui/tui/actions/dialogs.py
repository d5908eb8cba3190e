"""What can be done in the boxes that stand in front of a screen."""

from dlbricks_tui.tui.actions.action import Action

ERROR = (Action("error.copy", ("y",), "copy", "Copy the text to the clipboard of your terminal.", footer=True),)

PATH = (
    Action("path.take", ("enter",), "use", "Use the path, or the file under the cursor; open a folder.", footer=True),
    Action("path.complete", ("tab",), "complete", "Complete the path as far as it is clear.", footer=True),
    Action("path.next", ("down", "ctrl+n"), "next", "Go to the next of the names below.", footer=True),
    Action("path.previous", ("up", "ctrl+p"), "previous", "Go to the name before, from the first to the path."),
)

BOX = (Action("box.search", ("/",), "search", "Search in this list.", footer=True),)

FORM = (
    Action("form.submit", ("enter",), "use", "Use these shapes.", footer=True),
    Action("form.next_field", ("tab", "down"), "next", "Go to the next field.", footer=True),
    Action("form.previous_field", ("shift+tab", "up"), "previous", "Go to the field before."),
)

HIDDEN_MARKS = (
    Action("hidden_marks.in_view", ("enter",), "those in view", "Use only the marked rows in view.", footer=True),
    Action("hidden_marks.everything", ("a",), "all marked", "Use the hidden marked rows too.", footer=True),
)

WELCOME = (Action("welcome.begin", ("enter",), "begin", "Open the sample and run its bricks.", footer=True),)

CONFIG = (
    Action(
        "config.next", ("l", "right", "space", "enter"), "next value", "Give the setting its next value.", footer=True
    ),
    Action("config.previous", ("h", "left"), "value before", "Give the setting the value before.", footer=True),
    Action("config.forget", ("x",), "forget", "Take the setting out of the file: the default counts.", footer=True),
)

PALETTE = (
    Action("palette.take", ("enter",), "do it", "Do what the cursor is on.", footer=True),
    Action("palette.next", ("down", "ctrl+n"), "next", "Go to the next command.", footer=True),
    Action("palette.previous", ("up", "ctrl+p"), "previous", "Go to the command before."),
)
