"""The application of tests: on its own data folder, with models that need no framework."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path, PurePath
from typing import Any, ClassVar

from textual.app import App
from textual.events import Paste
from textual.message_pump import MessagePump
from textual.pilot import Pilot
from textual.screen import Screen
from textual.worker import WorkerError

import dlbricks_tui.tui
from dlbricks_tui.api.open_models import Choices
from dlbricks_tui.api.session import WorkbenchSession
from dlbricks_tui.folders import SAMPLE_MODELS, DataFolder
from dlbricks_tui.models.graph import Level
from dlbricks_tui.settings.workbench import Switch
from dlbricks_tui.tui.app import DlbricksApp
from dlbricks_tui.tui.widgets import rows
from dlbricks_tui.tui.widgets.rows import RowsView

NARROW, MEDIUM, WIDE = (80, 24), (120, 40), (200, 50)
SIZES = (NARROW, MEDIUM, WIDE)
# Every screen has one snapshot, of this size.
SNAPSHOT_SIZE = MEDIUM
# The samples contain the types of their written layers, so no framework is needed.
WRITTEN = Choices(level=Level.WRITTEN)
MEASURED_ONLY = replace(WRITTEN, predictions=Switch.OFF)
# Enough to scroll, search and compare; all samples would take seconds per test.
LIBRARY = ("squeezenet1.1", "resnet50_v1", "resnet18_v1", "mobilenet0.25", "inceptionv3", "alexnet", "vgg16")

# Six hours after the results of the stores.
NOW = datetime(2026, 11, 21, 14, 30, tzinfo=timezone.utc).timestamp()

# Messages that are handled in one round may post others.
QUIET_ROUNDS = 2
# What takes more rounds waits for something other than messages.
BUSY_ROUNDS, NAP_SECONDS = 200, 0.002
SECONDS_BETWEEN_LOOKS = 0.03
# A limit only so that a test that hangs ends.
PATIENCE_SECONDS = 120.0
# `conftest.py` replaces this method in tests.
draw = Screen._compositor_refresh


def app_on(data: DataFolder, choices: Choices = WRITTEN) -> DlbricksApp:
    """Return the application on a data folder, with a small library."""
    return DlbricksApp(WorkbenchSession(data, small_library(data.path / "samples")), choices)


def small_library(folder: Path) -> Path:
    """Make a library of some of the samples."""
    entries = json.loads((SAMPLE_MODELS / "manifest.json").read_text())["models"]
    kept = [entry for entry in entries if entry["name"] in LIBRARY]
    for entry in kept:
        for part in (entry, entry.get("onnx", {})):
            part |= {key: str(SAMPLE_MODELS / part[key]) for key in ("file", "types") if key in part}
    folder.mkdir(parents=True)
    (folder / "manifest.json").write_text(json.dumps({"models": kept}))
    return folder


@asynccontextmanager
async def running(app: DlbricksApp, size: tuple[int, int] = (120, 40)) -> AsyncIterator[Pilot[None]]:
    """Run the application, and wait until its first work has settled."""
    async with app.run_test(size=size) as pilot:
        await _at_rest(app)
        yield pilot


class AppWithoutWorkbench(DlbricksApp):
    """The application with an empty screen in place of the workbench."""

    # Relative paths would be relative to this file.
    CSS_PATH: ClassVar[list[str | PurePath]] = [Path(*dlbricks_tui.tui.__path__, "app.tcss")]

    def get_default_screen(self) -> Screen[None]:
        return Screen()


@asynccontextmanager
async def showing(
    data: DataFolder, screen_of: Callable[[WorkbenchSession], Screen[Any]], size: tuple[int, int] = (120, 40)
) -> AsyncIterator[Pilot[None]]:
    """Run the application with one screen alone, for tests that do not depend on how the user reaches it.

    That is much quicker than to open a model in the workbench.
    """
    session = WorkbenchSession(data)
    app = AppWithoutWorkbench(session, WRITTEN)
    async with app.run_test(size=size) as pilot:
        app.push_screen(screen_of(session))
        await _at_rest(app)
        yield pilot


async def settled(pilot: Pilot[None]) -> None:
    """Wait until nothing is in progress: no thread, no message, no cursor about to settle. Then draw the screen."""
    await _at_rest(pilot.app)
    draw(pilot.app.screen)


async def _at_rest(app: App[None]) -> None:
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


def told(pilot: Pilot[None]) -> list[str]:
    """Return the messages of the program, the newest last."""
    return [note.message for note in pilot.app._notifications]


def screen_text(pilot: Pilot[None]) -> str:
    """Return the text of the screen."""
    return "\n".join(strip.text.rstrip() for strip in pilot.app.screen._compositor.render_strips())


async def press(pilot: Pilot[None], *keys: str) -> None:
    """Press keys, each when everything that the last one caused has settled; a text in quotes is pasted."""
    for key in keys:
        if key.startswith('"'):
            pilot.app.post_message(Paste(key.strip('"')))
        else:
            await pilot.app._press_keys([key])
        await _at_rest(pilot.app)
    await settled(pilot)
