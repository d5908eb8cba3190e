"""The boxes before results are deleted, exported or imported."""

from collections.abc import Iterable
from pathlib import Path

from dlbricks_tui.documents.lines import BLANK, Line, Span, line
from dlbricks_tui.documents.results import cell
from dlbricks_tui.store.errors import ExchangeError
from dlbricks_tui.store.exporting import export_format
from dlbricks_tui.store.selections import Selection
from dlbricks_tui.tui.dialogs.dialog import ConfirmingScreen
from dlbricks_tui.tui.dialogs.paths import ANY_FILE, PathScreen
from dlbricks_tui.tui.keys.keymap import Hint, key
from dlbricks_tui.tui.results import actions
from dlbricks_tui.wording.numbers import counted

_MOST_NAMED = 6


class DeleteScreen(ConfirmingScreen):
    """Returns True if the user confirms."""

    HEADING = "Delete?"
    scope = actions.DELETE_RESULTS
    ABOUT = (
        "Estimates no longer use deleted results. {results.undo_delete} on the screen of results restores them until "
        "you quit dlbricks. Export them first to keep them longer."
    )

    def __init__(self, results: Selection, total: int) -> None:
        super().__init__()
        self._results = results
        self._total = total

    def paragraphs(self) -> Iterable[Line]:
        count = len(self._results)
        yield line(Span(f"{counted(count, 'result')} of {self._total:,}:", "strong"))
        for it in self._results[:_MOST_NAMED]:
            told = f"  {cell('when', it.when)}  {it.system}  {cell('trimmed_mean_ms', it.trimmed_mean_ms)} ms"
            yield line(it.name, Span(told, "muted"))
        if count > _MOST_NAMED:
            yield line(Span(f"and {counted(count - _MOST_NAMED, 'other')}", "muted"))
        yield BLANK
        yield Hint("{results.undo_delete} restores them until you quit dlbricks.").line


class ImportScreen(PathScreen):
    """Asks for an existing file."""

    HINT = "~/results.json"
    ENDINGS = ANY_FILE
    ABOUT = (
        "A file that was exported here or by `dlbricks results export` on any host, or one that `dlbricks suite run` "
        "has written of a suite whose key is in this data folder. Results that are already in the store stay as they "
        "are. `dlbricks results import` on the command line imports the paper's published measurements."
    )

    @property
    def prompt(self) -> str:
        return "Import results from a file"

    def problem_with(self, path: Path) -> str:
        return f"{path} is a folder: name a file in it" if path.is_dir() else super().problem_with(path)


class ExportScreen(PathScreen):
    """Asks for a file to write; an existing one has to be confirmed."""

    HINT = "~/results.json"
    ENDINGS = ANY_FILE
    ABOUT = (
        "The ending selects the format. A .json or .json.gz file contains the results with their systems and runtimes "
        "and can be imported on any host. A .csv or .jsonl file contains one row per result."
    )

    def __init__(self, count: int) -> None:
        super().__init__()
        self._count = count
        self._warned_of: Path | None = None

    @property
    def prompt(self) -> str:
        return f"Export {counted(self._count, 'result')} to a file"

    def problem_with(self, path: Path) -> str:
        if path.is_dir():
            return f"{path} is a folder: name a file in it"
        if not path.absolute().parent.is_dir():
            return f"No such folder: {path.absolute().parent}"
        try:
            export_format(path)
        except ExchangeError as error:
            return str(error)
        if path.exists() and path != self._warned_of:
            self._warned_of = path
            return f"{path} already exists: press {key('path.take')} again to replace it"
        return ""
