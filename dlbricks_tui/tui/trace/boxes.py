"""The boxes of the trace screen: the settings of a trace, the file to write, and a confirmation."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from dlbricks_tui.answers.traces.tracing import TraceOptions
from dlbricks_tui.documents.lines import BLANK, Line, Span, line, wrapped
from dlbricks_tui.settings.tracing import INFERENCES, LEVELS
from dlbricks_tui.settings.variant import BATCH, RUNTIME, THREADS
from dlbricks_tui.traces.trace import TraceLevel
from dlbricks_tui.tui.dialogs.dialog import Box, ConfirmingScreen
from dlbricks_tui.tui.dialogs.paths import ANY_FILE, PathScreen
from dlbricks_tui.tui.keys.keymap import key
from dlbricks_tui.tui.trace import actions
from dlbricks_tui.tui.widgets.form import FormDialog, FormRow
from dlbricks_tui.tui.widgets.text import TextLines

if TYPE_CHECKING:
    from collections.abc import Iterable

    from textual.app import ComposeResult

_TOLD = (
    "The model runs once more for each level: model, layer (the runtime's profiler), primitive (the kernels of oneDNN) "
    "and thread. Each level adds instruments to the one before, and so shows what they cost."
)
# Each level with all below it.
_LEVELS = tuple(tuple(TraceLevel)[:count] for count in range(len(TraceLevel), 0, -1))


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceSettings(TraceOptions):
    """The options of a trace, and the names of the runtimes to choose from."""

    registered: tuple[str, ...]


TRACE_ROWS = (
    FormRow(setting=RUNTIME, offered=lambda it: it.registered),
    FormRow(setting=THREADS, usual="usual"),
    FormRow(setting=BATCH, usual="of the file"),
    FormRow(setting=LEVELS, many=True, offered=lambda _: _LEVELS, words=lambda it: it.levels[-1].value),
    FormRow(setting=INFERENCES),
)


class StartTraceScreen(FormDialog[TraceSettings]):
    """Returns the settings to trace the model with."""

    scope = actions.START
    CSS_PATH = "trace.tcss"
    ABOUT = (
        "A trace runs the model at rising levels of detail, in a process of its own. It waits for runs on this host, "
        "and the end of the screen ends it. A level that the runtime or the host cannot give is left out, with its "
        "reason."
    )

    def __init__(self, model: str, settings: TraceSettings) -> None:
        super().__init__(TRACE_ROWS, settings)
        self._model = model

    def compose(self) -> ComposeResult:
        with Box(f"Trace {self._model}", actions.START):
            yield self._rows
            yield TextLines(lambda width: tuple(wrapped(line(Span(_TOLD, "muted")), width)))


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


class CancelTraceScreen(ConfirmingScreen):
    """Returns True if the user confirms."""

    HEADING = "Cancel the trace?"
    scope = actions.CANCEL
    ABOUT = "A trace is stored once all of its levels have ended. Stored traces are kept."

    def __init__(self, told: str) -> None:
        super().__init__()
        self._told = told

    def paragraphs(self) -> Iterable[Line]:
        yield line(self._told)
        yield BLANK
        yield line("The levels of this trace are lost; traces that are stored are kept.")
