"""The line at the foot of the workbench that says how the run gets on."""

from textual.message import Message

from dlbricks_tui.tui.lines import Line
from dlbricks_tui.tui.live.snapshot import RunSnapshot
from dlbricks_tui.tui.widgets.ink import LineBar
from dlbricks_tui.tui.widgets.run_bar.lines import bar_lines


class RunBar(LineBar):
    """Hidden while there is no run to tell of, and once the user has seen how a run ended."""

    class Opened(Message):
        """The person wants to see the run itself."""

    def __init__(self) -> None:
        super().__init__(id="run")
        self._run: RunSnapshot | None = None
        self._drawn: tuple[Line, ...] = ()
        self.display = False

    def show(self, run: RunSnapshot) -> None:
        """Says how the run stands now."""
        self._run = run
        self.display = True
        # While bricks run, nothing is drawn that looks as it did.
        if bar_lines(run, self.size.width) != self._drawn:
            self.refresh(layout=not self._drawn)

    def hide(self) -> None:
        """Makes room: nothing is left to say of the run."""
        self.display = False
        self._drawn = ()

    def lines(self, width: int) -> tuple[Line, ...]:
        self._drawn = bar_lines(self._run, width) if self._run is not None else ()
        return self._drawn

    def on_click(self) -> None:
        self.post_message(self.Opened())
