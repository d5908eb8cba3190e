"""Drive a running application in tests: press keys, wait, and read the screen."""

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from textual.app import App
from textual.events import Paste
from textual.message_pump import MessagePump
from textual.pilot import Pilot
from textual.screen import Screen
from textual.worker import WorkerError

from dlbricks_tui.tui.dialogs.dialog import Box
from dlbricks_tui.tui.widgets import rows
from dlbricks_tui.tui.widgets.rows import RowsView

# Messages that are handled in one round may post others.
QUIET_ROUNDS = 2
# What takes more rounds waits for something other than messages.
BUSY_ROUNDS, NAP_SECONDS = 200, 0.002
SECONDS_BETWEEN_LOOKS = 0.03
# A limit only so that a test that hangs ends.
PATIENCE_SECONDS = 120.0
# `conftest.py` replaces this method in tests.
draw = Screen._compositor_refresh


async def settled(pilot: Pilot[None]) -> None:
    """Wait until nothing is in progress: no thread, no message, no cursor about to settle. Then draw the screen."""
    await at_rest(pilot.app)
    draw(pilot.app.screen)


async def at_rest(app: App[None]) -> None:
    """Wait as `settled` does, without drawing."""
    give_up, rounds, quiet_rounds = time.monotonic() + PATIENCE_SECONDS, 0, 0
    while quiet_rounds < QUIET_ROUNDS:
        await asyncio.sleep(0 if rounds < BUSY_ROUNDS else NAP_SECONDS)
        # The application and the screens would wait for their timers.
        app._check_resize()
        for screen in app.screen_stack:
            if _wants_update(screen):
                screen._on_timer_update()
        pending = await _pending(app)
        assert time.monotonic() < give_up, f"still in progress: {pending}"
        rounds, quiet_rounds = rounds + 1, 0 if pending else quiet_rounds + 1


def _wants_update(screen: Screen[Any]) -> bool:
    # The screen behind a box asks to be painted anew each time that it was painted.
    return bool(
        screen._layout_required
        or screen._scroll_required
        or screen._dirty_widgets
        or screen._callbacks
        or screen._recompose_required
        or (screen._repaint_required and screen is screen.app.screen)
    )


async def _pending(app: App[None]) -> list[object]:
    """Return what was in progress, after waiting for the threads."""
    working = [worker for worker in app.workers if not worker.is_finished]
    for worker in working:
        # The screen reports failures.
        with suppress(WorkerError):
            await worker.wait()
    # Walking through the tree of each screen in each round would take a fourth of the time of all tests.
    nodes = list(app._registry)
    settling = [node for node in nodes if isinstance(node, RowsView) and node.is_settling]
    if settling:
        await asyncio.sleep(rows.SETTLE_SECONDS)
    busy = next((pump for pump in (app, *nodes) if not _waits(pump)), None)
    return [*working, *settling, *([] if busy is None else [busy])]


def _waits(pump: MessagePump) -> bool:
    """Return whether a pump waits for its next message, or takes none any more.

    `Pilot` sends a message to each pump and waits for all of them, which takes many times as long.
    """
    if pump._closing or pump._closed or pump._task is None:
        return True
    queue: Any = pump._message_queue
    return queue.empty() and bool(queue.ready_event._waiters) and pump._pending_message is None


async def eventually(pilot: Pilot[None], condition: Callable[[], object]) -> None:
    """Wait until the condition holds, where `settled` will not do.

    The app has to notice a change by itself, or a test holds back one of its threads.
    """
    give_up = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < give_up, f"never happened; the screen shows\n{screen_text(pilot)}"
        # Looking more often would take the processor from the threads and processes that are waited for.
        await asyncio.sleep(SECONDS_BETWEEN_LOOKS)
        screen = pilot.app.screen
        screen._on_timer_update()
        draw(screen)


async def shows(pilot: Pilot[None], text: str) -> None:
    await eventually(pilot, lambda: text in screen_text(pilot))


async def shows_no_more(pilot: Pilot[None], text: str) -> None:
    await eventually(pilot, lambda: text not in screen_text(pilot))


def words(pilot: Pilot[None]) -> str:
    """Return the text of the box as if it had one line."""
    region = pilot.app.screen.query_one(Box).region
    lines = screen_text(pilot).splitlines()[region.y + 1 : region.bottom - 1]
    return " ".join(" ".join(each[region.x + 1 : region.right - 1] for each in lines).split())


def told(pilot: Pilot[None]) -> list[str]:
    """Return the messages of the program, the newest last."""
    return [note.message for note in pilot.app._notifications]


def screen_text(pilot: Pilot[None]) -> str:
    """Return the text of the screen."""
    return "\n".join(strip.text.rstrip() for strip in pilot.app.screen._compositor.render_strips())


def find(text: str) -> tuple[str, ...]:
    """Return the keys that search in the current panel, and go to what is found."""
    return "slash", "ctrl+u", f'"{text}"', "enter"


async def press(
    pilot: Pilot[None], *keys: str, on: type[Screen[Any]] | None = None, shows: str | tuple[str, ...] = ()
) -> None:
    """Press keys, each when everything that the last one caused has settled; a text in quotes is pasted.

    Then the screen has to be of the class `on`, and has to show all texts.
    """
    for key in keys:
        if key.startswith('"'):
            pilot.app.post_message(Paste(key.strip('"')))
        else:
            await pilot.app._press_keys([key])
        await at_rest(pilot.app)
    await settled(pilot)
    assert on is None or isinstance(pilot.app.screen, on), f"{on.__name__} is not in front:\n{screen_text(pilot)}"
    for text in (shows,) if isinstance(shows, str) else shows:
        assert text in screen_text(pilot), f"{text!r} is not on the screen:\n{screen_text(pilot)}"
