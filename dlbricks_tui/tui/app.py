"""The application: everything that all screens share.

Only the first screen is imported at the start, so that it appears at once.
"""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from textual import events, on
from textual.app import App
from textual.screen import ModalScreen, Screen

from dlbricks_tui.api.open_models import Choices, ComparableRow, choices_from
from dlbricks_tui.api.run_watch import Replayed
from dlbricks_tui.api.session import WorkbenchSession
from dlbricks_tui.config.config import Sources
from dlbricks_tui.errors import UserError
from dlbricks_tui.printable import printable
from dlbricks_tui.tui import messages
from dlbricks_tui.tui.diff_driver import DiffDriver
from dlbricks_tui.tui.door import Connection, IdleCollections, has_shell, leave_without_terminal, stop_job
from dlbricks_tui.tui.keys import scopes
from dlbricks_tui.tui.keys.keyboard import KeyDone, KeyQueue, use_key_parser
from dlbricks_tui.tui.keys.keymap import HelpPlace, actions_here, actions_on, key, places_around
from dlbricks_tui.tui.messages import Failed
from dlbricks_tui.tui.preferences import LivePreferences
from dlbricks_tui.tui.run.host import RunUpdates
from dlbricks_tui.tui.saving import (
    SavedCopy,
    SavingError,
    clipboard_sequence,
    copy_picture,
    copy_table,
    copy_text,
    picture_of,
    save_picture_file,
    show_message,
)
from dlbricks_tui.tui.widgets.panel import Panel
from dlbricks_tui.tui.widgets.rows import MARKABLE, TWO, WHAT_IF, Marks, RowsView
from dlbricks_tui.tui.widgets.screens import LAYOUTS, PanelledScreen, after_picture, ask
from dlbricks_tui.tui.workbench.screen import WorkbenchScreen

if TYPE_CHECKING:
    from pathlib import Path, PurePath

    from dlbricks_tui.models.library import ModelSource
    from dlbricks_tui.tui.dialogs.commands import Command
    from dlbricks_tui.tui.dialogs.notices import CopiedForm

_COLLECTED_SECONDS = 5.0


