"""Writes the pictures of the screens, from the recorded results of `dlbricks demo`: needs no framework.

usage: python -m docs.pictures [NAME ...]
"""

import asyncio
import os
import sys
import tempfile
from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

from dlbricks_tui.api.demonstration import Demonstration, open_demonstration
from dlbricks_tui.api.run_watch import Replayed
from dlbricks_tui.api.session import WorkbenchSession
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.tui.app import DlbricksApp
from dlbricks_tui.tui.widgets import screens
from dlbricks_tui.wording import numbers
from tests.tui.application import running
from tests.tui.driving import press

FOLDER = Path(__file__).parent / "pictures"


class Picture(NamedTuple):
    """A screen: how large, which keys lead there from the start, and its class where a test asks for its picture.

    `run_seconds` is the second of the recorded run that is replayed meanwhile; None without a replay.
    """

    name: str
    size: tuple[int, int]
    keys: Sequence[str]
    theme: str = "dark"
    run_seconds: float | None = None
    screen: str = "WorkbenchScreen"


def opened(model: str) -> tuple[str, ...]:
    """Return the keys that open a model and leave the search."""
    return ("slash", f'"{model}"', "enter", "enter", "1", "slash", "escape")


OPEN, VARIED = opened("inceptionv3"), opened("squeezenet1.1")
# Before anything was measured.
WELCOME = Picture("welcome", (100, 26), (), screen="WelcomeScreen")
PICTURES = (
    Picture("workbench", (140, 42), (*OPEN, "2", "j", "j", "j", "j", "j", "j", "j", "l"), run_seconds=30),
    Picture("narrow", (80, 24), (*OPEN, "4")),
    *(Picture(theme, (120, 36), OPEN, theme) for theme in ("light", "high-contrast", "colour-blind", "terminal")),
    Picture("tree", (120, 40), (*OPEN, "2", "asterisk", *["j"] * 12)),
    Picture("variants", (100, 36), (*VARIED, "V"), screen="VariantsScreen"),
    Picture("analysis", (140, 42), (*VARIED, "A", "2"), screen="AnalysisScreen"),
    Picture(
        "scenario", (140, 42), (*VARIED, "L", "2", "j", "equals_sign", '"100"', "enter", "1"), screen="ScenarioScreen"
    ),
    Picture("trace", (140, 42), (*VARIED, "T", "w"), screen="TraceScreen"),
    Picture("language", (140, 42), ("M", "j", "j"), screen="LanguageScreen"),
    Picture("fleet", (120, 36), (*VARIED, "F"), screen="FleetScreen"),
    Picture("start-run", (120, 36), (*opened("resnet34_v1"), "m"), screen="StartRunScreen"),
    Picture("run", (120, 40), ("w",), run_seconds=32, screen="RunScreen"),
    Picture("runs", (120, 30), (*VARIED, "J"), screen="AllJobsScreen"),
    Picture("settings", (110, 40), (*VARIED, "comma"), screen="ConfigScreen"),
    Picture(
        "results",
        (140, 36),
        ("R", "slash", '"kind=convolution of=brick"', "enter", "l", "s"),
        screen="ResultsScreen",
    ),
    Picture(
        "contrast",
        (120, 36),
        ("R", "slash", '"amd-epyc-2c"', "enter", "C", "slash", "ctrl+u", '"amd-epyc-1c"', "enter", "C"),
        screen="MarkedScreen",
    ),
    Picture("marked", (120, 36), (*VARIED, "space", "j", "space", "C"), screen="MarkedScreen"),
    Picture("corpus", (140, 42), ("U", "3", *["j"] * 8, "n"), screen="CorpusScreen"),
    Picture("systems", (140, 36), (*VARIED, "S"), screen="SystemsScreen"),
    Picture("doctor", (120, 40), (*VARIED, "S", "4"), screen="SystemsScreen"),
)


async def take(app: DlbricksApp, picture: Picture, *first: str) -> None:
    """Press the keys, and write what the screen shows then."""
    async with running(app, picture.size) as pilot:
        await press(pilot, *first, *picture.keys)
        shown = type(pilot.app.screen).__name__
        if shown != picture.screen:
            raise SystemExit(f"{picture.name}: the keys lead to {shown}, not to {picture.screen}")
        svg = pilot.app.export_screenshot(title="dlbricks")
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / f"{picture.name}.svg").write_text(svg, encoding="utf-8")
    print(f"{FOLDER.name}/{picture.name}.svg")


def app_for(picture: Picture, found: Demonstration) -> DlbricksApp:
    """Return the application on recorded results, in the theme of the picture."""
    found.data.config.write_text(f'[workbench]\ntheme = "{picture.theme}"\n', encoding="utf-8")
    replayed = None if picture.run_seconds is None else Replayed(found.replayed, 1.0, picture.run_seconds)
    return DlbricksApp(WorkbenchSession(found.data, found.samples), replayed=replayed)


def main() -> None:
    """Take the pictures of these names, or all."""
    wanted = set(sys.argv[1:]) or {it.name for it in (WELCOME, *PICTURES)}
    if unknown := wanted.difference(it.name for it in (WELCOME, *PICTURES)):
        raise SystemExit(f"no picture is called {', '.join(sorted(unknown))}")
    # As where a terminal has many colours.
    os.environ["COLORTERM"] = "truecolor"
    if WELCOME.name in wanted:
        with tempfile.TemporaryDirectory() as folder:
            asyncio.run(take(DlbricksApp(WorkbenchSession(DataFolder(Path(folder)))), WELCOME))
    with open_demonstration() as found:
        # Results have the same age whenever the pictures are taken.
        recorded = datetime.fromisoformat(found.host.when).replace(tzinfo=timezone.utc)
        tomorrow = patch.object(numbers, "now", (recorded + timedelta(days=1)).timestamp)
        # The box before a run is shown as it is outside of a demonstration.
        with tomorrow, patch.object(screens, "recorded_host", lambda: None):
            for picture in PICTURES:
                if picture.name in wanted:
                    # The first key closes the box of the demonstration.
                    asyncio.run(take(app_for(picture, found), picture, "escape"))


if __name__ == "__main__":
    main()
