"""The application of tests: on its own data folder, with models that need no framework."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from textual.app import App
from textual.events import Paste
from textual.pilot import Pilot
from textual.worker import WorkerError

from dlbricks_tui.models.graph import Level
from dlbricks_tui.settings import SAMPLE_MODELS, DataFolder
from dlbricks_tui.tui.app import DlbricksApp
from dlbricks_tui.tui.choices import Choices
from dlbricks_tui.tui.session import Session
from dlbricks_tui.tui.widgets import rows
from dlbricks_tui.tui.widgets.rows import RowsView

NARROW, MEDIUM, WIDE = (80, 24), (120, 40), (200, 50)
SIZES = (NARROW, MEDIUM, WIDE)
# Every screen has one snapshot, of this size.
SNAPSHOT_SIZE = MEDIUM
# The samples contain the types of their written layers, so no framework is needed.
WRITTEN = Choices(level=Level.WRITTEN)
# Enough to scroll, search and compare; all samples would take seconds per test.
LIBRARY = ("squeezenet1.1", "resnet50_v1", "resnet18_v1", "mobilenet0.25", "inceptionv3", "alexnet", "vgg16")

# Messages that are handled in one round may post others.
ROUNDS_OF_REST = 3


def app_on(data: DataFolder) -> DlbricksApp:
    """Return the application on a data folder, with a small library."""
    return DlbricksApp(Session(data, small_library(data.path / "samples")), WRITTEN)


def small_library(folder: Path) -> Path:
    """Make a library of some of the samples."""
    entries = json.loads((SAMPLE_MODELS / "manifest.json").read_text())["models"]
    kept = [entry for entry in entries if entry["name"] in LIBRARY]
    for entry in kept:
        entry |= {key: str(SAMPLE_MODELS / entry[key]) for key in ("file", "types") if key in entry}
    folder.mkdir(parents=True)
    (folder / "manifest.json").write_text(json.dumps({"models": kept}))
    return folder


@asynccontextmanager
async def running(app: DlbricksApp, size: tuple[int, int] = (120, 40)) -> AsyncIterator[Pilot[None]]:
    """Run the application, and wait until its first work has settled."""
    async with app.run_test(size=size) as pilot:
        await settled(pilot)
        yield pilot


async def settled(pilot: Pilot[None]) -> None:
    """Wait until nothing is in progress: no thread, no message, no cursor that is about to settle."""
    still = 0
    while still < ROUNDS_OF_REST:
        await pilot.pause(0)
        for screen in pilot.app.screen_stack:
            # A screen below another one would wait for its timer before it draws itself.
            screen._on_timer_update()
        await pilot._wait_for_screen()
        still = 0 if await _under_way(pilot.app) else still + 1


async def _under_way(app: App[None]) -> bool:
    working = [worker for worker in app.workers if not worker.is_finished]
    for worker in working:
        # The screen reports failures.
        with suppress(WorkerError):
            await worker.wait()
    pumps = [app, *(node for screen in app.screen_stack for node in screen.walk_children(with_self=True))]
    resting = [node for node in pumps if isinstance(node, RowsView) and node.is_settling]
    if resting:
        await asyncio.sleep(rows.SETTLE_SECONDS)
    told = any(pump.message_queue_size or pump._pending_message for pump in pumps)
    return bool(working or resting or told)


async def press(pilot: Pilot[None], *keys: str) -> None:
    """Press keys, each when everything that the last one caused has settled; a text in quotes is pasted."""
    for key in keys:
        if key.startswith('"'):
            pilot.app.post_message(Paste(key.strip('"')))
        else:
            await pilot.press(key)
        await settled(pilot)
    if not keys:
        await settled(pilot)
