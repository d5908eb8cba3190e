"""The box that tells how good predictions have been."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dlbricks_tui.documents.layout import laid_out
from dlbricks_tui.documents.lines import Line, Span, line
from dlbricks_tui.documents.scores import score_parts
from dlbricks_tui.tui.dialogs.dialog import TextDialog
from dlbricks_tui.tui.widgets.text import TextView

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from dlbricks_tui.estimate.prediction.score import Score


class ScoresScreen(TextDialog[None]):
    """Shows models as they would have been predicted, beside what was measured."""

    HEADING = "How good predictions have been"
    ABOUT = (
        "The models of the library whose bricks were all measured on the system and runtime of the estimate: the "
        "prediction before the run of each, and the sum of its measured bricks. Results of other systems do not count."
    )

    def __init__(self, read: Callable[[], Sequence[Score]]) -> None:
        super().__init__()
        self._read = read
        self._found: Sequence[Score] | None = None

    def on_mount(self) -> None:
        self.run_in_thread(self._read, "scores", self._show)

    def _show(self, found: Sequence[Score]) -> None:
        self._found = found
        # The box is as high as its content.
        self.query_one(TextView).remake()
        self.query_one(TextView).refresh(layout=True)

    def paragraphs(self) -> Iterable[Line]:
        if self._found is None:
            yield line(Span("Predicting the models without their own results.", "muted"))
            return
        width = self.query_one(TextView).scrollable_content_region.width
        yield from laid_out(score_parts(self._found), width)
