"""What a person can do: the one description that keys, key bar, palette and help are made from."""

from dataclasses import dataclass
from enum import Enum


class Scope(str, Enum):
    """Where an action applies: the whole program, one screen, or one panel."""

    EVERYWHERE = "app"
    LIST = "list"
    SEARCH = "find"
    DIALOG = "dialog"
    BOX = "box"
    FORM = "form"
    PATH = "path"
    ERROR = "error"
    WELCOME = "welcome"
    PALETTE = "palette"
    WORKBENCH = "workbench"
    MODELS = "models"
    TREE = "tree"
    DETAILS = "details"
    ESTIMATE = "estimate"
    RUN_BAR = "run_bar"
    RUN = "run"
    RUN_BRICKS = "run_bricks"
    RUN_ESTIMATES = "run_estimates"
    RUN_NOTES = "run_notes"
    RUNS = "runs"
    START_RUN = "start_run"
    CANCEL_RUN = "cancel_run"
    RESULTS = "results"
    RESULT_TABLE = "result_table"
    RESULT = "result"
    HISTORY = "history"
    COLUMNS = "columns"
    DELETE_RESULTS = "delete_results"
    HIDDEN_MARKS = "hidden_marks"
    CONTRAST = "contrast"
    PAIRS = "pairs"
    CORPUS = "corpus"
    UNIQUENESS = "uniqueness"
    KINDS = "kinds"
    LIKENESS = "likeness"
    GRANULARITIES = "granularities"
    SYSTEMS = "systems"
    SYSTEM_LIST = "system_list"
    SYSTEM = "system"
    MACHINES = "machines"
    DOCTOR = "doctor"
    CONFIG = "config"


@dataclass(frozen=True, slots=True)
class Action:
    """Something to do by a key; `id` is scope and method, such as `models.mark`, and never changes.

    Keys are named as Textual names them; the first is the one that is shown.
    """

    id: str
    keys: tuple[str, ...]
    label: str
    help: str
    # Whether the key bar has it, where there is room.
    footer: bool = False
    # Whether it is done in front of boxes too, and while one types; for everywhere only.
    always: bool = False

    @property
    def scope(self) -> Scope:
        """Where it applies."""
        return Scope(self.id.partition(".")[0])

    @property
    def method(self) -> str:
        """What it is called in its scope."""
        return self.id.partition(".")[2]
