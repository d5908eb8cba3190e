"""The application of tests: on its own data folder, with models that need no framework."""

import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path, PurePath
from typing import Any, ClassVar

from textual.pilot import Pilot
from textual.screen import Screen

import dlbricks_tui.tui
from dlbricks_tui.api.open_models import Choices
from dlbricks_tui.api.session import WorkbenchSession
from dlbricks_tui.config.config import Sources
from dlbricks_tui.folders import SAMPLE_MODELS, DataFolder
from dlbricks_tui.models.graph import Level
from dlbricks_tui.settings.setting import Setting
from dlbricks_tui.settings.workbench import Switch
from dlbricks_tui.tui.app import DlbricksApp
from dlbricks_tui.tui.widgets.form import FormRow
from tests.tui.driving import at_rest

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


def app_on(data: DataFolder, choices: Choices = WRITTEN) -> DlbricksApp:
    """Return the application on a data folder, with a small library."""
    return DlbricksApp(WorkbenchSession(data, small_library(data.path / "samples")), choices)


def app_with(data: DataFolder, config: str = "") -> DlbricksApp:
    """Return the application with this text in its config file."""
    samples = small_library(data.path / "samples")
    data.config.write_text(config, encoding="utf-8")
    return DlbricksApp(WorkbenchSession(data, samples), WRITTEN, Sources(data.config, {}))


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
        await at_rest(app)
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
        await at_rest(app)
        yield pilot


def row_of(rows: Sequence[FormRow], setting: Setting[Any]) -> FormRow:
    """Return the row of a form with this setting."""
    return next(row for row in rows if row.setting is setting)
