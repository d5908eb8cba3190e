"""The boxes of suites and of scores of predictions."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from dlbricks_tui.documents.estimates import score_parts
from dlbricks_tui.documents.parts import BLANK_LINE, Fact, Part, Sentence
from dlbricks_tui.tui.dialogs.dialog import TextDialog
from dlbricks_tui.tui.dialogs.paths import ANY_FILE, PathScreen
from dlbricks_tui.tui.keys.keymap import Hint
from dlbricks_tui.wording.jobs import suite_contents, untravelled
from dlbricks_tui.wording.numbers import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from dlbricks_tui.estimate.prediction.score import Score
    from dlbricks_tui.share.suites.exporting import SuiteWritten

_MOST_NAMED = 4


class ExportSuiteScreen(PathScreen):
    """Asks for the new file of a suite."""

    HINT = "~/suite.dlbricks"
    ENDINGS = ANY_FILE
    ABOUT = (
        "A suite is for a machine that must not have your models. It has their bricks, each by itself without weights "
        "and names, among bricks of other networks, the decoys. The key says which bricks are yours. It stays in your "
        "data folder: without it nobody can use the results. A name that ends in .dlbricks makes one file, and any "
        "other name a folder."
    )

    def problem_with(self, path: Path) -> str:
        if not path.absolute().parent.is_dir():
            return f"No such folder: {path.absolute().parent}"
        return f"{path} exists already: name a new file" if path.exists() else ""


class SuiteWrittenScreen(TextDialog[None]):
    """States what a suite has, and the steps that follow."""

    HEADING = "The suite is written"
    ABOUT = "`dlbricks suite` does the same on the command line, with more options."

    def __init__(self, written: SuiteWritten) -> None:
        super().__init__()
        self._written = written

    def parts(self) -> Iterable[Part]:
        written = self._written
        yield Sentence(f"{suite_contents(written)}.", "strong")
        left_out = [f"left out: {reason}" for reason in written.left_out] + untravelled(written.untravelled)
        yield from (Sentence(text, "warn") for text in left_out[:_MOST_NAMED])
        if len(left_out) > _MOST_NAMED:
            yield Sentence(f"and {counted(len(left_out) - _MOST_NAMED, 'other')}", "warn")
        yield BLANK_LINE
        yield Fact("suite", written.path)
        yield Fact("key", written.key)
        yield Sentence("Keep the key: it says which bricks are yours. Nobody can use the results without it.", "muted")
        yield BLANK_LINE
        yield Sentence("Give the suite to the other side. It needs dlbricks in the same version, and types:")
        yield Sentence(f"dlbricks suite run {shlex.quote(Path(written.path).name)} -o results.json", "strong")
        yield BLANK_LINE
        yield Hint("Then import results.json here: {workbench.show_results} {results.import_file}")


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
        self.parts_changed()

    def parts(self) -> Iterable[Part]:
        if self._found is None:
            return (Sentence("Predicting the models without their own results.", "muted"),)
        return score_parts(self._found)
