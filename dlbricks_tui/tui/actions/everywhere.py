"""What can be done on every screen, in every list, and in every search."""

from dlbricks_tui.tui.actions.action import Action

EVERYWHERE = (
    Action("app.show_help", ("?", "f1"), "help", "Say which keys do what, here and now.", footer=True),
    Action("app.search", ("/",), "search", "Search in the panel that you are in, or among the models.", footer=True),
    Action("app.find_command", (":", "ctrl+p"), "palette", "Find a command by its name.", footer=True),
    Action("app.next_theme", ("t",), "theme", "Change to the next theme."),
    Action("app.show_config", (",",), "config", "Change the settings of the config file."),
    Action("app.save_picture", ("ctrl+g",), "picture", "Save a picture of the screen, as SVG.", always=True),
    Action("app.redraw", ("ctrl+l",), "redraw", "Draw the screen anew, if others wrote over it.", always=True),
    Action("app.suspend_process", ("ctrl+z",), "suspend", "Go to the shell; `fg` there leads back.", always=True),
    Action("app.quit", ("q", "ctrl+c"), "quit", "Leave; a run that is under way goes on without you.", footer=True),
)

LIST = (
    Action("list.down", ("j", "down"), "down", "Go one line down."),
    Action("list.up", ("k", "up"), "up", "Go one line up."),
    Action("list.page_down", ("ctrl+d", "pagedown"), "page down", "Go one page down."),
    Action("list.page_up", ("ctrl+u", "pageup"), "page up", "Go one page up."),
    Action("list.first", ("g", "home"), "first", "Go to the first line."),
    Action("list.last", ("G", "end"), "last", "Go to the last line."),
)

SEARCH = (
    Action("find.keep", ("enter", "down"), "keep", "Keep what was found and go there.", footer=True),
    Action("find.clear", ("escape",), "end search", "End the search and show everything again.", footer=True),
)

DIALOG = (
    Action("dialog.close", ("escape", "q"), "close", "Close this without doing anything.", footer=True),
    Action("dialog.show_help", ("f1", "?"), "help", "Say which keys do what, here and now."),
    Action("dialog.leave", ("ctrl+c",), "leave", "Leave the program."),
)