class DlbricksApp(HelpPlace, App[None], inherit_bindings=False):
    """The application of one session."""

    TITLE = "dlbricks"
    # Textual does not load the style sheet of the default screen by itself.
    CSS_PATH: ClassVar[list[str | PurePath]] = ["app.tcss"]
    ENABLE_COMMAND_PALETTE = False
    HORIZONTAL_BREAKPOINTS = LAYOUTS
    scope = scopes.EVERYWHERE

    def __init__(
        self,
        session: WorkbenchSession,
        choices: Choices | None = None,
        sources: Sources | None = None,
        connection: Connection | None = None,
        replayed: Replayed | None = None,
        model: ModelSource | Path | None = None,
    ) -> None:
        """`replayed` is a run that is replayed at the start, `model` a model, or its path, that is opened then."""
        connection = connection or Connection()
        use_key_parser()
        super().__init__(
            driver_class=DiffDriver if connection.is_slow else None,
            # Textual turns unwanted colours into greys; it removes those of the terminal itself.
            ansi_color=True if "NO_COLOR" in os.environ else None,
        )
        if connection.is_slow:
            self.add_class("-slow-link")
        self.marks = Marks()
        # The form of the last copy; the next one begins with it.
        self._copied_form: CopiedForm | None = None
        self._keys = KeyQueue(self, super().on_event)
        self._collections: IdleCollections | None = None
        # An unexpected error; `open_workbench` raises it after the terminal is restored.
        self.fault: Exception | None = None
        self.animation_level = "none"
        self._session = session
        self._replayed = replayed
        self._model = model
        data = session.data
        self._runs = RunUpdates(self, data, connection.poll_factor)
        self._preferences = LivePreferences(self, sources or Sources(data.config, os.environ), data.themes)
        self._choices = choices or choices_from(self._preferences.config, data)

    def get_default_screen(self) -> Screen[None]:
        return WorkbenchScreen(self._session, self._choices, lambda: self._preferences.config, self._model)

    def on_mount(self) -> None:
        if not self.is_headless:
            loop = asyncio.get_running_loop()
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                loop.add_signal_handler(number, self.exit, None, 128 + number)
            leave = partial(loop.call_soon_threadsafe, self.exit, None, 128 + signal.SIGHUP)
            threading.Thread(target=partial(leave_without_terminal, leave), name="terminal", daemon=True).start()
            # The first collection looks at all objects that came with the modules.
            after_picture(self, self._collect_when_idle)
        # The shell has overwritten the screen while the program was suspended.
        self.app_resume_signal.subscribe(self, lambda _: self.refresh(layout=True))
        if self._replayed is not None:
            self._runs.watch.follow(self._replayed)
        after_picture(self, self._runs.watch.start)
        self._preferences.open()

    def _collect_when_idle(self) -> None:
        self._collections = IdleCollections()
        self.set_interval(_COLLECTED_SECONDS, self._collections.collect_if_idle)

    async def on_event(self, event: events.Event) -> None:
        if isinstance(event, events.Key | events.Paste) and not event.is_forwarded:
            if self._collections is not None:
                self._collections.key_pressed()
            await self._keys.take(event)
        else:
            await super().on_event(event)

    async def on_key_done(self, event: KeyDone) -> None:
        await self._keys.arrived(event)

    def on_resize(self) -> None:
        self._forget_screen()

    def on_unmount(self) -> None:
        self._runs.watch.close()
        self._session.close()

    def on_run_end_seen(self, event: messages.RunEndSeen) -> None:
        self._runs.take_end_seen(event.run)

    def on_run_state_needed(self) -> None:
        # The request of a screen may arrive after the last screen was closed.
        if self.screen_stack:
            self._runs.catch_up(self.screen)

    def on_run_begun(self, event: messages.RunBegun) -> None:
        self._runs.watch.follow(event.run)

    def on_job_wanted(self, event: messages.JobWanted) -> None:
        from dlbricks_tui.api.jobs import is_run
        from dlbricks_tui.tui.fleet import FleetScreen
        from dlbricks_tui.tui.run.screen import RunScreen

        workbench, in_front = self.screen_stack[0], self.screen
        if is_run(event.kind):
            self._runs.watch.follow(Replayed(event.run) if event.replayed else event.run)
            if not isinstance(in_front, RunScreen):
                self.push_screen(RunScreen(self._session.data, None))
        elif isinstance(in_front, FleetScreen):
            in_front.watch_fleet(event.run)
        elif isinstance(workbench, WorkbenchScreen):
            workbench.action_show_fleet(event.run)

    def on_replay_changed(self, event: messages.ReplayChanged) -> None:
        self._runs.watch.change_replay(event.change)

    def on_results_stored(self) -> None:
        self._runs.take_results()

    def on_failed(self, event: Failed) -> None:
        from dlbricks_tui.errors import keep_traceback
        from dlbricks_tui.tui.dialogs.notices import ErrorScreen

        if isinstance(event.error, UserError):
            self.push_screen(ErrorScreen(str(event.error)))
            return
        text = f"{type(event.error).__name__}: {event.error}"
        self.push_screen(ErrorScreen(text, keep_traceback(event.error, self._session.data.log)))

    def action_show_help(self) -> None:
        from dlbricks_tui.tui.dialogs.commands import HelpScreen

        about = [place.about for place in places_around(self) if place.about]
        self.push_screen(HelpScreen(about, actions_here(self.screen)))

    def action_find_command(self) -> None:
        from dlbricks_tui.tui.dialogs.commands import PaletteScreen

        ask(self, PaletteScreen(list(actions_on(self.screen))), self._command_found)

    def action_search(self) -> None:
        if (panel := self._searched_panel) is not None:
            self._go_to(panel)
            panel.search()

    @property
    def _searched_panel(self) -> Panel | None:
        """The panel in which the key searches: the current one, else the first that can be searched."""
        here = [place for place in places_around(self) if isinstance(place, Panel)]
        return next((panel for panel in (*here, *self.screen.query(Panel)) if panel.SEARCH_HINT), None)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return self._searched_panel is not None if action == "search" else super().check_action(action, parameters)

    def action_zoom(self) -> None:
        if isinstance(self.screen, PanelledScreen):
            self.screen.zoom()

    def action_copy_shown(self) -> None:
        from dlbricks_tui.tui.dialogs.notices import CopyScreen

        screen, panel = self.screen, self._panel_here
        if panel is not None and isinstance(screen, PanelledScreen):
            screen.ask(CopyScreen(panel.TITLE, self._copied_form), partial(self._copy_shown, screen, panel))

    def action_mark(self) -> None:
        here, row, panel = self.screen.focused, self._row_here(), self._panel_here
        if panel is not None and panel.mark():
            return
        if row is None:
            show_message(self, f"Nothing here can be marked: {key('app.mark')} marks {MARKABLE}.")
        elif isinstance(here, RowsView):
            self.marks.toggle(row)
            here.action_down()
            for screen in self.screen_stack:
                for rows in screen.query(RowsView):
                    rows.refresh()

    @property
    def _panel_here(self) -> Panel | None:
        return next((it for it in places_around(self) if isinstance(it, Panel)), None)

    def _row_here(self) -> ComparableRow | None:
        """Return what the selected row stands for."""
        here = self.screen.focused
        return here.stands_for(here.cursor) if isinstance(here, RowsView) and here.row_count else None

    def action_compare_marked(self) -> None:
        """Compare the two marked rows, or the marked one with the selected one."""
        screen, here = self.screen, self._row_here()
        if isinstance(screen, PanelledScreen) and screen.compare_marked():
            return
        marked = screen.marked_rows if isinstance(screen, WorkbenchScreen) else self.marks.rows
        if len(marked) == 1 and here is not None and here.kind == marked[0].kind and not Marks(*marked).has(here):
            marked = (*marked, here)
        if len(marked) == TWO and marked[0].kind != WHAT_IF:
            self._compare(messages.ComparisonWanted(marked))
        else:
            many = f"; {len(marked)} are marked" if len(marked) > TWO else ""
            show_message(self, f"Mark two rows of one kind with {key('app.mark')}, to compare them{many}.")

    @on(messages.ComparisonWanted)
    def _compare(self, wanted: messages.ComparisonWanted) -> None:
        from dlbricks_tui.tui.comparing import MarkedScreen

        first = self.screen_stack[0]
        if isinstance(self.screen, ModalScreen):
            self.screen.dismiss(None)
        answer_for = first.answer_for if isinstance(first, WorkbenchScreen) else None
        self.push_screen(MarkedScreen(self._session, wanted.rows, answer_for))

    def action_next_theme(self) -> None:
        self._preferences.use_next_theme()

    def action_show_config(self) -> None:
        from dlbricks_tui.tui.dialogs.config import ConfigScreen

        self.push_screen(ConfigScreen(self._preferences, self._session.data))

    def action_save_picture(self) -> None:
        # After the palette has closed: the picture shows the screen behind it.
        self.call_after_refresh(self._save_picture)

    def action_redraw(self) -> None:
        self._forget_screen()
        self.refresh(layout=True)

    def action_suspend_process(self) -> None:
        if not has_shell():
            show_message(self, "No shell can resume dlbricks here.")
        elif self._driver is not None and self._driver.can_suspend:
            with self.suspend():
                # Only now: the first process that stops takes the terminal from the others.
                stop_job()

    def copy_to_clipboard(self, text: str) -> None:
        """Copy the text to the terminal's clipboard and to a file."""
        self._show_copied(copy_text(text, self._session.data))

    def notify(self, message: str, **options: Any) -> None:
        """Show a message with the control codes in it escaped; brackets in it are no markup."""
        super().notify(printable(message), **{**options, "markup": False})

    async def _command_found(self, command: Command) -> None:
        action, node = command
        if isinstance(node, Panel):
            self._go_to(node)
        await self.run_action(action.call, node)

    def _go_to(self, panel: Panel) -> None:
        if isinstance(self.screen, PanelledScreen):
            self.screen.go_to(panel)

    def _forget_screen(self) -> None:
        # A terminal moves its content when it is resized, and other programs may overwrite it.
        if isinstance(self._driver, DiffDriver):
            self._driver.forget()

    def _copy_shown(self, screen: PanelledScreen[Any], panel: Panel, form: CopiedForm) -> None:
        self._copied_form = form
        if form.table is None:
            # After the box has closed: the picture shows the screen behind it.
            self.call_after_refresh(self._copy_picture, panel if form.is_panel else None)
            return
        # A table of many rows makes them in the thread.
        copy = partial(copy_table, panel.as_texts(), form.table, form.label, self._session.data)
        screen.run_in_thread(copy, "copy", self._show_copied)

    def _copy_picture(self, panel: Panel | None) -> None:
        if panel is None:
            what, svg = "a picture of the screen", self.export_screenshot(title=self.title)
        else:
            what, svg = "a picture of the panel", picture_of(self.screen, panel.region, panel.TITLE)
        try:
            self._show_copied(copy_picture(svg, what, self._session.data))
        except SavingError as error:
            self.post_message(Failed(error))

    def _show_copied(self, saved: SavedCopy) -> None:
        if saved.text is not None:
            self._clipboard = saved.text
            if self._driver is not None:
                self._driver.write(clipboard_sequence(saved.text, os.environ))
        show_message(self, saved.message)

    def _save_picture(self) -> None:
        try:
            path = save_picture_file(self.export_screenshot(title=self.title), self._session.data)
        except SavingError as error:
            self.post_message(Failed(error))
        else:
            show_message(self, f"The picture is in {path}")

    def _handle_exception(self, error: Exception) -> None:
        # Textual would print the traceback over the screen; `open_workbench` logs it and prints one line.
        self.fault = self.fault or error
        if self.is_headless:
            super()._handle_exception(error)
        else:
            self.panic()
