"""The application: what is the same on all screens.

Screens that are not there at the start are imported when they are asked for: the first one is to be seen at once.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from textual import events
from textual.app import App
from textual.screen import Screen

from dlbricks_tui.config.reading import Sources
from dlbricks_tui.errors import UserError
from dlbricks_tui.printable import printable
from dlbricks_tui.tui import messages
from dlbricks_tui.tui.actions.action import Scope
from dlbricks_tui.tui.actions.registry import bindings
from dlbricks_tui.tui.choices import Choices, chosen_by
from dlbricks_tui.tui.clipboard import copying
from dlbricks_tui.tui.desk import RunDesk
from dlbricks_tui.tui.frugal import FrugalDriver
from dlbricks_tui.tui.job_control import has_shell, is_hung_up, stop_job
from dlbricks_tui.tui.keeping import KeepingError, keep_copied, keep_picture, tell
from dlbricks_tui.tui.keyboard import KeyDone, KeysInTurn, use_key_parser
from dlbricks_tui.tui.manners import Manners
from dlbricks_tui.tui.messages import Failed
from dlbricks_tui.tui.places import about_of, actions_here, actions_on, places_around
from dlbricks_tui.tui.preferences import Preferences
from dlbricks_tui.tui.screens.panelled import ONE_PANEL, PanelledScreen
from dlbricks_tui.tui.screens.workbench import WorkbenchScreen
from dlbricks_tui.tui.session import Session
from dlbricks_tui.tui.tailoring import Tailor
from dlbricks_tui.tui.widgets.panel import Panel

if TYPE_CHECKING:
    from pathlib import PurePath

    from textual.notifications import SeverityLevel

    from dlbricks_tui.tui.screens.palette import Command

STYLES = Path(__file__).parent / "styles"
# From so many columns on; the style sheets say what each class of screens looks like.
LAYOUTS = [(0, ONE_PANEL), (112, "-medium"), (160, "-wide")]
# Whether anybody is still there: the kernel does not always say so by itself.
_TERMINAL_LOOKED_AT_SECONDS = 2.0
_LEAVING_SECONDS = 3.0


class DlbricksApp(App[None], inherit_bindings=False):
    """One person's session, its themes and its screens."""

    TITLE = "dlbricks"
    CSS_PATH: ClassVar[list[str | PurePath]] = [*sorted(STYLES.glob("*.tcss"))]
    BINDINGS = bindings(Scope.EVERYWHERE)
    ENABLE_COMMAND_PALETTE = False
    HORIZONTAL_BREAKPOINTS = LAYOUTS
    scope = Scope.EVERYWHERE

    def __init__(
        self,
        session: Session,
        choices: Choices | None = None,
        sources: Sources | None = None,
        manners: Manners | None = None,
    ) -> None:
        manners = manners or Manners()
        use_key_parser()
        super().__init__(
            driver_class=FrugalDriver if manners.frugal else None,
            # Textual makes greys of colours that are not wanted; of the terminal's own it leaves none.
            ansi_color=True if "NO_COLOR" in os.environ else None,
        )
        if manners.frugal:
            self.add_class("-frugal")
        self._keys = KeysInTurn(self, super().on_event)
        # What nobody foresaw; the door tells of it when the terminal is itself again.
        self.fault: Exception | None = None
        self.animation_level = "none"
        self._session = session
        data = session.data
        self._runs = RunDesk(self, data, manners.rarely)
        self._tailor = Tailor(self, Preferences(sources or Sources(data.config, os.environ), data.themes))
        self._choices = choices or chosen_by(self._tailor.config)

    def get_default_screen(self) -> Screen[None]:
        return WorkbenchScreen(self._session, self._choices, lambda: self._tailor.config)

    def on_mount(self) -> None:
        if not self.is_headless:
            loop = asyncio.get_running_loop()
            loop.add_signal_handler(signal.SIGTERM, self.exit, None, 128 + signal.SIGTERM)
            loop.add_signal_handler(signal.SIGHUP, self._leave_hung_up)
            self.set_interval(_TERMINAL_LOOKED_AT_SECONDS, self._leave_if_hung_up)
        # Who comes back from the shell finds the terminal empty.
        self.app_resume_signal.subscribe(self, lambda _: self.refresh(layout=True))
        self._runs.open()
        self._tailor.open()

    def _leave_if_hung_up(self) -> None:
        if is_hung_up(sys.__stdin__.fileno() if sys.__stdin__ else 0):
            self._leave_hung_up()

    def _leave_hung_up(self) -> None:
        self.exit(None, 128 + signal.SIGHUP)
        # A thread that writes to a terminal which is gone may be gone too, and leaving waits for it to take the rest.
        end = threading.Timer(_LEAVING_SECONDS, os._exit, (128 + signal.SIGHUP,))
        end.daemon = True
        end.start()

    async def on_event(self, event: events.Event) -> None:
        if isinstance(event, events.Key | events.Paste) and not event.is_forwarded:
            await self._keys.take(event)
        else:
            await super().on_event(event)

    async def on_key_done(self, event: KeyDone) -> None:
        await self._keys.arrived(event)

    def on_resize(self) -> None:
        self._forget_screen()

    def on_unmount(self) -> None:
        self._runs.close()
        self._session.close()

    def on_run_seen(self, event: messages.RunSeen) -> None:
        self._runs.take(event.run)

    def on_run_wanted(self) -> None:
        self._runs.catch_up(self.screen)

    def on_run_begun(self, event: messages.RunBegun) -> None:
        self._runs.follow(event.run)

    def on_results_stored(self) -> None:
        self._runs.take_results()

    def on_failed(self, event: Failed) -> None:
        from dlbricks_tui.crash_log import keep_traceback
        from dlbricks_tui.tui.screens.error import ErrorScreen

        if isinstance(event.error, UserError):
            self.push_screen(ErrorScreen(str(event.error)))
            return
        text = f"{type(event.error).__name__}: {event.error}"
        self.push_screen(ErrorScreen(text, keep_traceback(event.error, self._session.data.log)))

    def action_show_help(self) -> None:
        from dlbricks_tui.tui.screens.help import HelpScreen

        about = [about for place in places_around(self) if (about := about_of(place))]
        self.push_screen(HelpScreen(about, actions_here(self.screen)))

    def action_find_command(self) -> None:
        from dlbricks_tui.tui.screens.palette import PaletteScreen

        self.push_screen(PaletteScreen(list(actions_on(self.screen))), self._command_found)

    def action_search(self) -> None:
        here = [place for place in places_around(self) if isinstance(place, Panel)]
        panel = next((panel for panel in (*here, *self.screen.query(Panel)) if panel.SEARCH_HINT), None)
        if panel is not None:
            self._go_to(panel)
            panel.search()

    def action_next_theme(self) -> None:
        self._tailor.put_on_next_theme()

    def action_show_config(self) -> None:
        from dlbricks_tui.tui.screens.config import ConfigScreen

        self.push_screen(ConfigScreen(self._tailor, self._session.data))

    def action_save_picture(self) -> None:
        # Who comes from the palette wants what was behind it.
        self.call_after_refresh(self._save_picture)

    def action_redraw(self) -> None:
        self._forget_screen()
        self.refresh(layout=True)

    def action_suspend_process(self) -> None:
        if not has_shell():
            tell(self, "There is no shell behind this to go back to.")
        elif self._driver is not None and self._driver.can_suspend:
            with self.suspend():
                # Only now, as the first to stop takes the terminal from the others.
                stop_job()

    def copy_to_clipboard(self, text: str) -> None:
        """Has the terminal copy the text, and keeps it in a file too."""
        self._clipboard = text
        if self._driver is not None:
            self._driver.write(copying(text, os.environ))
        tell(self, keep_copied(text, self._session.data))

    def notify(
        self,
        message: str,
        *,
        title: str = "",
        severity: SeverityLevel = "information",
        timeout: float | None = None,
        markup: bool = True,
    ) -> None:
        """Show a message for a while, with the control codes in names spelled out."""
        message = printable(message)
        super().notify(message, title=title, severity=severity, timeout=timeout, markup=markup)

    async def _command_found(self, command: Command | None) -> None:
        if command is None:
            return
        action, node = command
        if isinstance(node, Panel):
            self._go_to(node)
        await self.run_action(action.method, node)

    def _go_to(self, panel: Panel) -> None:
        if isinstance(self.screen, PanelledScreen):
            self.screen.go_to(panel)

    def _forget_screen(self) -> None:
        # A terminal moves what stands on it when it gets another size, and others may write over it.
        if isinstance(self._driver, FrugalDriver):
            self._driver.forget()

    def _save_picture(self) -> None:
        try:
            path = keep_picture(self.export_screenshot(title=self.title), self._session.data)
        except KeepingError as error:
            self.post_message(Failed(error))
        else:
            tell(self, f"The picture is in {path}")

    def _handle_exception(self, error: Exception) -> None:
        # Textual would print the traceback over the terminal: the door keeps it in the log and says a line.
        self.fault = self.fault or error
        if self.is_headless:
            super()._handle_exception(error)
        else:
            self.panic()
