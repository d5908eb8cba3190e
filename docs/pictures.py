"""Writes the pictures of the screens: of real runs, on the system and by the runtimes that this is started with.

usage: python -m docs.pictures
"""

import asyncio
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from dlbricks_tui.folders import DataFolder
from dlbricks_tui.tui.app import DlbricksApp
from dlbricks_tui.tui.session import Session
from tests.tui.application import press, running

FOLDER = Path(__file__).parent / "pictures"
# Measured before the pictures are taken: one with branches side by side, and two to compare it with.
MODELS = ("squeezenet1.1", "resnet18_v1", "inceptionv3")
# Measured in all runtimes and at these batch sizes, for the batch curve and the comparison.
VARIED, RUNTIMES, BATCHES = "squeezenet1.1", "mxnet,onnxruntime,openvino", "1,2,4,8,16"
# Traced by a runtime that tells its primitives.
TRACED = "openvino"
# Run while the pictures are taken.
ANOTHER = "densenet121"


class Picture(NamedTuple):
    """A screen: how large, which keys lead there from the start, how long to look at it, in which theme.

    The work that the key `then` starts goes on while the picture is taken.
    """

    name: str
    size: tuple[int, int]
    keys: Sequence[str]
    seconds: float = 0.0
    theme: str = "dark"
    then: str = ""


def opened(model: str) -> tuple[str, ...]:
    """Return the keys that open a model and leave the search."""
    return ("slash", f'"{model}"', "enter", "enter", "1", "slash", "escape")


OPEN = opened("inceptionv3")
RUN = (*opened(ANOTHER), "r", "enter")
WELCOME = Picture("welcome", (100, 26), ())
PICTURES = (
    Picture("workbench", (140, 42), (*OPEN, "2", "j", "j", "j", "j", "j", "j", "j", "l")),
    Picture("narrow", (80, 24), (*OPEN, "4")),
    *(Picture(theme, (120, 36), OPEN, theme=theme) for theme in ("light", "high-contrast", "colour-blind", "terminal")),
    Picture("tree", (120, 40), (*OPEN, "2", "e", *["j"] * 12)),
    Picture("curve", (80, 24), (*opened(VARIED), "b")),
    Picture("comparison", (100, 30), (*opened(VARIED), "v")),
    Picture("analysis", (140, 42), (*opened(VARIED), "0", "2")),
    Picture("scenario", (140, 42), (*opened(VARIED), "L", "2", "j", "e", '"100"', "enter", "1"), 60.0, then="m"),
    Picture("trace", (140, 42), (*opened(VARIED), "i", "s", "l", "l")),
    Picture("help", (100, 40), ("question_mark",)),
    Picture("commands", (100, 30), ("colon",)),
    Picture("start-run", (120, 36), RUN[:-1]),
    Picture("run", (120, 40), (*RUN, "5"), 12.0),
    Picture("runs", (120, 30), ("R",)),
    Picture("settings", (110, 40), ("comma",)),
    Picture("results", (140, 36), ("6", "slash", '"kind=convolution of=brick"', "enter", "l", "s")),
    Picture("corpus", (140, 42), ("7", "3", *["j"] * 12, "n")),
    Picture("systems", (140, 36), (*OPEN, "8")),
    Picture("doctor", (120, 40), ("8", "4")),
)


async def take(data: DataFolder, picture: Picture) -> None:
    """Takes one picture."""
    data.path.mkdir(exist_ok=True)
    data.config.write_text(f'[workbench]\ntheme = "{picture.theme}"\n', encoding="utf-8")
    async with running(DlbricksApp(Session(data)), picture.size) as pilot:
        await press(pilot, *picture.keys)
        if picture.then:
            await pilot.press(picture.then)
        await pilot.pause(picture.seconds)
        svg = pilot.app.export_screenshot(title="dlbricks")
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / f"{picture.name}.svg").write_text(svg, encoding="utf-8")
    print(f"{FOLDER.name}/{picture.name}.svg")


def main() -> None:
    """Measures, then takes all pictures."""
    with tempfile.TemporaryDirectory() as folder:
        data = DataFolder(Path(folder))
        asyncio.run(take(data, WELCOME))
        dlbricks = [sys.executable, "-m", "dlbricks_tui", "--data-dir", folder]
        subprocess.run([*dlbricks, "run", *MODELS, "--end-to-end"], check=True)
        variants = ["--runtime", RUNTIMES, "--batch", BATCHES]
        subprocess.run([*dlbricks, "run", VARIED, *variants, "--end-to-end"], check=True)
        trace = ["trace", VARIED, "-o", str(data.path / "trace.pftrace"), "--runtime", TRACED]
        subprocess.run([*dlbricks, *trace], check=True)
        for picture in PICTURES:
            asyncio.run(take(data, picture))
        subprocess.run([*dlbricks, "runs", "cancel", "last"], check=False)


if __name__ == "__main__":
    main()
