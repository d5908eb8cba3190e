"""The box with the layers of a model under the peaks of its system."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dlbricks_tui.tui.dialogs.dialog import Box, Dialog
from dlbricks_tui.tui.widgets.plot import PictureView

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from dlbricks_tui.documents.pictures import Plot


class RooflineScreen(Dialog[None]):
    """Draws the layers as letters under the peaks, on logarithmic axes, as large as the terminal is."""

    ABOUT = (
        "Each letter is a layer: to the right the more operations it computes for a byte, to the top the faster it "
        "computes. Far below the roofs there is time to save."
    )

    def __init__(self, model: str, picture: Plot) -> None:
        super().__init__()
        self._model = model
        self._picture = PictureView()
        self._picture.show(picture)

    def compose(self) -> ComposeResult:
        with Box(f"Roofline of {self._model}", self.scope):
            yield self._picture
