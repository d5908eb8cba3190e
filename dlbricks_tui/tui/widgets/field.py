"""A field to type into."""

from textual.widgets import Input


class Field(Input):
    """One line; its cursor stands still, as a blinking one would write to the terminal for ever."""

    def __init__(self, value: str = "", *, hint: str = "") -> None:
        super().__init__(value, placeholder=hint, compact=True, select_on_focus=False)
        self.cursor_blink = False
