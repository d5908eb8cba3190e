"""The box that asks for the file to write a trace to."""

from __future__ import annotations

from pathlib import Path

from dlbricks_tui.tui.dialogs.paths import ANY_FILE, PathScreen
from dlbricks_tui.tui.keys.keymap import key


class WriteTraceScreen(PathScreen):
    """Asks for a file to write; an existing one has to be confirmed."""

    HINT = "~/model.pftrace, or ~/model.json for chrome://tracing"
    ENDINGS = ANY_FILE
    ABOUT = (
        "The ending selects the format. A .json file opens in chrome://tracing and in Perfetto; any other file has the "
        "format of Perfetto, for ui.perfetto.dev. The stored trace stays where it is."
    )

    def __init__(self, model: str) -> None:
        super().__init__()
        self._model = model
        self._warned_of: Path | None = None

    @property
    def prompt(self) -> str:
        return f"Write the trace of {self._model} to a file"

    def problem_with(self, path: Path) -> str:
        if path.is_dir():
            return f"{path} is a folder: name a file in it"
        if not path.absolute().parent.is_dir():
            return f"No such folder: {path.absolute().parent}"
        if path.exists() and path != self._warned_of:
            self._warned_of = path
            return f"{path} already exists: press {key('path.take')} again to replace it"
        return ""
