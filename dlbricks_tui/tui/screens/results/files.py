"""Asks which file results are to be written to, or taken from."""

from pathlib import Path

from dlbricks_tui.store.errors import ExchangeError
from dlbricks_tui.store.exporting import export_format
from dlbricks_tui.tui.keymap import key
from dlbricks_tui.tui.paths import ANY_FILE
from dlbricks_tui.tui.screens.open_path import PathScreen
from dlbricks_tui.wording.numbers import counted


class ImportScreen(PathScreen):
    """Gives the path of a file that is there."""

    HINT = "~/results.json"
    ENDINGS = ANY_FILE
    ABOUT = (
        "A file that was exported here or by `dlbricks results export` on any host. What is known already is left as "
        "it is. The paper's published measurements come in by `dlbricks results import` on the command line."
    )

    @property
    def question(self) -> str:
        return "Import results from a file"

    def problem_with(self, path: Path) -> str:
        return f"{path} is a folder: name a file in it" if path.is_dir() else super().problem_with(path)


class ExportScreen(PathScreen):
    """Gives the path of a file to write; one that is there is replaced if the person says so twice."""

    HINT = "~/results.json"
    ENDINGS = ANY_FILE
    ABOUT = (
        "The ending says the format. A .json or .json.gz file gets the results and all that says what they are; import "
        "it here or on another host. A .csv or .jsonl file gets a row per result."
    )

    def __init__(self, count: int) -> None:
        super().__init__()
        self._count = count
        self._warned_of: Path | None = None

    @property
    def question(self) -> str:
        return f"Export {counted(self._count, 'result')} to a file"

    def problem_with(self, path: Path) -> str:
        if path.is_dir():
            return f"{path} is a folder: name a file in it"
        if not path.absolute().parent.is_dir():
            return f"There is no folder {path.absolute().parent}"
        try:
            export_format(path)
        except ExchangeError as error:
            return str(error)
        if path.exists() and path != self._warned_of:
            self._warned_of = path
            return f"{path} is there already: {key('path.take')} once more replaces it"
        return ""
